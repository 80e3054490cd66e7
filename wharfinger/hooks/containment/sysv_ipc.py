"""Removal of a user's objects in the kernel: shared memory, message queues and semaphores of System V (sysvipc(7)).

Such objects outlive the processes that made them, hold memory that no limit counts, and would be visible to the next run with
this user. A run in a sandbox has objects of its own, which end with it. All functions here block.
"""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TABLES: Final = Path("/proc/sysvipc")
_IPC_RMID: Final = 0  # of the kernel's include/uapi/linux/ipc.h
_KINDS: Final = (("shm", "shmid"), ("msg", "msqid"), ("sem", "semid"))


def remove_ipc_of(uid: int) -> None:
    """Remove the System V IPC objects that the user owns or has created. Objects that cannot be removed are kept."""
    system = ctypes.CDLL(None)
    for kind, identifier in _KINDS:
        for number in _of_user(kind, identifier, uid):
            if kind == "sem":
                system.semctl(number, 0, _IPC_RMID)
            else:
                system[f"{kind}ctl"](number, _IPC_RMID, None)


def _of_user(kind: str, identifier: str, uid: int) -> Iterator[int]:
    """Yield the identifiers of the user's objects in one of the kernel's tables; nothing if the kernel has no such table."""
    try:
        header, *rows = (TABLES / kind).read_text().splitlines()
    except FileNotFoundError:
        return
    for row in rows:
        entry = dict(zip(header.split(), row.split(), strict=False))
        if str(uid) in (entry.get("uid"), entry.get("cuid")):
            yield int(entry[identifier])
