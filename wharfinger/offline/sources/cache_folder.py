"""The cache folder of offline commands: its content, and the removal of old files.

=========  ============================================================================================================
renders    rendered charts, built kustomizations, and the version numbers that programs such as helm print: a file for each
charts     charts of Helm repositories: a folder for each archive
commits    the files of git commits: a folder for each
git        mirrors of git repositories: a folder for each
packages   the store of packages, which manages its own files; only its size is measured here
=========  ============================================================================================================

Apart from the packages, everything can be fetched or built again, so nothing is lost if an entry is removed. Other processes see
an entry whole or not at all: a folder is renamed before its files are removed. The modification time of a folder is the time
of its last use, to the hour. A folder that was used within the last IN_USE_S seconds is kept, because a build
may be reading it.
"""

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final

from wharfinger.packages.rendering.render_folder import SUFFIX, USE_AGE_S
from wharfinger.process.remove_tree import remove_tree

RESULTS: Final = "renders"
CHARTS: Final = "charts"
COMMITS: Final = "commits"
GIT: Final = "git"
PACKAGES: Final = "packages"
IN_USE_S: Final = 3 * USE_AGE_S
_TEMPORARY: Final = ".tmp-"
_FOLDERS: Final = {"charts": CHARTS, "commits": COMMITS, "git": GIT}
NAMES: Final = ("results", *_FOLDERS, "packages")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder that is removed as a whole. ``used`` is the time of its last use, in seconds."""

    path: Path
    bytes: int
    used: float
    is_folder: bool
    is_remainder: bool = False
    """True for a temporary folder. It is left behind if the process that was writing or removing an entry crashed."""


@dataclass(frozen=True, slots=True)
class AreaStatistics:
    """The number of the cache's entries of one kind, and their size together."""

    entries: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Removed:
    """The number and size of the removed entries, and the reasons why some entries could not be removed."""

    entries: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)


def mark_used(folder: Path) -> None:
    """Record that a folder of the cache is used now. Blocking."""
    with suppress(OSError):
        if abs(time.time() - folder.stat().st_mtime) > USE_AGE_S:
            os.utime(folder)


def temporary_folder(beside: Path) -> Path:
    """Return a new folder of the cache, for files that are not complete yet. Blocking. Raises OSError."""
    return Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=beside))


def move_into_place(temporary: Path, folder: Path) -> None:
    """Rename the complete folder ``temporary`` to ``folder``. Do nothing if another process has created ``folder`` already.
    Blocking. Raises OSError.
    """
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def statistics(cache: Path) -> dict[str, AreaStatistics]:
    """Return the statistics of all kinds of entries, by name. Blocking. Raises OSError."""
    found = {name: _sum(entries) for name, entries in _areas(cache).items()}
    packages = cache / PACKAGES
    files = list(_sizes(packages)) if packages.is_dir() else []
    return found | {"packages": AreaStatistics(len(files), sum(files))}


def collect(cache: Path, *, max_bytes: int, unused_s: float) -> Removed:
    """Remove entries that were not used for ``unused_s`` seconds, then the least recently used ones until at most ``max_bytes``
    are left.

    Folders that may be in use are kept. Blocking. Raises OSError.
    """
    now, removed = time.time(), Removed()
    entries = sorted((each for area in _areas(cache).values() for each in area), key=attrgetter("used"))
    total = sum(each.bytes for each in entries)
    for each in entries:
        in_use = each.is_folder and now - each.used < IN_USE_S
        if in_use or not (each.is_remainder or now - each.used > unused_s or total > max_bytes):
            continue
        try:
            _remove(each)
        except OSError as error:
            removed.problems.append(f"{error.filename or each.path}: cannot be removed: {error.strerror}")
            continue
        total -= each.bytes
        removed.entries += 1
        removed.bytes += each.bytes
    return removed


def _areas(cache: Path) -> dict[str, list[Entry]]:
    """Return the entries that can be removed, by kind."""
    return {
        "results": list(_files(cache / RESULTS)),
        **{name: list(_folders(cache / place)) for name, place in _FOLDERS.items()},
    }


def _files(place: Path) -> Iterator[Entry]:
    for each in _listed(place):
        with suppress(FileNotFoundError):  # another process has removed it
            status = each.stat(follow_symlinks=False)
            if each.name.endswith(SUFFIX) and each.is_file(follow_symlinks=False):
                yield Entry(Path(each.path), status.st_size, status.st_mtime, is_folder=False)


def _folders(place: Path) -> Iterator[Entry]:
    for each in _listed(place):
        if not each.is_dir(follow_symlinks=False):
            continue
        with suppress(FileNotFoundError):
            used = each.stat(follow_symlinks=False).st_mtime
            size, remainder = sum(_sizes(Path(each.path))), each.name.startswith(_TEMPORARY)
            yield Entry(Path(each.path), size, used, is_folder=True, is_remainder=remainder)


def _listed(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the size of each file below a folder."""
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield (Path(path) / name).lstat().st_size


def _remove(entry: Entry) -> None:
    if not entry.is_folder:
        entry.path.unlink(missing_ok=True)
        return
    hidden = entry.path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    with suppress(FileNotFoundError):
        entry.path.rename(hidden)
        remove_tree(hidden)


def _sum(entries: list[Entry]) -> AreaStatistics:
    return AreaStatistics(len(entries), sum(each.bytes for each in entries))
