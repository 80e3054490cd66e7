"""The state folder, used by one daemon at a time: mode 0700, and locked for as long as the process lives."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wharfinger.process.remove_tree import remove_tree


class StartError(Exception):
    """A reason why the daemon cannot start; the message says what to change."""


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

    Raises StateDirError if the folder cannot be made or another daemon holds it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateDirError(
            f"state folder {path}: {error.strerror}; choose another with --state-dir or WHARFINGER_STATE_DIR"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise StateDirError(
                f"state folder {path} is in use by another daemon (pid {holder}); stop it, or choose another folder with "
                "--state-dir"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield path
    finally:
        os.close(descriptor)
