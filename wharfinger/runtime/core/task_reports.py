"""The reports of a package's tasks, and their effects: status changes, scheduler events, and controller notifications.

This is the one implementation of :class:`~wharfinger.runtime.package.instance.Reporter`. Reports of a superseded task never
arrive here, because they go through its operation's scope (:mod:`~wharfinger.runtime.tasks.stage_task`).
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.queue.events import MAIN_LANE
from wharfinger.queue.task import Task
from wharfinger.runtime.package.instance import HookHistory, Instance
from wharfinger.runtime.resources.identity import is_global
from wharfinger.runtime.scheduler.events import Failed, Rescheduled, ScriptVoted
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.event_tasks import HookEvent

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime

log = logging.getLogger(__name__)


PATIENCE: Final = 3
"""The attempts of a task that hold back packages of a higher order: a short outage does not let these pass, a lasting one
does.
"""


class Reports:
    """The receiver of one runtime's reports; it belongs to that runtime."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """Report that a stage is at work."""
        self.runtime.set_status(
            instance, statuses.progressing(instance.status, stage, reason, message, self.runtime.now())
        )

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """Report that a stage is done.

        After a complete run no hook counts as failed, except event hooks that wait for their next run.
        """
        status = instance.status
        if stage in (Stage.HOOKS, Stage.APPLIED) and not instance.failing:
            status = statuses.succeeded(status, Stage.HOOKS, self.runtime.now())
        if stage is not Stage.HOOKS:
            status = statuses.succeeded(status, stage, self.runtime.now())
        self.runtime.set_status(instance, status)
        self.runtime.keeping.look_again(instance, stage)

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """Report that a stage failed."""
        log.warning("%s: %s: %s: %s", instance.id, stage, failure.reason, failure.message)
        self.runtime.set_status(
            instance,
            statuses.failed(
                instance.status, stage, failure.reason, failure.message, self.runtime.now(), permanent=failure.permanent
            ),
        )
        self.runtime.tools.crd_phase.end(instance.id.name)  # other packages wait for one attempt
        self.runtime.tools.load_phase.end(instance.id.name)
        if failure.permanent or self._attempts(instance) >= PATIENCE:
            # It may still be completed; meanwhile it holds back its dependents, and no other package.
            self.runtime.operations.tell_scheduler(Failed(instance.id.name, instance.run))

    def _attempts(self, instance: Instance) -> int:
        """Return how many attempts the present task of the package's main lane has had."""
        tasks = self.runtime.queues.dump_one(instance.id.name).tasks
        return next((task.attempt for task in tasks if task.lane == MAIN_LANE), 0)

    def placed(self, instance: Instance) -> None:
        """Record that there may be objects of the package in its namespace from now on."""
        self.runtime.set_status(instance, statuses.placed(instance.status, instance.id.namespace))

    def released(self, instance: Instance, revision: int) -> None:
        """Report that the version is applied as this revision of its release; 0 if it has no release."""
        digest = str(instance.manifest.descriptor.digest) if instance.manifest else ""
        self.runtime.set_status(instance, statuses.released(instance.status, instance.version, digest, revision))

    def tracked(self, instance: Instance, completed: Iterable[str], remaining: Iterable[str]) -> None:
        """Report the progress on the cluster's objects, by their names."""
        status = statuses.tracking(instance.status, completed, remaining, self.runtime.now())
        self.runtime.set_status(instance, status)

    def reachable(self, instance: Instance, urls: Iterable[tuple[str, str]]) -> None:
        """Report the URLs of the package, each with its purpose; they replace those reported before."""
        self.runtime.set_status(instance, statuses.reachable(instance.status, urls, self.runtime.now()))

    def warned(self, instance: Instance, subject: str, warnings: tuple[str, ...]) -> None:
        """Report warnings about one subject: things that work but should be changed. They replace the earlier ones about it."""
        if instance.warnings.get(subject, ()) == warnings:
            return
        instance.warnings[subject] = warnings
        every = tuple(warning for _, some in sorted(instance.warnings.items()) for warning in some)
        self.runtime.set_status(instance, statuses.warned(instance.status, every, self.runtime.now()))

    def uninstalled(self, instance: Instance) -> None:
        """Report that nothing of the package is in the cluster any more."""
        self.runtime.set_status(instance, statuses.uninstalled(instance.status, self.runtime.now()))
        self.runtime.operations.restate_requirements(instance)

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """Report what the removal waits for, or how it failed."""
        if reason != "Removing":
            log.warning("%s: removal: %s: %s", instance.id, reason, message)
        self.runtime.set_status(instance, statuses.removing(instance.status, reason, message, self.runtime.now()))

    def hook_ran(self, instance: Instance, hook: str, error: str) -> None:
        """Record that a hook ran; ``error`` is empty if it succeeded."""
        history = instance.history.setdefault(hook, HookHistory())
        history.runs += 1
        history.last_run, history.last_error = self.runtime.now(), error
        if is_global(instance.id):
            self.runtime.rounds.adopt_flags()

    def event_hook_done(self, instance: Instance, hook: str, lane: str, error: str) -> None:
        """Record that an event hook ran in a lane; ``error`` is empty if it succeeded.

        A lane's failure lasts until its next success.
        """
        if error:
            instance.failing[hook, lane] = error
            self.failed(instance, Stage.HOOKS, Failure(Reason.EVENT_HOOK_FAILED, f"{error}", permanent=False))
        elif instance.failing.pop((hook, lane), None) is not None:
            left = next(iter(sorted(instance.failing.items())), None)
            status = (
                statuses.succeeded(instance.status, Stage.HOOKS, self.runtime.now())
                if left is None
                else statuses.failed(
                    instance.status, Stage.HOOKS, "EventHookFailed", left[1], self.runtime.now(), permanent=False
                )
            )
            self.runtime.set_status(instance, status)

    def values_changed(self, instance: Instance, hook: str) -> None:
        """Record that an event hook has changed the values, so that the last render is out of date.

        A run that is under way is not interrupted; otherwise a busy hook would keep the package from ever being applied.
        """
        log.info("%s: %s changed the values", instance.id, hook)
        if self.runtime.lifecycle.is_applying(instance.id.name) and not statuses.is_stalled(instance.status):
            instance.dirty = True
        else:
            self.runtime.operations.tell_scheduler(Rescheduled(instance.id.name, "HookValuesChanged"))

    def voted(self, instance: Instance, enabled: bool | None, reason: str, *, failed: bool) -> None:  # noqa: FBT001
        """Record the vote of the enabled script; the scheduler gets it at once, or together with the node that it is about.

        The vote of a version that is still being loaded, or was refused, says nothing about the earlier version, which is
        still the node. While other installed packages are not loaded yet, the script sees less than there is, so its "no" is
        provisional.
        """
        name = instance.id.name
        early = self.runtime.statements.missing(name)
        vote = ScriptVoted(name, enabled, "" if failed else reason, reason if failed else "", provisional=early)
        self.runtime.votes[name] = vote
        if instance.refused is None and not self.runtime.lifecycle.is_loading(name):
            self.runtime.operations.tell_scheduler(vote)

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """Put a hook's run into a lane of its own; return False if it was not taken."""
        return self.runtime.operations.enqueue_hook(instance, task, lane, instance.hook_scope, unique=False)

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """Run a hook for the events that wait in its inbox."""
        self.runtime.submit(self.runtime.build_kube_tasks(HookEvent(hooks, inbox)))

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        """Return the names of the Modules of a lower order that are on."""
        return self.runtime.modules_before(instance)

    def global_values(self) -> JsonObject:
        """Return what every package sees under ``global``."""
        return self.runtime.global_values()

    def global_settings(self) -> JsonObject:
        """Return the part of the global values that a user set."""
        return self.runtime.global_settings()
