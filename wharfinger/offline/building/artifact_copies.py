"""The files of an artifact that an ArtifactGenerator makes: the copy operations of Flux's source-watcher. Blocking.

=====================  ====================================================================================================
from                   what is copied
=====================  ====================================================================================================
``@alias/file``        the file: into ``to`` if ``to`` ends with a slash or is a folder, else under the name ``to``
``@alias/folder/``     the folder itself, below ``to``
``@alias/folder/**``   the content of the folder, with subfolders, below ``to``
any other pattern      each match with its whole path, below ``to``; ``**`` is a plain ``*`` here, as in Go's ``fs.Glob``
=====================  ====================================================================================================

Later operations overwrite files of earlier ones, or merge YAML into them (``Merge``). The strategy ``Extract`` unpacks archives
into ``to``; in its patterns, ``**`` matches any number of folders. Nothing is read outside of the source, and nothing is
written outside of the artifact.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from wharfinger.formats.archives.archive import DEFAULT_LIMITS, extract_tar
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.formats.yaml.writer import write_yaml

ARTIFACT: Final = "@artifact/"
OVERWRITE: Final = "Overwrite"
MERGE: Final = "Merge"
EXTRACT: Final = "Extract"
MAX_FILES: Final = 100_000
MAX_MERGED: Final = 4 * 1024 * 1024
_SPECIAL: Final = frozenset("*?[]")
_ARCHIVES: Final = (".tar.gz", ".tgz")


class CopyError(Exception):
    """The artifacts or copy operations of an ArtifactGenerator are invalid or cannot be carried out."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy operation of an artifact; ``field`` is the path of the operation in the object, for messages."""

    field: str
    alias: str
    pattern: str
    to: str
    exclude: tuple[str, ...] = ()
    strategy: str = OVERWRITE

    @property
    def folder(self) -> str:
        """The part of the pattern before the first segment with special characters."""
        parts: list[str] = []
        for part in PurePosixPath(self.pattern).parts:
            if _SPECIAL & {*part}:
                break
            parts.append(part)
        return "/".join(parts) or "."


def read_copies(artifact: JsonObject, where: str) -> tuple[Copy, ...]:
    """Read the copy operations of an artifact. Raises FormatError, CopyError."""
    found: list[Copy] = []
    for number, entry in enumerate(find_list(artifact, "copy")):
        field = f"{where}.copy[{number}]"
        each = as_object(entry, field)
        source, to = find_str(each, "from"), find_str(each, "to")
        alias, slash, pattern = source.removeprefix("@").partition("/")
        if not source.startswith("@") or not slash or not alias:
            raise CopyError(f"{field}.from: expected @ALIAS/PATH, found {source!r}")
        if not to.startswith(ARTIFACT):
            raise CopyError(f"{field}.to: expected {ARTIFACT}PATH, found {to!r}")
        strategy = find_str(each, "strategy", default=OVERWRITE)
        if strategy not in {OVERWRITE, MERGE, EXTRACT}:
            raise CopyError(f"{field}.strategy: expected {OVERWRITE}, {MERGE} or {EXTRACT}, found {strategy!r}")
        exclude = tuple(text for text in find_list(each, "exclude") if isinstance(text, str))
        found.append(Copy(field, alias, pattern, to.removeprefix(ARTIFACT), exclude, strategy))
    if not found:
        raise CopyError(f"{where}.copy: needs at least one operation")
    return tuple(found)


def copy_all(copies: Sequence[Copy], sources: Mapping[str, Path], into: Path) -> None:
    """Carry out the operations of an artifact in their order, and write the files to the new folder ``into``. Raises CopyError,
    OSError.
    """
    into.mkdir(parents=True)
    for each in copies:
        source = sources.get(each.alias)
        if source is None:
            raise CopyError(f"{each.field}.from: no source has the alias {each.alias!r}; correct it, or add the source")
        try:
            _Operation(each, source.resolve(), into.resolve()).run()
        except FormatError as error:
            raise CopyError(f"{each.field}: {error}") from error


