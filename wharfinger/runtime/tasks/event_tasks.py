"""Runs of hooks in separate lanes: runs for events, runs on a schedule, and Synchronizations for which the package does not
wait.

These tasks exist only while the package's hooks are started, because they belong to the scope of the hooks. A failure is
retried with the lane's backoff, and is shown in the package's status until the next success of the hook in that lane. An
unexpected error (a bug) is also reported and retried, because otherwise the lane would stop and drop events.
"""

import logging
from dataclasses import dataclass
from functools import partial

import trio

from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching.throttle import Throttle
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.package.events import EventHookDone, ValuesChanged
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.status.failures import EXPECTED, Expected, classify
from wharfinger.runtime.tasks.hook_runs import Cause, run_hook
from wharfinger.runtime.tasks.synchronizations import forget_before_notifying

log = logging.getLogger(__name__)


def lane_of(queue: str) -> str:
    """Return the lane for a hook's ``queue`` setting. It is never the main lane of the package, even for ``main``."""
    return f"hooks/{queue}"


@dataclass(frozen=True, slots=True)
class EventHookTask:
    """A run of a hook for the events in its inbox. ``scope`` is cancelled when the package's hooks are stopped."""

    hook: Hook
    inbox: Inbox
    hooks: PackageHooks
    instance: Instance
    tools: Tools
    host: Host
    scope: WorkScope

    @property
    def lane(self) -> str:
        """The name of the lane of the package's queue in which this task runs."""
        return lane_of(self.inbox.queue)

    @property
    def name(self) -> str:
        """A name such as ``hooks/10-labels.sh events``; the queue of the hook is in the name of the lane."""
        return f"{self.hook.name} events"

    async def execute(self) -> None:
        """Run the hook for the collected events. Raises TaskFailed; the events then stay in the inbox."""
        if not self.inbox.waiting:
            return
        await hold_back(self.instance, self.hook)
        occurrences = self.inbox.offered()
        if not occurrences:  # no event is left, because the waiting events cancelled each other out
            return
        try:
            await forget_before_notifying(self.instance, self.hook)
            head = occurrences[0].binding
            cause = Cause(head.name, self.inbox.queue, head.allow_failure)
            telling = partial(self.hooks.contexts, self.hook, occurrences)
            changed = await run_hook(self.instance, self.tools, self.host, self.hook, telling, cause)
        except Exception as error:
            if not occurrences[0].binding.allow_failure or not isinstance(error, EXPECTED):
                raise failed_event(self.instance, self.host, self.hook, self.lane, error, self.scope) from error
            _log_allowed(self.instance, self.hook, error)
            changed = False
        self.inbox.remove_processed(occurrences)
        self.host.emit(self.instance, EventHookDone(self.hook.name, self.lane, ""))
        if self.inbox.waiting:  # a hook with configVersion v0 gets one event at a time
            self.host.tell_hook(self.hooks, self.inbox)
        if changed:
            self.host.emit(self.instance, ValuesChanged(self.hook.name))


async def hold_back(instance: Instance, hook: Hook) -> None:
    """Wait until the hook's own rate limit allows another run. Events that arrive during the wait are passed to the hook in
    this run.
    """
    config = hook.config
    if config.min_interval is None:
        return
    throttle = instance.throttles.get(hook.name)
    if throttle is None or (throttle.interval, throttle.burst) != (config.min_interval, config.burst):
        throttle = instance.throttles[hook.name] = Throttle(config.min_interval, config.burst)
    # The time of the run is reserved before the wait, because the same hook may also wait in another lane.
    wait_s = throttle.wait_s(trio.current_time())
    throttle.take(trio.current_time())
    try:
        await trio.sleep(wait_s)
    except trio.Cancelled:
        throttle.give_back()
        raise


@dataclass(frozen=True, slots=True)
class SynchronizeTask:
    """The first run of a hook for bindings that are synchronized together, if the package does not wait for this run.

    ``scope`` is cancelled when the package's hooks are stopped.
    """

    hook: Hook
    bindings: tuple[KubernetesBinding, ...]
    hooks: PackageHooks
    instance: Instance
    tools: Tools
    host: Host
    scope: WorkScope

    @property
    def name(self) -> str:
        """A name such as ``hooks/10-labels.sh synchronization of pods``."""
        return f"{self.hook.name} synchronization of {named(self.bindings)}"

    async def execute(self) -> None:
        """Synchronize the bindings, and then let their events reach the hook. Raises TaskFailed."""
        lane = lane_of(self.bindings[0].queue)
        try:
            changed = await synchronize(self.instance, self.tools, self.host, self.hooks, self.hook, self.bindings)
        except Exception as error:
            raise failed_event(self.instance, self.host, self.hook, lane, error, self.scope) from error
        self.host.emit(self.instance, EventHookDone(self.hook.name, lane, ""))
        if changed:
            self.host.emit(self.instance, ValuesChanged(self.hook.name))


async def synchronize(
    instance: Instance,
    tools: Tools,
    host: Host,
    hooks: PackageHooks,
    hook: Hook,
    bindings: tuple[KubernetesBinding, ...],
) -> bool:
    """Pass all objects of the bindings to the hook, if its configuration requests that, and then let their events reach the
    hook. Return True if the values changed.

    All bindings are passed in one run, so they must be a group that `contexts.synchronized_together` returns.
    """
    changed, head = False, bindings[0]
    if head.on_synchronization and not head.legacy:
        try:
            await forget_before_notifying(instance, hook)
            cause = Cause(head.name, head.queue, head.allow_failure)
            telling = partial(hooks.synchronization, hook, *bindings)
            changed = await run_hook(instance, tools, host, hook, telling, cause)
        except EXPECTED as error:
            if not head.allow_failure:
                raise
            _log_allowed(instance, hook, error)
    for binding in bindings:
        hooks.monitor(hook, binding).unlock()
    return changed


def _log_allowed(instance: Instance, hook: Hook, error: Expected) -> None:
    """Log a failure that the package's status does not show, because the binding allows failures."""
    why = classify(error, instance.masked).message
    log.warning("%s: %s failed; its binding allows failures: %s", instance.id, hook.name, why)


def named(bindings: tuple[KubernetesBinding, ...]) -> str:
    """Return the names of bindings as one text for users."""
    return ", ".join(binding.name for binding in bindings)


def failed_event(
    instance: Instance, host: Host, hook: Hook, lane: str, error: Exception, scope: WorkScope | None = None
) -> TaskFailed:
    """Report that an event hook failed, and return an error that makes the queue retry the run.

    If the hooks were stopped meanwhile (their ``scope`` is cancelled), the failure is not reported.
    """
    if isinstance(error, EXPECTED):
        message = classify(error, instance.masked).message
    else:
        log.error("%s: %s: a bug in Wharfinger: the run of this hook failed", instance.id, hook.name, exc_info=error)
        message = instance.masked(f"Internal: {type(error).__name__}: {error}")
    if scope is None or not scope.cancelled:
        host.emit(instance, EventHookDone(hook.name, lane, message))
    return TaskFailed(message, permanent=False)
