"""Detection of changes in a local folder, by a cheap stamp or by a digest of the folder's content.

The stamp is made from the metadata of each file, such as size, times and mode, without reading contents. It changes whenever the
content changes, but also if files are written again with the same content. The digest covers names, contents and executable bits,
and is the same on every machine with the same files. The digest is slow, so callers compute it again only if the stamp has
changed.

For a link, the digest covers the path that the link contains and, if the path leads to a file, the content of the file. Linked
folders are not entered.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wharfinger.packages.errors import ArtifactError

MAX_PATHS: Final = 50_000
CHUNK: Final = 1024 * 1024


def folder_stamp(folder: Path) -> str:
    """Return a text that changes whenever something in the folder may have changed. Blocking. Raises ArtifactError."""
    found = hashlib.sha256()
    try:
        for name, path in _paths(folder):
            said = path.lstat()
            found.update(_entry(name, path, said.st_mode))
            found.update(f"{said.st_ino} {said.st_size} {said.st_mtime_ns} {said.st_ctime_ns}\n".encode())
            if stat.S_ISLNK(said.st_mode) and path.is_file():
                there = path.stat()
                found.update(f"{there.st_ino} {there.st_size} {there.st_mtime_ns} {there.st_ctime_ns}\n".encode())
    except OSError as error:
        raise _unreadable(folder, error) from error
    return found.hexdigest()


def folder_digest(folder: Path) -> str:
    """Return ``sha256:…`` of the files' names, contents and executable bits. Blocking. Raises ArtifactError."""
    found = hashlib.sha256()
    try:
        for name, path in _paths(folder):
            found.update(_entry(name, path, path.lstat().st_mode))
            if path.is_file():
                found.update(_content(path))
    except OSError as error:
        raise _unreadable(folder, error) from error
    return f"sha256:{found.hexdigest()}"


def _paths(folder: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield all paths below the folder in a fixed order, each with its name relative to the folder.

    Raises ArtifactError, OSError.
    """
    root = folder.resolve(strict=True)
    pending, count = [root], 0
    while pending:
        with os.scandir(pending.pop()) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
        count += len(inside)
        if count > MAX_PATHS:
            raise ArtifactError(f"{folder}: more than {MAX_PATHS} files and folders")
        for entry in inside:
            path = Path(entry.path)
            yield os.fsencode(path.relative_to(root)), path
            if entry.is_dir(follow_symlinks=False):
                pending.append(path)


def _entry(name: bytes, path: Path, mode: int) -> bytes:
    """Return an unambiguous encoding of an entry as bytes."""
    kind = stat.S_IFMT(mode) | (mode & stat.S_IXUSR)
    target = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else b""
    return b"%o %d %s %d %s\n" % (kind, len(name), name, len(target), target)


def _content(path: Path) -> bytes:
    of_file = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            of_file.update(chunk)
    return of_file.digest()


def _unreadable(folder: Path, error: OSError) -> ArtifactError:
    return ArtifactError(f"{error.filename or folder}: cannot be read: {error.strerror}")
