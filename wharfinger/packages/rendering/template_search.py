"""A search for a text in a chart's templates, without rendering them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_FILES: Final = 10_000
MAX_TEMPLATE: Final = 4 * 1024 * 1024
"""The largest number of bytes of one file that are searched."""
_ARCHIVES: Final = (".tgz", ".tar.gz")


def templates_mention(chart: Path, text: str) -> bool:
    """Return whether a file below ``templates/``, or a template of a chart in ``charts/``, contains ``text``. Blocking.

    The result is also True if not everything is searched: for packed charts, and more files than MAX_FILES. Only regular files
    are opened, and links are not followed; a file that cannot be read is skipped, because Helm could not use it either.
    """
    wanted = text.encode()
    for seen, path in enumerate(_templates(chart), 1):
        if seen > MAX_FILES or path.name.endswith(_ARCHIVES) or _has(path, wanted):
            return True
    return False


def _templates(chart: Path) -> Iterator[Path]:
    for top in ("templates", "charts"):
        for here, _, files in os.walk(chart / top):
            inside = top == "templates" or "templates" in Path(here).relative_to(chart / top).parts
            for name in files:
                if inside or name.endswith(_ARCHIVES):
                    yield Path(here) / name


def _has(path: Path, wanted: bytes) -> bool:
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return wanted in file.read(MAX_TEMPLATE)
    except OSError:
        return False
