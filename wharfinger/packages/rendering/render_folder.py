"""The folder of cached renders: bounded, and not readable by other users. Blocking.

Manifests hold secrets, so the folder has mode 0700 and belongs to this user, and each file has mode 0600. A file is renamed
into place when it is complete. It is not synced: its first line has the digest and the length of the rest, which shows whether
a crash has damaged the file. A file that is damaged, or is not from this cache, is removed and treated as missing. A file's
modification time is that of its last use, so that a restarted daemon knows which files were not used for the longest time.

Several processes may use a folder at the same time. Each process finds the entries of the others, and keeps the folder within the
limits, as far as it knows the content: the files at its first scan, and those that it has read or written since.

Disk errors only cost additional renders: they are counted, and the last message is kept.
"""

import errno
import os
import re
import secrets
import stat
import time
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
PART_AGE_S: Final = 600.0
"""The age, in seconds, after which an incomplete file counts as left over from a crash."""
USE_AGE_S: Final = 3600.0
"""The precision, in seconds, of the time at which a file was last used. To record each use would take too many writes."""
MAX_SEEN: Final = 200_000
"""The largest number of names that are read when the folder is scanned; entries beyond it are deleted."""


@dataclass(frozen=True, slots=True)
class FolderStatistics:
    """The state of a folder of cached renders: ``entries`` and ``bytes`` are the number and the total size of its entries.

    ``refused`` is the number of invalid files that were removed. ``faults`` is the number of disk errors, and ``last_fault`` is
    the text of the last one.
    """

    entries: int
    bytes: int
    refused: int
    faults: int
    last_fault: str


class RenderFolder:
    """The cached files by key, the least recently used first. Only one thread may use this object at a time.

    With ``scan_first``, the folder is scanned before the first read, and not only before the first write. Then the statistics are
    complete, but the first read takes longer for a larger folder.
    """

    def __init__(self, path: Path, max_entries: int, max_bytes: int, *, scan_first: bool = True) -> None:
        self._path = path
        self._scan_first = scan_first
        self._is_placed = False
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._sizes: OrderedDict[str, int] | None = None
        self._bytes = 0
        self._refused = 0
        self._faults = 0
        self._last_fault = ""

    def get(self, key: str) -> bytes | None:
        """Return the content stored under this key, checked; None if the key is not stored."""
        packed = None
        with self._faults_counted():
            sizes = self._opened() if self._scan_first else self._placed()
            packed, size = self._read(key)
            if packed is None:
                self._forget(sizes, key)
            elif key in sizes:
                sizes.move_to_end(key)
            elif self._sizes is not None:  # another process has written it
                sizes[key] = size
                self._bytes += size
        return packed

    def put(self, key: str, packed: bytes) -> None:
        """Store an entry, and remove others to stay within the limits."""
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
        """Remove an entry that can be read, but whose content is of no use to the caller."""
        with self._faults_counted():
            self._remove(self._opened(), key)

    def statistics(self) -> FolderStatistics:
        """Return the current numbers."""
        return FolderStatistics(len(self._sizes or ()), self._bytes, self._refused, self._faults, self._last_fault)

    # -- the files ------------------------------------------------------------------------------------------------

    def _opened(self) -> OrderedDict[str, int]:
        """Return the sizes of entries by key; on the first call, make the folder and read the sizes."""
        self._placed()
        if self._sizes is None:
            self._sizes = self._scanned()
            self._shrink(self._sizes)
        return self._sizes

    def _placed(self) -> OrderedDict[str, int]:
        """Make and check the folder on the first call. Return the size of each entry; an empty dict until the folder was
        scanned.
        """
        if not self._is_placed:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = self._path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                raise OSError(f"{self._path} is not a folder that the user of this process owns")
            self._path.chmod(0o700)
            self._is_placed = True
        return OrderedDict() if self._sizes is None else self._sizes

    def _scanned(self) -> OrderedDict[str, int]:
        found: list[tuple[int, str, int]] = []
        with os.scandir(self._path) as entries:
            for seen, entry in enumerate(entries):
                name = _NAME.match(entry.name)
                if name is None or seen >= MAX_SEEN:
                    if entry.name.endswith(SUFFIX) or _is_remainder(entry):
                        discard(Path(entry.path))
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another process has removed it
                if _is_ours(status):
                    found.append((status.st_mtime_ns, name[1], status.st_size))
                else:
                    self._refused += 1
                    discard(Path(entry.path))
        self._bytes = sum(size for _, _, size in found)
        return OrderedDict((key, size) for _, key, size in sorted(found))

    def _read(self, key: str) -> tuple[bytes | None, int]:
        """Return the content of a file and its size; None if it does not exist or is not valid. An invalid file is removed."""
        try:
            descriptor = os.open(self._file(key), _READ)
        except FileNotFoundError:
            return None, 0
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            self._refuse(key)  # the name is a link
            return None, 0
        try:
            status = os.fstat(descriptor)
            if _is_ours(status) and status.st_size <= self._max_bytes:
                with suppress(EntryError):
                    packed = read_entry(key, _content(descriptor, status.st_size))
                    if abs(time.time() - status.st_mtime) > USE_AGE_S:
                        os.utime(descriptor)
                    return packed, status.st_size
        finally:
            os.close(descriptor)
        self._refuse(key)
        return None, 0

    def _refuse(self, key: str) -> None:
        self._refused += 1
        discard(self._file(key))

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
        self._forget(sizes, key)
        discard(self._file(key))

    def _forget(self, sizes: OrderedDict[str, int], key: str) -> None:
        self._bytes -= sizes.pop(key, 0)

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
                self._sizes, self._is_placed = None, False  # the folder was removed; it is made again on the next use


def _is_remainder(entry: os.DirEntry[str]) -> bool:
    """Return whether a file is incomplete and its writer has crashed."""
    if not entry.name.endswith(_TEMPORARY):
        return False
    with suppress(FileNotFoundError):  # its writer has completed and renamed it by now
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > PART_AGE_S
    return False


def _content(descriptor: int, size: int) -> bytes:
    """Return the content of a file; ``size`` is its expected size. If the file has grown, one byte more than ``size`` is
    returned.
    """
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(size + 1)


def _is_ours(status: os.stat_result) -> bool:
    """Return whether a file is a regular file of this user that has no second hard link, and that other users can neither read
    nor write.
    """
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not stat.S_IMODE(status.st_mode) & 0o077
        and status.st_nlink <= 1  # 0: replaced since it was opened
    )
