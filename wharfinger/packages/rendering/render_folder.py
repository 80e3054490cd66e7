"""The folder in which renders are kept: bounded, and of no more use to others than its mode allows. Blocking.

Manifests hold secrets, so the folder is 0700 and ours, and each file 0600. A file gets its name by a rename, when it is complete;
it is not synced, as its digest tells what a crash left. What is not a file of ours, or not what its line says, is removed and was
never there. When it was used last is the file's own time, so that a daemon that begins anew forgets the right ones.

A disk that refuses costs renders and nothing else: faults are counted, with the last one's words.
"""

import errno
import os
import re
import secrets
import stat
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.packages.files.disk_files import discard
from wharfinger.packages.rendering.render_entry import EntryError, read_entry, write_entry

SUFFIX: Final = ".render"
_TEMPORARY: Final = ".part"
_NAME: Final = re.compile(r"([0-9a-f]{64})\.render\Z")
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
MAX_SEEN: Final = 200_000
"""Names that are looked at when the folder is opened."""


@dataclass(frozen=True, slots=True)
class FolderStatistics:
    """What is there, what was removed because it was wrong, and how often the disk refused."""

    entries: int
    bytes: int
    refused: int
    faults: int
    last_fault: str


class RenderFolder:
    """Files by key, the longest unused first; one thread at a time."""

    def __init__(self, path: Path, max_entries: int, max_bytes: int) -> None:
        self._path = path
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._sizes: OrderedDict[str, int] | None = None
        self._bytes = 0
        self._refused = 0
        self._faults = 0
        self._last_fault = ""

    def get(self, key: str) -> bytes | None:
        """What was put there under this key, checked; None for nothing."""
        with self._faults_counted():
            sizes = self._opened()
            if key not in sizes:
                return None
            sizes.move_to_end(key)
            data = self._read(key)
            if data is not None:
                return data
            self._remove(sizes, key)
        return None

    def put(self, key: str, packed: bytes) -> None:
        """Keep it, and remove what is too much then."""
        data = write_entry(key, packed)
        if len(data) > self._max_bytes or self._max_entries < 1:
            return
        with self._faults_counted():
            sizes = self._opened()
            self._write(key, data)
            self._bytes -= sizes.pop(key, 0)
            sizes[key] = len(data)
            self._bytes += len(data)
            self._shrink(sizes)

    def drop(self, key: str) -> None:
        """Remove what cannot be used though it is what was written."""
        with self._faults_counted():
            self._remove(self._opened(), key)

    def statistics(self) -> FolderStatistics:
        """Numbers of now."""
        return FolderStatistics(len(self._sizes or ()), self._bytes, self._refused, self._faults, self._last_fault)

    # -- the files ------------------------------------------------------------------------------------------------

    def _opened(self) -> OrderedDict[str, int]:
        """The sizes of what is there, by key; made with the folder when it is first asked for."""
        if self._sizes is None:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = self._path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                raise OSError(f"{self._path} is not a folder of this user")
            self._path.chmod(0o700)
            self._sizes = self._scanned()
            self._shrink(self._sizes)
        return self._sizes

    def _scanned(self) -> OrderedDict[str, int]:
        found: list[tuple[int, str, int]] = []
        with os.scandir(self._path) as entries:
            for seen, entry in enumerate(entries):
                name = _NAME.match(entry.name)
                if name is None or seen >= MAX_SEEN:
                    if entry.name.endswith((SUFFIX, _TEMPORARY)):
                        discard(Path(entry.path))
                    continue
                status = entry.stat(follow_symlinks=False)
                if _is_ours(status):
                    found.append((status.st_mtime_ns, name[1], status.st_size))
                else:
                    self._refused += 1
                    discard(Path(entry.path))
        self._bytes = sum(size for _, _, size in found)
        return OrderedDict((key, size) for _, key, size in sorted(found))

    def _read(self, key: str) -> bytes | None:
        """The content of a file that is what it says, or None."""
        try:
            descriptor = os.open(self._file(key), _READ)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            self._refused += 1  # a link
            return None
        try:
            status = os.fstat(descriptor)
            if _is_ours(status) and status.st_size <= self._max_bytes:
                with suppress(EntryError):
                    packed = read_entry(key, _content(descriptor, status.st_size))
                    os.utime(descriptor)
                    return packed
        finally:
            os.close(descriptor)
        self._refused += 1
        return None

    def _write(self, key: str, data: bytes) -> None:
        temporary = self._path / f".{key[:16]}-{secrets.token_hex(8)}{_TEMPORARY}"
        try:
            with os.fdopen(os.open(temporary, _WRITE, 0o600), "wb") as file:
                file.write(data)
            try:
                temporary.replace(self._file(key))
            except IsADirectoryError:
                discard(self._file(key))
                temporary.replace(self._file(key))
        finally:
            discard(temporary)

    def _shrink(self, sizes: OrderedDict[str, int]) -> None:
        while sizes and (len(sizes) > self._max_entries or self._bytes > self._max_bytes):
            self._remove(sizes, next(iter(sizes)))

    def _remove(self, sizes: OrderedDict[str, int], key: str) -> None:
        self._bytes -= sizes.pop(key, 0)
        discard(self._file(key))

    def _file(self, key: str) -> Path:
        return self._path / f"{key}{SUFFIX}"

    @contextmanager
    def _faults_counted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._faults += 1
            self._last_fault = error.strerror or str(error)
            if isinstance(error, FileNotFoundError):
                self._sizes = None  # somebody removed the folder; it is made again when it is next asked for


def _content(descriptor: int, size: int) -> bytes:
    """All of a file, or one byte more than it had; short where it has become shorter."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(size + 1)


def _is_ours(status: os.stat_result) -> bool:
    """A plain file of this user that nobody else can read or write, by no other name."""
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
        and status.st_nlink <= 1  # 0: replaced since it was opened
    )
