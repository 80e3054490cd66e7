"""The files of a chart and of all charts in it (folders and archives), as Helm would find them.

Nothing is written to the disk: archives are read in memory. A file that cannot be read counts as empty, and a broken archive as
an archive without files, because Helm could not use them either. Links are followed, as Helm does.
"""

import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.packages.definition.chart_folder import LEFT_OUT

MAX_FILES: Final = 10_000
MAX_FILE: Final = 16 * 1024 * 1024
MAX_TOTAL: Final = 128 * 1024 * 1024
"""The limits on the number of files, the bytes of one file or unpacked archive, and the bytes of all files together."""
MAX_NESTED: Final = 8
"""The largest number of archives nested inside each other."""

CHARTS: Final = "charts"
_ARCHIVES: Final = (".tgz", ".tar.gz")


class TooMuchTextError(Exception):
    """The chart is larger than the limits."""


@dataclass(frozen=True, slots=True)
class ChartFile:
    """One file. ``path`` is its path in the chart: ``charts/<folder>/…`` for a file of a sub-chart, even if the sub-chart is
    packed.
    """

    path: tuple[str, ...]
    data: bytes

    @property
    def inside(self) -> tuple[str, ...]:
        """The path within the file's own chart, which may be a sub-chart."""
        path = self.path
        while len(path) > 2 and path[0] == CHARTS:
            path = path[2:]
        return path

    @property
    def text(self) -> str:
        """The content; invalid UTF-8 is replaced."""
        return self.data.decode(errors="replace")


def chart_files(chart: Path, *, is_package: bool) -> Iterator[ChartFile]:
    """Yield all files of a chart, and the files in its archives. With ``is_package``, leave out the files of the package that
    do not belong to its chart.

    Blocking. Raises TooMuchTextError over a limit.
    """
    room = _Room()
    for path, place in _found(chart, is_package=is_package):
        room.count()
        data = _content(place)
        if _is_archive(path):
            yield from _unpacked(data, path[:-1], room, 1)
        else:
            room.take(data)
            yield ChartFile(path, data)


@dataclass(slots=True)
class _Room:
    files: int = 0
    taken: int = 0

    def count(self) -> None:
        self.files += 1
        if self.files > MAX_FILES:
            raise TooMuchTextError

    def take(self, data: bytes) -> None:
        self.taken += len(data)
        if len(data) > MAX_FILE or self.taken > MAX_TOTAL:
            raise TooMuchTextError


def _is_archive(path: tuple[str, ...]) -> bool:
    return len(path) == 2 and path[0] == CHARTS and path[-1].endswith(_ARCHIVES)


def _found(chart: Path, *, is_package: bool) -> Iterator[tuple[tuple[str, ...], Path]]:
    root = os.fspath(chart)
    # A circle of links ends at the limit of files, or when the name gets too long.
    for here, folders, files in os.walk(root, followlinks=True):
        above = () if here == root else Path(here).relative_to(chart).parts
        if not above and is_package:
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            files = [name for name in files if name not in LEFT_OUT]  # noqa: PLW2901
        folders.sort()
        for name in sorted(files):
            yield (*above, name), Path(here, name)


def _content(path: Path) -> bytes:
    """Return the first MAX_FILE + 1 bytes of a file. If there are so many, the caller knows that the file is too large."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(MAX_FILE + 1)
    except OSError:
        return b""


def _unpacked(data: bytes, above: tuple[str, ...], room: _Room, depth: int) -> Iterator[ChartFile]:
    """Yield the files of an archive that lies in the folder ``above``."""
    try:
        unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(data, MAX_FILE + 1)
    except zlib.error:
        return
    room.take(unpacked)
    for path, content in _members(unpacked):
        room.count()
        inner = ChartFile((*above, *path), content)
        if not _is_archive(inner.inside):
            yield inner
        elif depth >= MAX_NESTED:
            raise TooMuchTextError
        else:
            yield from _unpacked(content, inner.path[:-1], room, depth + 1)


def _members(unpacked: bytes) -> Iterator[tuple[tuple[str, ...], bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() and not member.issparse() else None
                path = tuple(part for part in member.name.split("/") if part not in {"", "."})
                if file is not None and path:
                    yield path, file.read()
    except (tarfile.TarError, OSError, ValueError, EOFError):
        return
