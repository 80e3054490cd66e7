"""A task of the pipeline, which reports its outcome as the outcome of a stage of the package.

An expected failure is reported in the status, and raised as TaskFailed, so that the queue retries or parks the task. Any other
failure is a bug: it is reported as such, and raised unchanged for the queue. If another operation supersedes that of the task,
the task's scope is cancelled, and its later reports are ignored.
"""

from dataclasses import dataclass, replace

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import Task, TaskFailed
from wharfinger.runtime.lifecycle.steps import Steps
from wharfinger.runtime.package.events import (
    OF_EVERY_OPERATION,
    Removing,
    Report,
    ReportBase,
    StageFailed,
    Succeeded,
)
from wharfinger.runtime.package.findings import Finding
from wharfinger.runtime.package.instance import Host, Instance, Tools, Work
from wharfinger.runtime.status.failures import EXPECTED, Failure, classify
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason


@dataclass(frozen=True, slots=True)
class ScopedHost:
    """A host that accepts a task's reports until the scope of the task's operation is cancelled.

    Two kinds of reports are always accepted, because they are true even if the operation was cancelled: reports about hooks
    that ran, and findings, which describe the disk, the cluster and the values.
    """

    host: Host
    scope: WorkScope

    def emit(self, instance: Instance, event: Report | Finding) -> None:
        """Process a report or a finding about a package. Ignore a report of the operation if its scope is cancelled."""
        of_this_operation = isinstance(event, ReportBase) and not isinstance(event, OF_EVERY_OPERATION)
        if not (of_this_operation and self.scope.cancelled):
            self.host.emit(instance, event)

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """Put a hook's run into a lane of its own. Return False if the scope is cancelled, or if the queue refused the run."""
        return not self.scope.cancelled and self.host.run_later(instance, task, lane)

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """Enqueue a run of the hook that has this inbox, for the events that wait there."""
        self.host.tell_hook(hooks, inbox)

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        """Return the Modules that are on and precede the package."""
        return self.host.modules_before(instance)

    def global_values(self) -> JsonObject:
        """Return the values that every package gets under ``global``."""
        return self.host.global_values()

    def global_settings(self) -> JsonObject:
        """Return the settings that a user gave to the Module ``global``."""
        return self.host.global_settings()


@dataclass(frozen=True, slots=True)
class StageTask:
    """A task that reports its outcome as the outcome of its stage. A success ends the stage only if ``ends_stage`` is true. If
    ``stage`` is None, the task is part of a removal.
    """

    name: str
    stage: Stage | None
    ends_stage: bool
    work: Work
    instance: Instance
    tools: Tools
    host: Host
    parks: bool = True
    """If True, the task is parked after a permanent failure, until an input changes. If False, no change by a user could help,
    so the task is retried.
    """

    steps: Steps | None = None
    """The journal's steps of the task's operation; None if the operation has no steps."""

    async def execute(self) -> None:
        """Do the work once. Raises TaskFailed; any other error is a bug, which is reported and raised unchanged."""
        if self.steps is not None:
            self.instance.begin_steps(self.steps)
        try:
            outcome = await self.work(self.instance, self.tools, self.host)
        except EXPECTED as error:
            failure = self._report(classify(error, self.instance.masked, in_folder=self.instance.is_in_folder))
            raise TaskFailed(f"{failure.reason}: {failure.message}", permanent=failure.permanent) from error
        except TaskFailed:
            raise
        except Exception as error:
            self._report(
                Failure(Reason.INTERNAL, self.instance.masked(f"{type(error).__name__}: {error}"), permanent=True)
            )
            raise
        if outcome is not None:
            self.host.emit(self.instance, outcome)
        if self.stage is not None and self.ends_stage:
            self.host.emit(self.instance, Succeeded(self.stage))

    def _report(self, failure: Failure) -> Failure:
        if not self.parks:
            failure = replace(failure, permanent=False)
        if self.stage is not None:
            self.host.emit(self.instance, StageFailed(failure.stage or self.stage, failure))
            return failure
        # A removal is never unparked by a change of its inputs, so every failure is retried.
        self.host.emit(self.instance, Removing(failure.reason, failure.message))
        return replace(failure, permanent=False)