@dataclass(slots=True)
class _Operation:
    copy: Copy
    source: Path
    into: Path
    count: int = 0

    def run(self) -> None:
        if _SPECIAL & {*self.copy.pattern}:
            self._matches()
            return
        relative = os.path.normpath(self.copy.pattern or ".")
        path = self._read(relative)
        if path is None:
            raise CopyError(
                f"{self.copy.field}.from: the source has no {self.copy.pattern!r}; correct it, or add the file"
            )
        if path.is_dir():
            if self.copy.strategy == EXTRACT:
                raise CopyError(f"{self.copy.field}: {EXTRACT} needs an archive, and {relative} is a folder")
            self._one(relative, _joined(self.copy.to, "" if relative == "." else path.name), relative)
        elif self.copy.strategy == EXTRACT:
            if not relative.endswith(_ARCHIVES):
                raise CopyError(
                    f"{self.copy.field}: {EXTRACT} needs an archive ({' or '.join(_ARCHIVES)}), found {relative}"
                )
            self._extract(path)
        elif not _is_excluded(relative, ".", self.copy.exclude):
            as_folder = self.copy.to.endswith("/") or not self.copy.to or self._written(self.copy.to).is_dir()
            self._one(relative, _joined(self.copy.to, path.name) if as_folder else self.copy.to, ".")

    def _matches(self) -> None:
        pattern, folder = self.copy.pattern, self.copy.folder
        found = sorted(_glob(self.source, pattern, recursive=self.copy.strategy == EXTRACT))
        if not found:
            raise CopyError(f"{self.copy.field}.from: the source has nothing that matches {pattern!r}; correct it")
        kept = [each for each in found if not _is_excluded(each, folder, self.copy.exclude)]
        if not kept:
            raise CopyError(f"{self.copy.field}.exclude: excludes everything that matches {pattern!r}; correct it")
        for each in kept:
            if self.copy.strategy == EXTRACT:
                path = self._read(each)
                if each.endswith(_ARCHIVES) and path is not None and path.is_file():
                    self._extract(path)
                continue
            prefix = pattern.removesuffix("/**") if pattern.endswith("/**") else ""
            name = each.removeprefix(f"{prefix}/") if prefix else each
            self._one(each, _joined(self.copy.to, name), folder)

    def _one(self, relative: str, to: str, base: str) -> None:
        """Copy the file or folder ``relative`` of the source to the path ``to`` of the artifact.

        Excluded files are left out; the patterns for them are relative to ``base``.
        """
        path = self._read(relative)
        if path is None:
            return  # a link that leads nowhere
        if not path.is_dir():
            self._file(path, self._written(to))
            return
        self._written(to).mkdir(parents=True, exist_ok=True)
        for name in sorted(each.name for each in path.iterdir()):
            inner = _joined(relative if relative != "." else "", name)
            if _is_excluded(inner, base, self.copy.exclude):
                continue
            if (self.source / inner).is_symlink() and (self.source / inner).is_dir():
                raise CopyError(f"{self.copy.field}.from: {inner} is a link to a folder; put a copy in its place")
            self._one(inner, _joined(to, name), base)

    def _file(self, path: Path, target: Path) -> None:
        self.count += 1
        if self.count > MAX_FILES:
            raise CopyError(f"{self.copy.field}: more than {MAX_FILES} files")
        if not path.is_file():
            raise CopyError(f"{self.copy.field}.from: {path.name} is not a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.copy.strategy == MERGE and target.is_file():
            target.write_text(write_yaml(overlaid(_values(target), _values(path))))
        else:
            shutil.copyfile(path, target)

    def _extract(self, path: Path) -> None:
        target = self._written(self.copy.to)
        with tempfile.TemporaryDirectory(dir=self.into.parent) as folder, path.open("rb") as file:
            extract_tar(file, Path(folder), DEFAULT_LIMITS, what=path.name)
            shutil.copytree(folder, target, dirs_exist_ok=True)

    def _read(self, relative: str) -> Path | None:
        """Return a path of the source; None if it does not exist. Raises CopyError if it leads out of the source."""
        path = (self.source / relative).resolve()
        if not path.is_relative_to(self.source):
            raise CopyError(f"{self.copy.field}.from: {relative} leads out of the source; correct it")
        return path if path.exists() else None

    def _written(self, relative: str) -> Path:
        path = Path(os.path.normpath(self.into / relative))
        if not path.is_relative_to(self.into):
            raise CopyError(f"{self.copy.field}.to: {relative} leads out of the artifact; correct it")
        return path


def _joined(folder: str, name: str) -> str:
    return "/".join(part for part in (folder.rstrip("/"), name) if part)


def _values(path: Path) -> JsonObject:
    """Return all documents of a YAML file as one object; later ones override earlier ones. Raises FormatError, OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_MERGED + 1)
    merged: JsonObject = {}
    for each in read_yaml_all(data, what=path.name):
        merged = overlaid(merged, as_object(each or {}, path.name))
    return merged


def _glob(source: Path, pattern: str, *, recursive: bool) -> Iterator[str]:
    """Yield the paths of a source that match a pattern, segment by segment. A leading dot is matched like any character."""
    segments = PurePosixPath(pattern).parts
    pending = [("", 0)]
    seen: set[tuple[str, int]] = set()
    while pending:
        folder, depth = pending.pop()
        if (folder, depth) in seen:
            continue
        seen.add((folder, depth))
        if depth == len(segments):
            if folder:
                yield folder
            continue
        place = source / folder
        if recursive and segments[depth] == "**":
            pending.append((folder, depth + 1))
        if not place.is_dir() or place.is_symlink():
            continue
        for name in sorted(each.name for each in place.iterdir()):
            if recursive and segments[depth] == "**":
                pending.append((_joined(folder, name), depth))
            elif fnmatchcase(name, segments[depth].replace("**", "*")):
                pending.append((_joined(folder, name), depth + 1))


def _is_excluded(path: str, base: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a pattern matches a path.

    Each pattern is tried with the whole path and with the path relative to the folder ``base``. A pattern without a slash also
    matches the last name in a path.
    """
    inner = path.removeprefix(f"{base}/") if base != "." else path
    names = {path, inner}
    return any(
        any(_is_match(tuple(name.split("/")), tuple(pattern.split("/"))) for name in names)
        or ("/" not in pattern and fnmatchcase(path.rpartition("/")[2], pattern))
        for pattern in patterns
    )


@lru_cache(maxsize=4096)
def _is_match(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return whether the segments of a path match those of a pattern; ``**`` matches any number of segments."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _is_match(parts, pattern[1:]) or (bool(parts) and _is_match(parts[1:], pattern))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _is_match(parts[1:], pattern[1:])
