"""Whether a chart's templates speak of something: a look at their text, without rendering them."""

import os
from pathlib import Path
from typing import Final

MAX_FILES: Final = 10_000
MAX_TEMPLATE: Final = 4 * 1024 * 1024
"""Bytes of one file that are looked at."""


def mentions(chart: Path, text: str) -> bool:
    """Whether a file below ``templates/`` has ``text`` in it. Blocking. Too many files to look at count as yes.

    Only regular files are opened, and links are not followed; a file that cannot be read has nothing in it that Helm could use.
    """
    wanted, seen = text.encode(), 0
    for here, _, files in os.walk(chart / "templates"):
        for name in files:
            seen += 1
            if seen > MAX_FILES or _has(Path(here) / name, wanted):
                return True
    return False


def _has(path: Path, wanted: bytes) -> bool:
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return wanted in file.read(MAX_TEMPLATE)
    except OSError:
        return False
