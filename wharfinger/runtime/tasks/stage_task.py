"""A task of the pipeline: one piece of work, whose outcome is that of its stage.

An expected failure becomes a line in the status and a TaskFailed for the queue, which retries or parks. Any other failure is
a defect: it is reported as one and passed to the queue's guard. A task's reports go through its operation's scope, so a
superseded task cannot report any more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import Task, TaskFailed
from wharfinger.runtime.lifecycle.steps import Steps
from wharfinger.runtime.package.instance import Instance, Reporter, Tools, Work
from wharfinger.runtime.status.failures import EXPECTED, Failure, classify
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason


@dataclass(frozen=True, slots=True)
class ScopedReporter:
    """A reporter that passes on a task's reports until its operation's scope is cancelled."""

    reporter: Reporter
    scope: WorkScope

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.progressed(instance, stage, reason, message)

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.succeeded(instance, stage)

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.failed(instance, stage, failure)

    def placed(self, instance: Instance) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.placed(instance)

    def released(self, instance: Instance, revision: int) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.released(instance, revision)

    def tracked(self, instance: Instance, completed: Iterable[str], remaining: Iterable[str]) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.tracked(instance, completed, remaining)

    def reachable(self, instance: Instance, urls: Iterable[tuple[str, str]]) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.reachable(instance, urls)

    def warned(self, instance: Instance, subject: str, warnings: tuple[str, ...]) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.warned(instance, subject, warnings)

    def uninstalled(self, instance: Instance) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.uninstalled(instance)

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.removing(instance, reason, message)

    def hook_ran(self, instance: Instance, hook: str, error: str) -> None:
        """See Reporter: the result of a hook is true for every operation."""
        self.reporter.hook_ran(instance, hook, error)

    def values_changed(self, instance: Instance, hook: str) -> None:
        """See Reporter: a hook that no task waits for may change them long after the operation that started it."""
        self.reporter.values_changed(instance, hook)

    def voted(self, instance: Instance, enabled: bool | None, reason: str, *, failed: bool) -> None:  # noqa: FBT001
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.voted(instance, enabled, reason, failed=failed)

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """See Reporter."""
        return not self.scope.cancelled and self.reporter.run_later(instance, task, lane)

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """See Reporter."""
        self.reporter.tell_hook(hooks, inbox)

    def event_hook_done(self, instance: Instance, hook: str, lane: str, error: str) -> None:
        """See Reporter: the result of a hook is true for every operation."""
        self.reporter.event_hook_done(instance, hook, lane, error)

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        """See Reporter."""
        return self.reporter.modules_before(instance)

    def global_values(self) -> JsonObject:
        """See Reporter."""
        return self.reporter.global_values()

    def global_settings(self) -> JsonObject:
        """See Reporter."""
        return self.reporter.global_settings()


@dataclass(frozen=True, slots=True)
class StageTask:
    """A task whose outcome is that of its stage. ``stage`` None: it is part of a removal."""

    name: str
    stage: Stage | None
    ends_stage: bool
    work: Work
    instance: Instance
    tools: Tools
    reporter: Reporter
    parks: bool = True
    """True if a permanent failure waits for a changed input; False if no edit by a user would unpark it, so it is retried."""

    steps: Steps | None = None
    """The steps of its operation in the journal; None: it has none."""

    async def execute(self) -> None:
        """Do the work once. Raises TaskFailed; a defect is also reported, and passed to the queue's guard."""
        if self.steps is not None:
            self.instance.steps = self.steps
        try:
            await self.work(self.instance, self.tools, self.reporter)
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
        if self.stage is not None and self.ends_stage:
            self.reporter.succeeded(self.instance, self.stage)

    def _report(self, failure: Failure) -> Failure:
        if not self.parks:
            failure = replace(failure, permanent=False)
        if self.stage is not None:
            self.reporter.failed(self.instance, failure.stage or self.stage, failure)
            return failure
        # No edit by a user unparks a removal, so every failure is retried.
        self.reporter.removing(self.instance, failure.reason, failure.message)
        return replace(failure, permanent=False)
