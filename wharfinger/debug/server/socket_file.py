"""The debug socket as a file: it is private from its creation, and replaces the file of a dead daemon, but never the file of a
running one.

* The socket has mode 0600 before it has a name. Linux creates the socket file with the mode of the socket, so other users can
  never open it, whatever the umask is.
* A socket file outlives a daemon that is killed. A file that no process listens on is removed; if a process listens, that is an
  error.
* The check, the removal and the bind happen under a lock on the folder, so if two daemons start at the same time, one of
  them fails with a clear error.
* At the end the file is removed only if it is still the one that was created here.
"""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.debug.errors import DebugSocketError
from wharfinger.runtime.paths import SOCKET_VARIABLE, too_long_socket

_BACKLOG: Final = 64


@dataclass(frozen=True, slots=True)
class SocketFile:
    """A bound, listening socket, and its file."""

    path: Path
    socket: socket.socket
    device: int
    inode: int


def bind_socket_file(path: Path) -> SocketFile:
    """Listen on ``path``. Its folder is created (0700) if it is missing.

    Raises DebugSocketError if this is not possible, for example because the path is too long, other users may write to the
    folder, a running daemon listens on the path, or the path is another kind of file.
    """
    if problem := too_long_socket(path):
        raise DebugSocketError(
            f"debug socket {path}: {problem}; choose a shorter one with --socket or a shorter --state-dir"
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked_folder(path.parent):
            _check_folder(path.parent)
            _remove_stale(path)
            return _bind(path)
    except DebugSocketError:
        raise
    except BlockingIOError as error:
        raise DebugSocketError(f"debug socket {path}: another daemon is starting there; try again") from error
    except OSError as error:
        raise DebugSocketError(
            f"debug socket {path}: {error.strerror or error}; choose another with --socket"
        ) from error


def remove_socket_file(file: SocketFile) -> None:
    """Remove the file if it is still the one that this process created. Call it while the socket is open, so that no other file
    can have its inode.

    A file that cannot be removed is kept; the next daemon replaces it.
    """
    with suppress(OSError), _locked_folder(file.path.parent):
        found = os.lstat(file.path)
        if (found.st_dev, found.st_ino) == (file.device, file.inode):
            file.path.unlink()


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Do not wait for the lock: any process that can read the folder could hold it forever.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _check_folder(folder: Path) -> None:
    found = folder.stat()
    if found.st_uid not in {os.geteuid(), 0}:
        raise DebugSocketError(
            f"the folder {folder} of the debug socket belongs to user {found.st_uid};"
            " choose a socket in a folder of your own with --socket"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DebugSocketError(
            f"others may write to the folder {folder} of the debug socket (mode {stat.S_IMODE(found.st_mode):04o})"
            " and could put their own socket in its place; choose one in a folder of your own with --socket"
        )


def _remove_stale(path: Path) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise DebugSocketError(f"{path} exists and is not a socket; move it away or choose another with --socket")
    if _answers(path):
        named = os.environ.get(SOCKET_VARIABLE, "")
        by_variable = bool(named) and Path(named).resolve() == path.resolve()
        remedy = (
            f"unset {SOCKET_VARIABLE}, which names it"
            if by_variable
            else "start this daemon with another --state-dir or --socket"
        )
        raise DebugSocketError(f"another daemon answers on {path}; stop it, or {remedy}")
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        result = probe.connect_ex(os.fspath(path))
    if result == errno.ECONNREFUSED:
        return False
    if result in {0, errno.EAGAIN}:  # EAGAIN: the daemon is alive and its backlog is full
        return True
    raise OSError(result, os.strerror(result))


def _bind(path: Path) -> SocketFile:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(os.fspath(path))
        listening.listen(_BACKLOG)
        found = os.lstat(path)
    except BaseException:
        listening.close()
        raise
    return SocketFile(path, listening, found.st_dev, found.st_ino)
