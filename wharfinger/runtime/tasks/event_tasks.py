"""Hook runs in lanes of their own: events, ticks, and synchronisations that nobody waits for.

They live as long as the package's hooks are started and not a moment longer: their scope is that of the hooks. A failure is
tried again with the lane's backoff and is the package's problem until that lane's next success; a defect is shown and retried as
well, because a lane that stood still would say nothing and drop what happens.
"""

import logging
from collections.abc import Mapping
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
from wharfinger.runtime.package.instance import Instance, Reporter, Tools
from wharfinger.runtime.status.failures import EXPECTED, Expected, classify
from wharfinger.runtime.tasks.hook_runs import Cause, run_hook
from wharfinger.runtime.tasks.synchronizations import about_to_tell

log = logging.getLogger(__name__)


def lane_of(queue: str) -> str:
    """The lane of a hook queue, beside the package's main lane."""
    return f"hooks/{queue}"


@dataclass(frozen=True, slots=True)
class HookEvent:
    """Something came for a hook of a started package; it waits in the inbox."""

    hooks: PackageHooks
    inbox: Inbox


Tasks = Mapping[str, tuple["EventHookTask", ...]]
"""Tasks by the name of the queue they belong in: the package's, then its lane (``shop.web/hooks/main``)."""


@dataclass(frozen=True, slots=True)
class EventHookTask:
    """What waits in a hook's inbox, told to the hook, for as long as the package's hooks are started: that is its ``scope``."""

    hook: Hook
    inbox: Inbox
    hooks: PackageHooks
    instance: Instance
    tools: Tools
    reporter: Reporter
    scope: WorkScope

    @property
    def lane(self) -> str:
        """Of its package's queue."""
        return lane_of(self.inbox.queue)

    @property
    def name(self) -> str:
        """``hooks/10-labels.sh events``; the lane says which queue."""
        return f"{self.hook.name} events"

    async def execute(self) -> None:
        """Run the hook for what has gathered. Raises TaskFailed; what it was told waits on then."""
        if not self.inbox.waiting:
            return
        await self._hold_back()
        occurrences = self.inbox.offered()
        if not occurrences:  # what waited was reduced to nothing
            return
        try:
            await about_to_tell(self.instance, self.hook)
            head = occurrences[0].binding
            cause = Cause(head.name, self.inbox.queue, head.allow_failure)
            telling = partial(self.hooks.contexts, self.hook, occurrences)
            changed = await run_hook(self.instance, self.tools, self.reporter, self.hook, telling, cause)
        except Exception as error:
            if not occurrences[0].binding.allow_failure or not isinstance(error, EXPECTED):
                raise failed_event(self.instance, self.reporter, self.hook, self.lane, error, self.scope) from error
            _log_allowed(self.instance, self.hook, error)
            changed = False
        self.inbox.told(occurrences)
        self.reporter.event_hook_done(self.instance, self.hook.name, self.lane, "")
        if self.inbox.waiting:  # a version 0 hook is told one thing at a time
            self.reporter.tell_hook(self.hooks, self.inbox)
        if changed:
            self.reporter.values_changed(self.instance, self.hook.name)

    async def _hold_back(self) -> None:
        """Wait until the hook may run again by its own settings; what happens meanwhile is told in one run."""
        config = self.hook.config
        if config.min_interval is None:
            return
        throttle = self.instance.throttles.get(self.hook.name)
        if throttle is None or (throttle.interval, throttle.burst) != (config.min_interval, config.burst):
            throttle = self.instance.throttles[self.hook.name] = Throttle(config.min_interval, config.burst)
        # Taken before it is waited for: in another lane the same hook may wait, too, for the run after this one.
        wait_s = throttle.wait_s(trio.current_time())
        throttle.take(trio.current_time())
        try:
            await trio.sleep(wait_s)
        except trio.Cancelled:
            throttle.give_back()
            raise


@dataclass(frozen=True, slots=True)
class SynchronizeTask:
    """The first run for bindings that are synchronised together, and that their package does not wait for; ``scope`` as above."""

    hook: Hook
    bindings: tuple[KubernetesBinding, ...]
    hooks: PackageHooks
    instance: Instance
    tools: Tools
    reporter: Reporter
    scope: WorkScope

    @property
    def name(self) -> str:
        """``hooks/10-labels.sh synchronization of pods``."""
        return f"{self.hook.name} synchronization of {named(self.bindings)}"

    async def execute(self) -> None:
        """Synchronise, then let the bindings' events flow. Raises TaskFailed."""
        lane = lane_of(self.bindings[0].queue)
        try:
            changed = await synchronize(self.instance, self.tools, self.reporter, self.hooks, self.hook, self.bindings)
        except Exception as error:
            raise failed_event(self.instance, self.reporter, self.hook, lane, error, self.scope) from error
        self.reporter.event_hook_done(self.instance, self.hook.name, lane, "")
        if changed:
            self.reporter.values_changed(self.instance, self.hook.name)


async def synchronize(
    instance: Instance,
    tools: Tools,
    reporter: Reporter,
    hooks: PackageHooks,
    hook: Hook,
    bindings: tuple[KubernetesBinding, ...],
) -> bool:
    """Tell a hook all there is of bindings (if it wants that), then let events flow; True if the values changed.

    In one run: only bindings that `contexts.synchronized_together` has together are given together.
    """
    changed, head = False, bindings[0]
    if head.on_synchronization and not head.legacy:
        try:
            await about_to_tell(instance, hook)
            cause = Cause(head.name, head.queue, head.allow_failure)
            telling = partial(hooks.synchronization, hook, *bindings)
            changed = await run_hook(instance, tools, reporter, hook, telling, cause)
        except EXPECTED as error:
            if not head.allow_failure:
                raise
            _log_allowed(instance, hook, error)
    for binding in bindings:
        hooks.monitor(hook, binding).unlock()
    return changed


def _log_allowed(instance: Instance, hook: Hook, error: Expected) -> None:
    """A failure that is none of the package's: it is told here, and nowhere in its status."""
    why = classify(error, instance.masked).message
    log.warning("%s: %s failed, which its binding allows: %s", instance.id, hook.name, why)


def named(bindings: tuple[KubernetesBinding, ...]) -> str:
    """The names of bindings, for people."""
    return ", ".join(binding.name for binding in bindings)


def failed_event(
    instance: Instance, reporter: Reporter, hook: Hook, lane: str, error: Exception, scope: WorkScope | None = None
) -> TaskFailed:
    """Report that an event hook failed, and what its queue is told: that it is to be tried again, whatever it was.

    Where the hooks were put to rest while it failed (their ``scope`` is cancelled) nobody has that problem any more.
    """
    if isinstance(error, EXPECTED):
        message = classify(error, instance.masked).message
    else:
        log.error("%s: %s: a defect of Wharfinger in running it", instance.id, hook.name, exc_info=error)
        message = instance.masked(f"Internal: {type(error).__name__}: {error}")
    if scope is None or not scope.cancelled:
        reporter.event_hook_done(instance, hook.name, lane, message)
    return TaskFailed(message, permanent=False)
