"""Empty folders of finished runs, kept for later runs because removing a folder costs more than all work with its files.

A folder is made and removed for each run of a hook. Making one takes microseconds, but removing one can take until the next tick
of the kernel's clock (measured on ext4, Linux 6.18: 4 ms). A small hook runs no longer than that. So a few emptied folders are
kept and renamed. A folder is kept only if it is as this process would make it: owned by this process, with mode 0700, and without
attributes that the hook set. A folder that belonged to the user of a run is never kept. All functions here block; several threads
may use them at the same time.
"""

import os
import secrets
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from wharfinger.process.remove_tree import remove_tree

AT_MOST: Final = 8
"""The number of folders to keep, equal to the default number of hooks that run at the same time."""
PREFIX: Final = "spare-"
_MODE: Final = 0o700


class SpareFolders:
    """The empty folders in ``scratch`` that are kept for later runs, at most AT_MOST."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._kept: deque[Path] = deque()

    def take(self, path: Path) -> bool:
        """Rename a spare folder to ``path``, which must not exist yet; return False if no usable folder is left."""
        while self._kept:
            with suppress(IndexError, OSError):
                spare = self._kept.popleft()
                if _is_pristine(spare) and not any(spare.iterdir()):
                    spare.rename(path)
                    return True
                remove_tree(spare)
        return False

    def keep(self, folder: Path) -> bool:
        """Keep a folder that was emptied; return False if it must be removed instead."""
        if len(self._kept) >= AT_MOST or not _is_pristine(folder):
            return False
        spare = self._scratch.absolute() / f"{PREFIX}{secrets.token_hex(8)}"
        folder.rename(spare)
        self._kept.append(spare)
        return True


def _is_pristine(folder: Path) -> bool:
    status = folder.lstat()
    return (
        stat.S_ISDIR(status.st_mode)
        and stat.S_IMODE(status.st_mode) == _MODE
        and status.st_uid == os.geteuid()
        and not os.listxattr(folder)
    )
