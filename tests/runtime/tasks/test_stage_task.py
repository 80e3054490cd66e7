"""Single tasks: their reports and their exceptions. A superseded task reports only the results of its hooks."""

import contextlib

import pytest
import trio
import trio.testing

from tests.runtime.support.notes import NO_TOOLS, Notes, instance, put
from wharfinger.packages.errors import ArtifactError
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import Task, TaskFailed
from wharfinger.runtime.package.events import (
    HookDone,
    Progressed,
    Released,
    Removing,
    StageFailed,
    Succeeded,
    Uninstalled,
    ValuesChanged,
    Voted,
)
from wharfinger.runtime.package.instance import Host, Instance, Tools, Work
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.status.failures import Failure, HookRunError
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.stage_task import ScopedHost, StageTask


def task(
    work: Work,
    notes: Notes,
    scope: WorkScope | None = None,
    *,
    stage: Stage | None = Stage.LOADED,
    ends_stage: bool = True,
    of: Instance | None = None,
) -> StageTask:
    host = ScopedHost(notes, scope or WorkScope("x"))
    return StageTask("T", stage, ends_stage, work, of or instance(), NO_TOOLS, host)


async def works(_instance: Instance, _tools: Tools, _host: Host) -> None:
    await trio.lowlevel.checkpoint()


async def fails(_instance: Instance, _tools: Tools, _host: Host) -> None:
    raise ArtifactError("no Chart.yaml")


async def test_success_ends_the_stage_unless_the_task_is_only_a_part_of_it() -> None:
    notes = Notes()
    await task(works, notes).execute()
    assert notes.said == [("succeeded", Stage.LOADED)]
    await task(works, notes, ends_stage=False).execute()
    assert len(notes.said) == 1


async def test_an_expected_failure_is_reported_and_classified() -> None:
    notes = Notes()
    with pytest.raises(TaskFailed, match=r"ArtifactInvalid: no Chart\.yaml") as caught:
        await task(fails, notes).execute()
    assert caught.value.permanent
    assert notes.said == [("failed ArtifactInvalid", Stage.LOADED)]


async def test_a_failed_hook_fails_the_stage_of_hooks() -> None:
    async def hook_fails(_instance: Instance, _tools: Tools, _host: Host) -> None:
        raise HookRunError("hooks/a.sh", "exit status 1")

    notes = Notes()
    with pytest.raises(TaskFailed) as caught:
        await task(hook_fails, notes, stage=Stage.APPLIED).execute()
    assert not caught.value.permanent
    assert notes.said == [("failed PackageHookFailed", Stage.HOOKS)]


async def test_secrets_are_masked_in_reports() -> None:
    async def tells(_instance: Instance, _tools: Tools, _host: Host) -> None:
        raise ArtifactError("cannot log in with hunter22")

    notes, one = Notes(), instance()
    settings = ResolvedSettings({"password": "hunter22"}, ("hunter22",), frozenset({("password",)}))
    put(one, desired={"settings": settings})
    with pytest.raises(TaskFailed) as caught:
        await task(tells, notes, of=one).execute()
    assert "hunter22" not in str(caught.value)
    assert "cannot log in" in notes.messages[0]
    assert "hunter22" not in notes.messages[0]


@pytest.mark.parametrize("work", [works, fails])
async def test_a_superseded_task_reports_nothing(work: Work) -> None:
    notes, scope = Notes(), WorkScope("x")
    scope.cancel("update superseded")
    with contextlib.suppress(TaskFailed):
        await task(work, notes, scope).execute()
    assert notes.said == []


async def test_an_unexpected_exception_is_reported_unchanged() -> None:
    async def broken(_instance: Instance, _tools: Tools, _host: Host) -> None:
        raise KeyError("oops")

    notes = Notes()
    with pytest.raises(KeyError):
        await task(broken, notes).execute()
    assert notes.said == [("failed Internal", Stage.LOADED)]


async def test_every_failure_of_a_removal_is_reported_and_retried() -> None:
    notes = Notes()
    with pytest.raises(TaskFailed) as caught:
        await task(fails, notes, stage=None).execute()
    assert not caught.value.permanent
    assert notes.said == [("removing ArtifactInvalid", None)]


def test_a_scoped_host_passes_reports_on_until_its_scope_is_cancelled() -> None:
    notes, scope, one = Notes(), WorkScope("x"), instance()
    host = ScopedHost(notes, scope)
    later: Task = task(works, notes)
    for _ in range(2):
        host.emit(one, Progressed(Stage.LOADED, "r", "m"))
        host.emit(one, Succeeded(Stage.LOADED))
        host.emit(one, StageFailed(Stage.LOADED, Failure(Reason.INTERNAL, "m", permanent=False)))
        host.emit(one, Released(1))
        host.emit(one, Uninstalled())
        host.emit(one, Removing("R", "m"))
        host.emit(one, Voted(True, "", failed=False))
        host.run_later(one, later, "hooks/main")
        assert len(notes.said) == 8
        scope.cancel("superseded")
    host.emit(one, HookDone("h", ""))  # the result of a hook is valid even if the task was superseded
    host.emit(one, ValuesChanged("h"))  # the same is true of its changes of values
    assert [said for said, _ in notes.said[8:]] == ["ran h", "changed by h"]
    assert (host.global_values(), host.global_settings()) == ({}, {})
