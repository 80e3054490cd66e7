"""Files that exclude other files from a tree: ``.sourceignore`` and ``.krmignore``, with the patterns of ``.gitignore``.

A pattern with a slash before its end is matched against the path relative to the folder of the ignore file. Any other pattern
is matched against the last segment of the path. A pattern with a slash at its end matches only folders, and one that begins with
``!`` cancels an earlier match. Ignored folders are not entered.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.glob import path_glob
from wharfinger.packages.files.disk_files import read_start

FILE_NAMES: Final = (".sourceignore", ".krmignore")
MAX_BYTES: Final = 64 * 1024
_TRAILING: Final = re.compile(r"(?<!\\)\s+\Z")
"""Spaces at the end of a line, unless a backslash keeps them."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file; ``base`` is the folder of that file, relative to the root ("" or ``apps/``)."""

    base: str
    regex: re.Pattern[str]
    folders_only: bool
    negated: bool


def read_patterns(folder: Path, base: str) -> tuple[Pattern, ...]:
    """Read the patterns from the ignore files of one folder, which has the path ``base`` in the tree. Blocking.
    Raises OSError.
    """
    found: list[Pattern] = []
    for name in FILE_NAMES:
        path = f"{folder}/{name}"
        if os.path.isfile(path):  # noqa: PTH113 - texts are faster
            text = read_start(path, MAX_BYTES).decode(errors="replace")
            found += [pattern for line in text.splitlines() if (pattern := _pattern(line, base)) is not None]
    return tuple(found)


def is_ignored(patterns: tuple[Pattern, ...], path: str, *, is_folder: bool) -> bool:
    """Return whether a path, relative to the root, is ignored; the last pattern that matches decides."""
    for pattern in reversed(patterns):
        if pattern.folders_only and not is_folder:
            continue
        if path.startswith(pattern.base) and pattern.regex.match(path[len(pattern.base) :]):
            return not pattern.negated
    return False


def _pattern(line: str, base: str) -> Pattern | None:
    text = _TRAILING.sub("", line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    glob = path_glob(text.removeprefix("/") if anchored else f"**/{text}")
    return Pattern(base, glob, folders_only, negated)
