"""The store's synchronous operations on files: publish by rename, verify, list, delete. They run in threads.

A folder or file is published by a rename. Before the rename, its content is synced to the disk (fsync of files and folders);
after the rename, its name (fsync of the folder around it). `disk_errors` turns disk errors into StoreErrors that name a remedy.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from wharfinger.formats.archives.archive_stream import ExtractionStoppedError
from wharfinger.packages.errors import StoreError
from wharfinger.process.remove_tree import remove_tree

MAX_NAMES: Final = 200_000
MAX_DEEP: Final = 100
"""The limits of a tree: the number of names, and of nested folders. They are higher than the limits for archives."""

ShouldStop: TypeAlias = Callable[[], bool]

_CHUNK: Final = 1024 * 1024
_PART: Final = 64 * 1024

_REMEDIES: Final = {
    errno.ENOSPC: "the disk is full: free some space, or move the state folder (--state-dir)",
    errno.EDQUOT: "the quota is used up: free some space, or raise the quota",
    errno.EACCES: "no permission: give the daemon's user access to the state folder",
    errno.EPERM: "no permission: give the daemon's user access to the state folder",
    errno.EROFS: "the file system is read-only: mount it writable, or choose another --state-dir",
    errno.EIO: "the disk fails to read or write: check it",
    errno.EMFILE: "too many open files: raise the limit (LimitNOFILE)",
    errno.ENFILE: "too many open files on this machine: raise fs.file-max",
    errno.ENAMETOOLONG: "the path is too long: choose a shorter --state-dir",
}


def _never() -> bool:
    return False


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn an OSError into a StoreError; ``doing`` names the operation and its target."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        remedy = _REMEDIES.get(error.errno or 0, "check the state folder")
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(f"{doing}: {why}{where}; {remedy}") from error


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in it survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Sync a file's content, so that it survives a crash."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync a folder and everything in it, so that they survive a crash."""
    for path, _, status in _below(folder):
        if stat.S_ISREG(status.st_mode):
            sync_file(path)
        elif stat.S_ISDIR(status.st_mode):
            sync_folder(path)
    sync_folder(folder)


def publish(temporary: Path, final: Path) -> None:
    """Rename complete and synced content to its final name, atomically.

    A file or link replaces an existing one of that name; for a folder, the name must be free.
    """
    temporary.rename(final)
    sync_folder(final.parent)


def replace_tree(temporary: Path, final: Path, trash: Path) -> None:
    """Replace a folder by a new one, as `publish` does, and move the old folder to ``trash``. Between the two renames, the name
    does not exist.
    """
    with suppress(FileNotFoundError):
        final.rename(trash)
    publish(temporary, final)


def make_read_only(folder: Path) -> None:
    """Remove all write permissions from a folder and everything in it, so that programs in it, such as hooks, do not change it.

    The superuser can still write. `discard` and `delete` also remove read-only files.
    """
    for path, _, status in ((folder, (), folder.lstat()), *_below(folder)):
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            path.chmod(stat.S_IMODE(status.st_mode) & ~0o222)


def read_start(path: str, size: int) -> bytes:
    """Return the content of a file, at most its first ``size`` bytes. For many small files, this is faster than `open`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts: list[bytes] = []
        while size > 0 and (part := os.read(descriptor, min(size, _PART))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def has_content(file: BinaryIO, hexdigest: str, size: int, should_stop: ShouldStop = _never) -> bool:
    """Return whether a file, open at its start, has this size and sha256. Raises ExtractionStoppedError."""
    return os.fstat(file.fileno()).st_size == size and _digest(file, should_stop) == hexdigest


def content_digest(folder: Path, should_stop: ShouldStop = _never) -> str | None:
    """Return one sha256 of everything below a folder, or None if the folder is over a limit.

    It covers each entry's name, kind, executable bit, and content; for a link, it covers the target instead of the content. The
    limits are MAX_NAMES names and MAX_DEEP nested folders, which no unpacked package exceeds. A file with several hard links is
    read once. Raises ExtractionStoppedError.
    """
    whole = hashlib.sha256()
    known: dict[tuple[int, int], str] = {}
    try:
        below = sorted(_below(folder), key=itemgetter(1))
    except _TooManyError:
        return None
    for path, name, status in below:
        if stat.S_ISLNK(status.st_mode):
            kind, content = "link", hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        elif stat.S_ISREG(status.st_mode):
            kind = "program" if status.st_mode & stat.S_IXUSR else "file"
            inode = (status.st_dev, status.st_ino)
            if inode not in known:
                with path.open("rb") as file:
                    known[inode] = _digest(file, should_stop)
            content = known[inode]
        else:
            kind, content = "folder" if stat.S_ISDIR(status.st_mode) else "other", ""
        whole.update(b"\0".join((kind.encode(), os.fsencode("/".join(name)), content.encode(), b"")))
    return whole.hexdigest()


def changed_since(folder: Path, record: Path) -> list[str]:
    """Return the sorted names of the entries below a folder that have changed since the file ``record`` was written.

    New content, a new name and a new mode count as changes.
    """
    written = record.stat().st_mtime_ns
    try:
        return sorted("/".join(name) for _, name, status in _below(folder) if status.st_ctime_ns > written)
    except _TooManyError:
        return [f"more than {MAX_NAMES} names, or deeper than {MAX_DEEP} folders"]


def delete(path: Path, trash: Path) -> bool:
    """Delete a file, link or folder; return False if it does not exist.

    First ``path`` is renamed to ``trash``, so that no reader finds a folder that is half deleted.
    """
    try:
        path.rename(trash)
    except FileNotFoundError:
        return False
    if trash.is_dir() and not trash.is_symlink():
        remove_tree(trash)
    else:
        trash.unlink()
    return True


def discard(path: Path) -> None:
    """Delete a temporary file or folder as far as possible; the `collect` of a store deletes the rest."""
    try:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return


def _digest(file: BinaryIO, should_stop: ShouldStop) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        if should_stop():
            raise ExtractionStoppedError
        digest.update(chunk)
    return digest.hexdigest()


class _TooManyError(Exception):
    """More than MAX_NAMES names, or more than MAX_DEEP nested folders."""


def _below(folder: Path) -> Iterator[tuple[Path, tuple[str, ...], os.stat_result]]:
    """Yield everything below a folder, each with its path, its name relative to the folder, and its status; links are not
    followed.
    """
    count = 0
    pending: list[tuple[Path, tuple[str, ...]]] = [(folder, ())]
    while pending:
        here, prefix = pending.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                count += 1
                if count > MAX_NAMES or len(prefix) >= MAX_DEEP:
                    raise _TooManyError
                path, name = here / entry.name, (*prefix, entry.name)
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append((path, name))
                yield path, name, status
