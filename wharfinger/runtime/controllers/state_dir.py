"""The state folder, used by one daemon at a time: mode 0700, and locked for as long as the process lives."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from wharfinger.formats.terminal_text import printable
from wharfinger.process.remove_tree import remove_tree


class StartError(Exception):
    """A reason why the daemon cannot start; the message says what to change."""


_REMEDY: Final = "choose another with --state-dir or WHARFINGER_STATE_DIR"
_LOCK: Final = "lock"
_PID_BYTES: Final = 20
_MARKS: Final = ("journal.db", "embedded/data.db")
"""The files that show that a daemon has used the folder, even if the lock was deleted or not copied. One of them is enough."""
_OF_EACH_START: Final = frozenset({_LOCK, "journal.db", "journal.db-wal", "journal.db-shm", "scratch", "run"})
"""Files and folders that a daemon makes before it connects to the cluster."""
_OF_FILE_SYSTEMS: Final = frozenset({"lost+found", ".snapshot"})
"""Folders that a file system makes in a new volume. A state folder with only such folders counts as empty."""
_SHOWN: Final = 3


class StateDirError(StartError):
    """A reason why the state folder cannot be used."""


def empty_folder(path: Path) -> Path:
    """Make an empty folder of mode 0700; delete the content of an existing one. Raises StateDirError."""
    try:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise StateDirError(f"{path}: cannot be emptied: {error.strerror}; delete the folder by hand") from error
    return path


@contextmanager
def hold_state_dir(path: Path) -> Iterator[Path]:
    """Make the folder (0700) and hold its lock; the kernel drops the lock when the process ends, however it ends.

    If the block raises, a folder that this call has made is removed again, unless the daemon has already written its identity,
    packages or the data of an embedded control plane to it.

    Raises StateDirError if the folder cannot be made or written, if it has files of another program, or if another daemon
    holds it.
    """
    is_new = not path.exists()
    with _state_errors(path):
        if not is_new and not path.is_dir():
            raise StateDirError(f"state folder {path}: it is a file, not a folder; {_REMEDY}")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_new:
            _check_owner(path)
        path.chmod(0o700)
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip() or "unknown"
            raise StateDirError(
                f"state folder {path} is in use by another daemon (pid {holder}); stop it, or choose another folder with "
                "--state-dir"
            ) from error
        with _state_errors(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield path
    except BaseException:
        if is_new:
            _remove_unused(path)
        raise
    finally:
        os.close(descriptor)


def _remove_unused(path: Path) -> None:
    """Remove the folder if it contains only files that each start makes anew."""
    with suppress(OSError):
        if all(each.name in _OF_EACH_START for each in path.iterdir()):
            remove_tree(path)


@contextmanager
def _state_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateDirError(f"state folder {path}: {error.strerror}; {_REMEDY}") from error


def _check_owner(path: Path) -> None:
    """Raise StateDirError if the folder has files, and none of them shows that a daemon has used the folder."""
    names = sorted(each.name for each in path.iterdir() if each.name not in {*_OF_FILE_SYSTEMS, _LOCK})
    if names and not _is_lock(path / _LOCK) and not any((path / mark).exists() for mark in _MARKS):
        shown = ", ".join(map(printable, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
        raise StateDirError(
            f"state folder {path}: it has files of another program ({shown}); name an empty folder or a new one"
        )


def _is_lock(path: Path) -> bool:
    """Return whether the file contains a process id, as a daemon's lock does. Lock files of other programs are usually empty."""
    return path.is_file() and path.read_bytes()[:_PID_BYTES].strip().isdigit()
