"""What the store does with files, synchronously: publish by rename, verify, list, delete. Runs in threads.

A rename publishes: before it, what it publishes is on the disk (fsync of files and folders); after it, so is the name (fsync
of the folder the name is in). Whatever the disk refuses becomes a StoreError that says what to do.
"""

import errno
import hashlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from wharfinger.packages.errors import StoreError

_REMEDIES: Final = {
    errno.ENOSPC: "the disk is full: make room, or move the state folder (--state-dir)",
    errno.EDQUOT: "the quota is used up: make room, or raise it",
    errno.EACCES: "no permission: give the daemon's user the state folder",
    errno.EPERM: "no permission: give the daemon's user the state folder",
    errno.EROFS: "the file system is read-only: mount it writable, or choose another --state-dir",
    errno.EIO: "the disk fails to read or write: check it",
    errno.EMFILE: "too many open files: raise the limit (LimitNOFILE)",
    errno.ENFILE: "too many open files on this machine: raise fs.file-max",
    errno.ENAMETOOLONG: "the path is too long: choose a shorter --state-dir",
}


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn an OSError into a StoreError; ``doing`` says what was being done to what."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        remedy = _REMEDIES.get(error.errno or 0, "check the state folder")
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(f"{doing}: {why}{where}; {remedy}") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's content last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make a folder and all that is in it last."""
    for here, _, files in os.walk(folder):
        for name in files:
            path = Path(here) / name
            if stat.S_ISREG(path.lstat().st_mode):
                sync_file(path)
        sync_folder(Path(here))


def publish(temporary: Path, final: Path) -> None:
    """Give what is complete and synced its name, atomically: a file or link replaces what has the name, a folder must not."""
    temporary.rename(final)
    sync_folder(final.parent)


def matches(file: io.BufferedReader, hexdigest: str, size: int) -> bool:
    """Whether the rest of an open file has this size and sha256."""
    return os.fstat(file.fileno()).st_size == size and hashlib.file_digest(file, "sha256").hexdigest() == hexdigest


def content_digest(folder: Path) -> str:
    """sha256 over every name below a folder: kind, whether it can be executed, and content (of a link: its target)."""
    whole = hashlib.sha256()
    for path in sorted(_below(folder)):
        name = path.relative_to(folder).as_posix()
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            kind, content = "link", hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        elif stat.S_ISREG(status.st_mode):
            kind = "program" if status.st_mode & stat.S_IXUSR else "file"
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            kind, content = "folder" if stat.S_ISDIR(status.st_mode) else "other", ""
        whole.update(b"\0".join((kind.encode(), os.fsencode(name), content.encode(), b"")))
    return whole.hexdigest()


def delete(path: Path, trash: Path) -> bool:
    """Delete a file, link or folder; False where there is none. A folder loses its name first, so none is seen half gone."""
    try:
        path.rename(trash)
    except FileNotFoundError:
        return False
    if trash.is_dir() and not trash.is_symlink():
        shutil.rmtree(trash)
    else:
        trash.unlink()
    return True


def discard(path: Path) -> None:
    """Delete a temporary file or folder as far as that is possible; what stays is left to `collect`."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _below(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        yield from (Path(here) / name for name in (*folders, *files))
