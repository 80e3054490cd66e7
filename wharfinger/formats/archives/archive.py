"""The unpacking of untrusted tars into a folder: a single tar, or several as the layers of an image. Invalid tars are refused.

Three modules check an archive, each within limits: ``archive_stream`` (bytes, gzip), ``tar_reader`` (entries) and
``archive_tree`` (allowed paths). This module writes the entries that these modules allow. It creates only new files and never
follows a link. It keeps whether a file is executable, and ignores the rest of the file's mode, its owner and its times.

The caller provides an empty folder, into which no other process writes meanwhile. After an error the content of the folder is
partial and must be thrown away. So unpack into a temporary folder beside the final one, then rename it.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from wharfinger.formats.archives.archive_stream import ArchiveStream, Readable, StreamLimits
from wharfinger.formats.archives.archive_tree import ArchiveTree, Placed, TreeLimits, TreePath
from wharfinger.formats.archives.tar_reader import BLOCK, Entry, Kind, TarReader
from wharfinger.formats.errors import ArchiveError

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_EXECUTABLE_MODE: Final = 0o700


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of one archive, or of all layers of an image together.

    ``max_bytes`` limits the total size of all files, and also, with an allowance for headers, the size of the input. A hard link
    counts as a separate file, because a reader of the tree reads it again. ``max_file_bytes`` is for a single file.
    ``max_entries`` counts files, folders and links, including parent folders that have no entry in the archive. ``max_ratio`` is
    the highest ratio of gzip's output to its input, checked once the output exceeds 1 MiB (deflate itself reaches at most about
    1030). ``max_depth`` limits the number of components of a name, ``max_name_bytes`` the bytes of a name or link target, and
    ``max_header_bytes`` the bytes of one extension header.
    """

    max_bytes: int = 512 * 1024 * 1024
    max_file_bytes: int = 512 * 1024 * 1024
    max_entries: int = 50_000
    max_ratio: int = 200
    max_depth: int = 64
    max_name_bytes: int = 1024
    max_header_bytes: int = 64 * 1024


DEFAULT_LIMITS: Final = ArchiveLimits()


@dataclass(frozen=True, slots=True)
class ExtractReport:
    """The numbers of unpacked entries and bytes.

    ``folders`` includes parent folders without an entry, ``file_bytes`` is the number of bytes written to files. For layers,
    the numbers include entries that a later layer removed again.
    """

    files: int
    folders: int
    symbolic_links: int
    hard_links: int
    file_bytes: int
    archive_bytes: int
    is_gzip: bool


