"""One task at a time: what it reports, what it raises, and that a superseded one says nothing."""

import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import pytest
import trio
import trio.testing

from wharfinger.cluster.readiness import InProgress
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.packages.errors import ArtifactError
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import TaskFailed
from wharfinger.runtime import status as statuses
from wharfinger.runtime.failures import Failure
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.pipeline import (
    Instance,
    Pipeline,
    Reporter,
    ScopedReporter,
    StageTask,
    Tools,
    Work,
    waiting_for,
)
from wharfinger.runtime.status import Stage

DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)
NO_TOOLS = cast("Tools", None)


@dataclass
class Notes:
    """A Reporter that writes down what it is told."""

    said: list[tuple[str, Stage | None]] = field(default_factory=list)

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        self.said.append(("progressed", stage))

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        self.said.append(("succeeded", stage))

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        self.said.append((f"failed {failure.reason}", stage))

    def released(self, instance: Instance, revision: int) -> None:
        self.said.append(("released", None))

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        self.said.append((f"removing {reason}", None))


def instance() -> Instance:
    return Instance(AppId("prod", "shop"), statuses.fresh(1, datetime(2026, 1, 1, tzinfo=UTC)))


def task(
    work: Work,
    notes: Notes,
    scope: WorkScope | None = None,
    *,
    stage: Stage | None = Stage.LOADED,
    ends_stage: bool = True,
) -> StageTask:
    return StageTask("T", stage, ends_stage, work, instance(), NO_TOOLS, ScopedReporter(notes, scope or WorkScope("x")))


async def works(_instance: Instance, _tools: Tools, _reporter: Reporter) -> None:
    await trio.lowlevel.checkpoint()


async def fails(_instance: Instance, _tools: Tools, _reporter: Reporter) -> None:
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


@pytest.mark.parametrize("work", [works, fails])
async def test_a_superseded_task_says_nothing(work: Work) -> None:
    notes, scope = Notes(), WorkScope("x")
    scope.cancel("update superseded")
    with contextlib.suppress(TaskFailed):
        await task(work, notes, scope).execute()
    assert notes.said == []


async def test_a_defect_is_reported_and_not_dressed_up() -> None:
    async def broken(_instance: Instance, _tools: Tools, _reporter: Reporter) -> None:
        raise KeyError("oops")

    notes = Notes()
    with pytest.raises(KeyError):
        await task(broken, notes).execute()
    assert notes.said == [("failed Internal", Stage.LOADED)]


async def test_a_removal_that_fails_says_so_and_is_tried_again_whatever_it_was() -> None:
    notes = Notes()
    with pytest.raises(TaskFailed) as caught:
        await task(fails, notes, stage=None).execute()
    assert not caught.value.permanent
    assert notes.said == [("removing ArtifactInvalid", None)]


def test_a_reporter_passes_everything_on_until_its_scope_is_cancelled() -> None:
    notes, scope = Notes(), WorkScope("x")
    reporter = ScopedReporter(notes, scope)
    for _ in range(2):
        reporter.progressed(instance(), Stage.LOADED, "r", "m")
        reporter.succeeded(instance(), Stage.LOADED)
        reporter.failed(instance(), Stage.LOADED, Failure("R", "m", permanent=False))
        reporter.released(instance(), 1)
        reporter.removing(instance(), "R", "m")
        assert len(notes.said) == 5
        scope.cancel("superseded")


def test_the_tasks_of_each_operation() -> None:
    one = instance()
    one.version = "1.2.3"
    pipeline = Pipeline(one, NO_TOOLS, Notes(), WorkScope("x"))
    assert [task.name for task in pipeline.update()] == ["Download:1.2.3", "Install:1.2.3", "Load"]
    assert [task.name for task in pipeline.reconciliation()] == ["Configure", "Run", "WaitReady"]
    assert [task.name for task in pipeline.removal()] == ["Uninstall", "Undeploy"]


async def test_uninstalling_a_name_that_never_could_be_installed_is_success() -> None:
    one = Instance(AppId("prod", "a" * 60), statuses.fresh(1, datetime(2026, 1, 1, tzinfo=UTC)))
    await Pipeline(one, NO_TOOLS, Notes(), WorkScope("x")).removal()[0].execute()


@pytest.mark.parametrize("number", [1, 2])
async def test_tasks_out_of_order_are_a_defect_that_names_the_package(number: int) -> None:
    pipeline = Pipeline(instance(), NO_TOOLS, Notes(), WorkScope("x"))
    with pytest.raises(AssertionError, match="prod/shop"):
        await pipeline.update()[number].execute()
    with pytest.raises(AssertionError, match="prod/shop"):
        await pipeline.reconciliation()[1].execute()


def test_laggards_are_named_in_order_and_not_without_end() -> None:
    def laggards(count: int) -> dict[ObjectKey, InProgress]:
        return {
            ObjectKey(DEPLOYMENT, "prod", f"d{number}"): InProgress("0 of 1 available")
            for number in reversed(range(count))
        }

    assert waiting_for(laggards(1)) == "Deployment.apps prod/d0: 0 of 1 available"
    assert waiting_for(laggards(8)).startswith("Deployment.apps prod/d0: 0 of 1 available; Deployment.apps prod/d1")
    assert waiting_for(laggards(8)).endswith("; and 3 more")
