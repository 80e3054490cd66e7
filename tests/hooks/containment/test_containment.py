"""The measures of containment that are requested, and those that are enforced."""

from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.containment.hook_users import HookUsers
from wharfinger.process.command import Limits

BASE = Limits(wall_s=3, stdout_bytes=4)
SANDBOX = Path("/usr/bin/bwrap")


@pytest.fixture
def daemon_runs_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: request.param)


def test_default_containment_enforces_nothing() -> None:
    assert NO_CONTAINMENT.enforced() == ()
    assert NO_CONTAINMENT.limits(BASE) == BASE


def test_memory_and_file_limits_need_no_users_or_sandbox() -> None:
    asked = Containment(memory_bytes=1, open_files=2, file_bytes=3)
    assert [measure.what for measure in asked.enforced() if measure.holds] == [
        "at most 1 bytes of address space for each process",
        "at most 2 open files for each process",
        "at most 3 bytes in each file",
    ]
    assert asked.limits(BASE) == replace(BASE, memory_bytes=1, open_files=2, file_bytes=3)


@pytest.mark.parametrize(
    ("daemon_runs_as", "users", "sandbox", "why"),
    [
        (0, None, None, "the kernel does not limit the number of root's processes; use --hook-users"),
        (0, None, SANDBOX, "the kernel does not limit the number of root's processes; use --hook-users"),
        (0, HookUsers(7, 9), None, ""),
        (0, HookUsers(7, 9), SANDBOX, ""),
        (5, None, None, "the limit would also count this user's other processes; use --hook-sandbox"),
        (5, None, SANDBOX, ""),
    ],
    indirect=["daemon_runs_as"],
)
@pytest.mark.usefixtures("daemon_runs_as")
def test_process_limit_is_set_only_if_it_can_count_one_run(
    users: HookUsers | None, sandbox: Path | None, why: str
) -> None:
    asked = Containment(users=users, sandbox=sandbox, processes=4)
    *others, measure = asked.enforced()
    assert measure.what == "at most 4 processes of each run"
    assert why in measure.why
    assert measure.holds == (not why)
    assert asked.limits(BASE).processes == (None if why else 4)
    assert all(other.holds for other in others)
    assert len(others) == (users is not None) + (sandbox is not None)
