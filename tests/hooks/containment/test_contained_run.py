"""The user and the command line of one contained run. The isolation is tested with real hooks in test_hostile_hooks.py."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.hooks.support.contained import IS_ROOT, no_sandbox, package_in, sandbox, state_folder, users
from wharfinger.hooks.containment.contained_run import open_cell, try_cell
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.errors import HookError
from wharfinger.process.command import Command, Ending, Outcome, Usage

AS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")
FINE = Outcome(Ending.EXITED, 0, b"", b"", Usage(0, 0, 0))


async def test_command_without_containment_is_unchanged() -> None:
    async with open_cell(NO_CONTAINMENT, "h") as cell:
        assert cell.user is None
        assert await cell.command(("/x", "-a"), Path("/"), {"A": "b"}, Path("/f")) == Command(
            ("/x", "-a"), Path("/"), {"A": "b"}
        )
        cell.ended(replace(FINE, survivors_killed=3))


async def test_home_of_a_hook_user_is_in_its_run_folder() -> None:
    own = users()
    async with open_cell(Containment(users=own), "h") as cell:
        command = await cell.command(("/x",), Path("/"), {"HOME": "/root"}, Path("/f"))
        assert command.env == {"HOME": "/f/tmp", "TMPDIR": "/f/tmp"}
        assert command.user == cell.user
        without = await cell.command(("/x",), Path("/"), {"HOME": "/root"})
        assert without.env == {"HOME": "/root"}


@pytest.mark.parametrize("outcome", [replace(FINE, survivors_killed=1), replace(FINE, survivors_left=1)])
async def test_user_with_surviving_processes_is_checked_again(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr("wharfinger.hooks.containment.hook_users._end_all_of", lambda _hook, uid: looked.append(uid))
    containment = Containment(users=users())
    for told, expected in ((FINE, 1), (outcome, 1), (FINE, 2), (FINE, 2)):
        async with open_cell(containment, "h") as cell:
            cell.ended(told)
        assert len(looked) == expected


async def test_user_with_possibly_remaining_processes_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr("wharfinger.hooks.containment.hook_users._end_all_of", lambda _hook, uid: looked.append(uid))
    containment = Containment(users=users())
    for _ in range(2):
        async with open_cell(containment, "h") as cell:
            cell.processes_may_remain()
    assert len(looked) == 2
    async with open_cell(NO_CONTAINMENT, "h") as cell:
        cell.processes_may_remain()


async def test_sandbox_shows_a_package_named_through_a_link() -> None:
    with state_folder() as state:
        hooks = package_in(state)
        (hooks / "hook.sh").write_text("")
        link = state / "deployed"
        link.symlink_to(hooks.parent)
        containment = Containment(sandbox=Path("/bwrap"), state_dir=state)
        async with open_cell(containment, "h") as cell:
            command = await cell.command((str(link / "hooks" / "hook.sh"),), link, {}, state / "scratch")
        tree = str(hooks.parents[1])
        assert command.argv == (str(hooks / "hook.sh"),)
        assert command.cwd == hooks.parent
        assert f"--ro-bind {tree} {tree} --bind {state}/scratch" in " ".join(command.wrapper)
        assert command.env == {"TMPDIR": "/tmp"}


async def test_sandbox_shows_a_hook_outside_of_the_store(tmp_path: Path) -> None:
    async with open_cell(Containment(sandbox=Path("/bwrap")), "h") as cell:
        command = await cell.command((str(tmp_path / "hooks" / "h"),), tmp_path, {})
    assert f"--ro-bind {tmp_path} {tmp_path} --ro-bind {tmp_path}/hooks" in " ".join(command.wrapper)


async def test_a_package_that_cannot_be_opened_is_an_error() -> None:
    with state_folder() as state:
        missing = state / "store" / "trees" / "ab" / "hook.sh"
        async with open_cell(Containment(users=users(), state_dir=state), "h") as cell:
            with pytest.raises(HookError, match="cannot be given access to its package") as caught:
                await cell.command((str(missing),), Path("/"), {})
        assert caught.value.transient


async def test_trial_run_reports_an_unusable_containment(tmp_path: Path) -> None:
    await try_cell(NO_CONTAINMENT)
    with pytest.raises(HookError, match="cannot start"):
        await try_cell(Containment(sandbox=tmp_path / "bwrap"))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(HookError, match="no program can run in this containment: exit status 1: no namespaces here"):
        await try_cell(Containment(sandbox=broken))


@pytest.mark.skipif(bool(no_sandbox()), reason=no_sandbox() or "it works")
async def test_trial_run_in_a_sandbox_succeeds() -> None:
    await try_cell(Containment(sandbox=sandbox(), file_bytes=1_000_000))


@AS_ROOT
async def test_trial_run_with_a_user_succeeds() -> None:
    await try_cell(Containment(users=users(), processes=20))
