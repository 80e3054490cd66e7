"""Removal of one user's real shared memory segments, queues and semaphores. Those of other users remain."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.hooks.support.contained import IS_ROOT, users
from wharfinger.hooks.containment import sysv_ipc
from wharfinger.hooks.containment.sysv_ipc import remove_ipc_of

KINDS = (("shm", "-M", "1"), ("msg", "-Q"), ("sem", "-S", "1"))


def made_by(uid: int) -> dict[str, int]:
    """Return the number of IPC objects of this user by kind."""
    rows = {kind: Path("/proc/sysvipc", kind).read_text().splitlines() for kind, *_ in KINDS}
    return {
        kind: sum(dict(zip(header.split(), row.split(), strict=True))["cuid"] == str(uid) for row in entries)
        for kind, (header, *entries) in rows.items()
    }


@pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")
def test_ipc_objects_of_one_user_are_removed() -> None:
    own = users(2)
    for uid in (own.first, own.last):
        for _, *options in KINDS:
            as_user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
            subprocess.run([*as_user, "ipcmk", *options], check=True, capture_output=True)
    try:
        assert made_by(own.first) == made_by(own.last) == {"shm": 1, "msg": 1, "sem": 1}
        remove_ipc_of(own.first)
        assert made_by(own.first) == {"shm": 0, "msg": 0, "sem": 0}
        assert made_by(own.last) == {"shm": 1, "msg": 1, "sem": 1}
    finally:
        remove_ipc_of(own.first)
        remove_ipc_of(own.last)
    assert made_by(own.last) == {"shm": 0, "msg": 0, "sem": 0}


def test_kernel_without_ipc_tables_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysv_ipc, "TABLES", tmp_path)
    remove_ipc_of(os.getuid())


def test_ipc_objects_deleted_meanwhile_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysv_ipc, "TABLES", tmp_path)
    for kind, identifier in (("shm", "shmid"), ("msg", "msqid"), ("sem", "semid")):
        (tmp_path / kind).write_text(f"key {identifier} uid cuid\n0 2147483647 77 0\n0 2147483646 0 77\n")
    remove_ipc_of(77)
