"""Users for hooks: each run gets a user from a range that only this daemon uses. Two runs never have the same user at the same
time.

A process can leave its session and its environment, but not its user. Everything that runs as the user of a run belongs to the
run, and is ended with it (:mod:`wharfinger.process.descendants`). Files that the user's processes left in public folders are
removed, and so are the user's objects in the kernel (`sysv_ipc`). Invariant: a user is assigned to a run only when no
process runs as this user any more. If a killed daemon or the last run may have left processes of a user, these processes are
ended first. Dead processes that are not reaped yet count towards the limit on processes, so a user with dead processes is
assigned only after they are reaped, or after _REAPED_S.

At first, the files of a package are readable by this daemon only. `open_tree` makes the files of one package readable for every
user.
"""

import os
import select
import stat
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import trio

from wharfinger.hooks.containment.sysv_ipc import remove_ipc_of
from wharfinger.hooks.errors import HookError
from wharfinger.process.command import User
from wharfinger.process.descendants import Mark, scan
from wharfinger.process.remove_tree import remove_tree
from wharfinger.process.sweep import sweep

PUBLIC_FOLDERS: Final = tuple(
    Path("/", *words) for words in (("tmp",), ("var", "tmp"), ("dev", "shm"), ("run", "lock"))
)
"""The folders in which every user may write."""
TREES: Final = Path("store", "trees")
"""The path, in the state folder, of the folder with one subfolder for each package (`wharfinger.packages.store.disk_store`)."""
_SWEEP_S: Final = 5.0
_REAPED_S: Final = 2.0
_AGAIN_MS: Final = 20
_NO_TOKEN: Final = "a run of another daemon"  # noqa: S105 - not a secret
_ENTER: Final = stat.S_IXOTH
_READ: Final = stat.S_IROTH


class Lease:
    """A user for the time of one run. ``suspect`` is true if processes of the run may outlive it; then they are ended before
    another run gets this user.
    """

    def __init__(self, user: User) -> None:
        self.user = user
        self.suspect = False


class HookUsers:
    """A pool of the users from ``first`` to ``last``, each with the group of the same number."""

    def __init__(self, first: int, last: int) -> None:
        """Raise ValueError for a range that is empty or contains root."""
        if not 0 < first <= last:
            raise ValueError(f"{first}-{last} is not a range of users: expected 0 < first <= last")
        self.first = first
        self.last = last
        self._free = deque(range(first, last + 1))
        self._suspects = set(self._free)
        self._turns = trio.Semaphore(len(self._free))

    @asynccontextmanager
    async def lease(self, hook: str) -> AsyncIterator[Lease]:
        """Yield a user for a run of ``hook``; wait while all users are in use. Raises HookError if old processes of the user do
        not end.
        """
        async with self._turns:
            uid = self._free.popleft()
            try:
                if uid in self._suspects:
                    await trio.to_thread.run_sync(_end_all_of, hook, uid, limiter=trio.CapacityLimiter(1))
                    self._suspects.discard(uid)
                lease = Lease(User(uid, uid))
                yield lease
                if lease.suspect:
                    self._suspects.add(uid)
            except BaseException:
                self._suspects.add(uid)
                raise
            finally:
                self._free.append(uid)


def _end_all_of(hook: str, uid: int) -> None:
    """End all processes of the user, and remove its files and objects. Blocking.

    Raises HookError if a process does not end.
    """
    if left := sweep([Mark(_NO_TOKEN, uid=uid)], _SWEEP_S).left:
        why = f"{left} processes still run as user {uid}, which is reserved for hooks, and do not end; kill them"
        raise HookError(hook, why, transient=True)
    deadline = time.monotonic() + _REAPED_S
    while any(one.uid == uid for one in scan(0, users=True)) and time.monotonic() < deadline:
        select.poll().poll(_AGAIN_MS)
    remove_remains_of(uid)


def remove_remains_of(uid: int) -> None:
    """Remove the user's files in public folders, and its objects in the kernel.

    Blocking. Files and objects that cannot be removed are kept.
    """
    remove_ipc_of(uid)
    remove_files_of(uid)


def remove_files_of(uid: int, folders: Iterable[Path] = PUBLIC_FOLDERS) -> None:
    """Remove the user's files from folders where every user may write. Blocking; files that cannot be removed are kept."""
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == uid:
                        _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        remove_tree(Path(entry.path))
    else:
        Path(entry.path).unlink()


def package_tree(path: Path, state_dir: Path) -> Path | None:
    """Return the folder of the package that ``path`` is in; None if it is in no package. ``path`` must be resolved."""
    trees = state_dir / TREES
    return trees / path.relative_to(trees).parts[0] if path.is_relative_to(trees) and path != trees else None


def open_tree(path: Path, state_dir: Path) -> None:
    """Let every user read the package that contains this file, and enter the folders above it.

    Blocking. If the package can be read already, only the folders above it are changed. Raises OSError.
    """
    tree = package_tree(path, state_dir)
    if tree is None:
        return
    allow_traversal(tree.parent, state_dir)  # the daemon sets its state folder to mode 0700 when it starts
    if tree.stat().st_mode & _ENTER:
        return
    for folder, folders, files in os.walk(tree, topdown=False):
        for name in (*folders, *files):
            _open_entry(Path(folder, name))
    # The top folder comes last: its mode marks that everything below it is done.
    _allow(tree, tree.stat().st_mode, _READ | _ENTER)


def _open_entry(path: Path) -> None:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and mode & stat.S_IXUSR):
        _allow(path, mode, _READ | _ENTER)
    elif stat.S_ISREG(mode):
        _allow(path, mode, _READ)


def allow_traversal(folder: Path, top: Path) -> None:
    """Let every user enter, but not list, the folders from ``top`` to ``folder``. Blocking. Raises OSError."""
    while folder.is_relative_to(top):
        _allow(folder, folder.stat().st_mode, _ENTER)
        folder = folder.parent


def _allow(path: Path, mode: int, bits: int) -> None:
    if mode & bits != bits:
        path.chmod(stat.S_IMODE(mode) | bits)
