"""The execution of rounds of global hooks: events of the Module ``global`` and of other packages are passed to the state
machine (:mod:`~wharfinger.runtime.rounds.machine`), and its effects are carried out. Without the Module ``global``, no round
begins.
"""

import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import assert_never

from wharfinger.formats.json.value import checksum
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.events import Event, StageFailed
from wharfinger.runtime.package.findings import Verified
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.identity import GLOBAL
from wharfinger.runtime.rounds import events
from wharfinger.runtime.rounds.machine import step
from wharfinger.runtime.rounds.state import Rounds
from wharfinger.runtime.scheduler.events import Event as SchedulerEvent
from wharfinger.runtime.scheduler.global_flags import flags_in, may_be_flagged
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.global_tasks import AfterAllTask

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Others:
    """The parts of the runtime that rounds use. ``send`` passes an event to the scheduler, ``take`` passes an event to a
    package, and ``settle`` does the work that results from both kinds of events.
    """

    instances: Mapping[str, Instance]
    scheduler: Scheduler
    lifecycle: LifecycleStore
    unknown: AbstractSet[str]
    send: Callable[[SchedulerEvent], None]
    take: Callable[[Instance, Event], None]
    settle: Callable[[], None]
    queues: Queues
    tools: Tools
    host: Host


class GlobalRounds:
    """The rounds of global hooks, which run before and after the other packages."""

    def __init__(self, others: Others) -> None:
        self._others = others
        self.state = Rounds()

    # --- what happened ---------------------------------------------------------------------------------------------------

    def expect(self) -> None:
        """Record that there are global hooks that have not been read yet."""
        if self._others.scheduler.node(GLOBAL) is None:
            self._take(events.ModuleExpected(tuple(filter(may_be_flagged, self._others.unknown))))

    def decided(self, name: str, *, on: bool) -> None:
        """Record the decision that a package is on or off; a package that is gone counts as off."""
        self._take(events.PackageTurned(name, on))

    def begins(self) -> None:
        """Record that the Module ``global`` is about to run."""
        instance = self._others.instances.get(GLOBAL)
        record = instance.record if instance is not None else None
        self._take(events.RunBegan(record.state.values if record is not None else ""))

    def has_run(self, instance: Instance) -> None:
        """Record that the beforeAll hooks are done, and run the other packages."""
        self._take(events.RunEnded(checksum(instance.configuration.values), flags_in(instance.patches)))

    def hook_ran(self, instance: Instance) -> None:
        """Record that a global hook ran, which may have switched Modules on or off."""
        self._take(events.HookRan(self._is_active(), flags_in(instance.patches)))

    def look(self) -> None:
        """End a round that is complete or interrupted, or begin a round that is due. Call this after every event."""
        instance = self._others.instances.get(GLOBAL)
        if instance is not None:
            idle = self._others.scheduler.at_rest and not self._others.unknown
            started, recorded = instance.hooks.started is not None, instance.record is not None
            self._take(events.Looked(self._is_active(), started, recorded, idle))

    def gone(self) -> None:
        """Record that there are no global hooks any more."""
        self._take(events.ModuleGone())

    # --- afterAll hooks: called by their task ----------------------------------------------------------------------------

    async def until_gone(self) -> None:
        """Wait, without a time limit, until all packages that are being switched off or removed have finished, including
        their hooks.
        """
        is_removing = self._others.lifecycle.is_removing
        going = [
            name for name, one in self._others.instances.items() if one.node.disabling is not None or is_removing(name)
        ]
        for name in going:
            await self._others.queues.wait_idle(name)

    def turn_begins(self, scope: WorkScope) -> None:
        """Record that the afterAll hooks begin to run."""
        self._take(events.TurnAtWork(scope))

    def turn_failed(self, scope: WorkScope) -> bool:
        """Record that an attempt to run the afterAll hooks failed. Return whether to run them again: True unless another round
        has begun.
        """
        self._take(events.TurnFailed(scope))
        return not self.state.is_superseded(scope)

    # --- internal --------------------------------------------------------------------------------------------------------

    def _is_active(self) -> bool:
        """Return whether the Module ``global`` is on, is not suspended, and is neither being loaded nor being removed."""
        lifecycle = self._others.lifecycle
        comes_or_goes = lifecycle.is_loading(GLOBAL) or lifecycle.is_suspended(GLOBAL) or lifecycle.is_removing(GLOBAL)
        return self._others.scheduler.enabled(GLOBAL) and not comes_or_goes

    def _take(self, event: events.Event) -> None:
        self.state, effects = step(self.state, event)
        for effect in effects:
            self._perform(effect)

    def _perform(self, effect: events.Effect) -> None:
        instance = self._others.instances.get(GLOBAL)
        match effect:
            case events.Tell(event):
                self._others.send(event)
            case events.Survey(purpose):
                self._take(events.Surveyed(self._others.scheduler.enabled_names() - {GLOBAL}, purpose))
            case events.RunAnew(name):
                if (other := self._others.instances.get(name)) is not None:
                    self._others.take(other, Verified())
            case events.Cancel(scope, cause):
                scope.cancel(cause)
            case events.Log(text):
                log.info("%s", text)
            case events.Simple() | events.EnqueueTurn() | events.ReportLoop():
                if instance is not None:
                    self._perform_for_module(instance, effect)
            case _:
                assert_never(effect)

    def _perform_for_module(
        self, instance: Instance, effect: events.Simple | events.EnqueueTurn | events.ReportLoop
    ) -> None:
        match effect:
            case events.Simple.READ_FLAGS:
                self._take(events.FlagsRead(flags_in(instance.patches)))
            case events.Simple.LOOK:
                self.look()
            case events.Simple.START_TURN:
                self._take(events.TurnStarted(WorkScope("afterAll hooks"), _made_by_hooks(instance)))
            case events.EnqueueTurn(scope, values):
                task = AfterAllTask(instance, self._others.tools, self._others.host, self, scope, values)
                self._others.queues.enqueue(GLOBAL, task, scope, on_done=lambda: self._turn_ended(instance, scope))
            case events.ReportLoop(message):
                failure = Failure(Reason.VALUES_LOOP, message, permanent=True)
                self._others.take(instance, StageFailed(Stage.HOOKS, failure))
            case _:
                assert_never(effect)

    def _turn_ended(self, instance: Instance, scope: WorkScope) -> None:
        self._take(events.TurnEnded(scope, _made_by_hooks(instance)))
        self._others.settle()


def _made_by_hooks(instance: Instance) -> str:
    """Return a checksum of the values that hooks can change: the global values, and the switches of Modules."""
    return checksum([instance.configuration.values, dict(flags_in(instance.patches))])