def extract_tar(
    stream: Readable,
    into: Path,
    limits: ArchiveLimits = DEFAULT_LIMITS,
    *,
    what: str,
    within_top: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> ExtractReport:
    """Unpack the tar or tar.gz in ``stream`` into ``into``, which is created if it does not exist, and must be empty.

    Set ``within_top`` if the top folder will be moved elsewhere: then no link may lead through anything beside or above the top
    folder. Blocking: call it in a thread. ``should_stop`` is called at least once per 64 KiB. Raises ArchiveError (which names
    the archive by ``what``), ExtractionStoppedError, and OSError for a folder that is not empty, a full disk, or a stream that
    fails to read.
    """
    with _empty_folder(into) as root:
        extraction = _Extraction(root, limits, what, should_stop)
        extraction.unpack(stream)
        return extraction.finish(within_top=within_top)


def extract_layers(
    layers: Iterable[tuple[str, Readable]],
    into: Path,
    limits: ArchiveLimits = DEFAULT_LIMITS,
    *,
    what: str,
    should_stop: Callable[[], bool] = lambda: False,
) -> ExtractReport:
    """Unpack the layers of an image on top of each other, the lowest first. Each layer is a pair: its name for errors, and its
    stream.

    Whiteouts are applied. Everything else is as in `extract_tar`; the limits are for all layers together.
    """
    with _empty_folder(into) as root:
        extraction = _Extraction(root, limits, what, should_stop)
        for name, stream in layers:
            extraction.unpack_layer(name, stream)
        return extraction.finish()


@contextmanager
def _empty_folder(into: Path) -> Iterator[int]:
    into.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    root = os.open(into, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.listdir(root):  # noqa: PTH208 - lists the open folder, not another one of the same name
            raise FileExistsError(f"{into}: not empty; an archive is unpacked into an empty folder")
        yield root
    finally:
        os.close(root)


class _Extraction:
    def __init__(self, root: int, limits: ArchiveLimits, what: str, should_stop: Callable[[], bool]) -> None:
        # An entry costs a header, a pax header with its own block, and padding.
        overhead = limits.max_entries * 4 * BLOCK + 1024 * 1024
        self._to_read = self._to_unpack = limits.max_bytes + overhead
        self._tree = ArchiveTree(TreeLimits(limits.max_entries, limits.max_depth, limits.max_name_bytes), what=what)
        self._root = root
        self._limits = limits
        self._what = what
        self._should_stop = should_stop
        self._made = dict.fromkeys(Kind, 0)
        self._entries = 0
        self._file_bytes = 0
        self._linked_bytes = 0
        self._archive_bytes = 0
        self._is_gzip = False

    def unpack(self, stream: Readable) -> None:
        """Unpack one whole archive."""
        self._unpack(stream, layered=False)

    def unpack_layer(self, what: str, stream: Readable) -> None:
        """Unpack one archive on top of the existing tree."""
        self._what = what
        self._tree.begin_layer(what)
        self._unpack(stream, layered=True)

    def finish(self, *, within_top: bool = False) -> ExtractReport:
        """Check all links and return the report. Call this method when everything is unpacked."""
        self._tree.check_links(within_top=within_top)
        return ExtractReport(
            files=self._made[Kind.FILE],
            folders=self._made[Kind.DIRECTORY],
            symbolic_links=self._made[Kind.SYMLINK],
            hard_links=self._made[Kind.HARD_LINK],
            file_bytes=self._file_bytes,
            archive_bytes=self._archive_bytes,
            is_gzip=self._is_gzip,
        )

    def _unpack(self, source: Readable, *, layered: bool) -> None:
        allowed = StreamLimits(
            self._to_read, self._to_unpack, 4 * self._limits.max_entries + 16, self._limits.max_ratio
        )
        stream = ArchiveStream(source, allowed, what=self._what, should_stop=self._should_stop)
        reader = TarReader(stream, what=self._what, max_header_bytes=self._limits.max_header_bytes)
        while (entry := reader.next_entry()) is not None:
            self._entries += 1
            if self._entries > self._limits.max_entries:
                raise ArchiveError(f"{self._what}: more than {self._limits.max_entries} entries")
            hidden = self._tree.hidden_by(entry) if layered else None
            if hidden is None:
                self._extract(entry, self._tree.place(entry), stream)
                reader.skip_padding(entry.size)
            for path in hidden or ():
                self._remove(path)
        stream.drain()
        self._to_read -= stream.bytes_read
        self._to_unpack -= stream.bytes_out
        self._archive_bytes += stream.bytes_read
        self._is_gzip |= stream.is_gzip

    def _extract(self, entry: Entry, placed: Placed, stream: ArchiveStream) -> None:
        if placed.replaces:
            self._remove(placed.path)
        for parent in placed.new_parents:
            self._make_folder(parent)
        if entry.kind is Kind.DIRECTORY:
            if not placed.is_there:
                self._make_folder(placed.path)
            return
        path = "/".join(placed.path)
        if placed.is_there:
            # The later entry counts. The old name is removed first, so that a file linked to it keeps its content.
            os.unlink(path, dir_fd=self._root)
        else:
            self._made[entry.kind] += 1
        match entry.kind:
            case Kind.FILE:
                self._write_file(entry, path, stream)
            case Kind.SYMLINK:
                os.symlink(entry.target, path, dir_fd=self._root)
            case Kind.HARD_LINK:
                source = "/".join(placed.source)
                self._linked_bytes += os.stat(source, dir_fd=self._root, follow_symlinks=False).st_size
                self._check_bytes()
                os.link(
                    source,
                    path,
                    src_dir_fd=self._root,
                    dst_dir_fd=self._root,
                    follow_symlinks=False,
                )
            case _:
                assert_never(entry.kind)

    def _make_folder(self, path: TreePath) -> None:
        os.mkdir("/".join(path), _FOLDER_MODE, dir_fd=self._root)
        self._made[Kind.DIRECTORY] += 1

    def _remove(self, path: TreePath) -> None:
        name = "/".join(path)
        if stat.S_ISDIR(os.lstat(name, dir_fd=self._root).st_mode):
            shutil.rmtree(name, dir_fd=self._root)
        else:
            os.unlink(name, dir_fd=self._root)

    def _check_bytes(self) -> None:
        if self._file_bytes + self._linked_bytes > self._limits.max_bytes:
            raise ArchiveError(f"{self._what}: its files have more than {self._limits.max_bytes} bytes")

    def _write_file(self, entry: Entry, path: str, stream: ArchiveStream) -> None:
        if entry.size > self._limits.max_file_bytes:
            raise ArchiveError(
                f"{self._what}: entry {entry.name!r} has {entry.size} bytes; the limit is {self._limits.max_file_bytes}"
            )
        self._file_bytes += entry.size
        self._check_bytes()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        mode = _EXECUTABLE_MODE if entry.is_executable else _FILE_MODE
        descriptor = os.open(path, flags, mode, dir_fd=self._root)
        try:
            os.fchmod(descriptor, mode)
            for piece in stream.pieces(entry.size):
                _write_all(descriptor, piece)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
