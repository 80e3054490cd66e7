"""Rounds: the hooks of the Module ``global`` around all other packages (spec hook-protocol §5.3, "ConvergeModules").

If there is such a Module, it is the first of all in the order, and its reconciliation begins a round::

    values configured, hooks started → beforeAll hooks → all other packages, by order and requirements → afterAll hooks

A round begins when the Module is loaded or its settings change, when one of its hooks changed the global values or switched a
Module on or off, and when the set of Modules that are on has changed otherwise. In a round, all packages run again if the
global values differ from those of the last round. The round ends when no package runs or may still run by itself, and the
packages that were switched off are gone. A failed run is not waited for; otherwise one broken package would keep the afterAll
hooks from ever running. After a restart, the first round also waits until every installed package was loaded or has failed to
load. AfterAll hooks that changed the global values or a switch begin another round, up to MAX_ROUNDS in a row; then the loop is
reported as a failure, and no further round begins.

The switches that global hooks have set take effect when the beforeAll hooks of a round are done. A round that is cut short (the
Module is suspended or disabled, or another version of it is loaded) has no further effect: its afterAll hooks are interrupted.
The values that all packages were run with are recorded at the end of a round. So if a process ends within a round, the next
process runs all packages.

From the moment the Module is known until it has run once, no other package is run: its node holds the first order even before
the Module is read. So a broken global hook holds back new packages; installed ones are kept as they are.

Packages whose own settings change run by themselves, without a round. Without the Module ``global``, this module does
nothing.
"""

import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import checksum
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.queue.service import Queues
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.events import StageFailed
from wharfinger.runtime.package.facts import Verified
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.identity import GLOBAL
from wharfinger.runtime.scheduler.events import Event, FlagSet, NodeAdded, Rescheduled
from wharfinger.runtime.scheduler.global_flags import flags_in, may_be_flagged
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.package_node import GLOBAL_ORDER
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.global_tasks import AfterAllTask, AfterAllTurn

log = logging.getLogger(__name__)

MAX_ROUNDS: Final = 5
"""The limit on rounds in a row that were begun by afterAll hooks."""


@dataclass(frozen=True, slots=True)
class Others:
    """The view of rounds on the other packages. ``tell`` passes an event to the scheduler, and ``settle`` performs its orders."""

    instances: Mapping[str, Instance]
    scheduler: Scheduler
    lifecycle: LifecycleStore
    unheard: AbstractSet[str]
    tell: Callable[[Event], None]
    settle: Callable[[], None]
    queues: Queues
    tools: Tools
    host: Host


@dataclass(slots=True)
class Rounds:
    """The rounds of global hooks around the other packages."""

    others: Others
    _running: bool = False
    """True while the Module's own run is under way or pending; the other packages run after it."""
    _settling: bool = False
    """True while other packages run and the afterAll hooks are still to come."""
    _after_all: AfterAllTurn | None = None
    """The turn of the afterAll hooks that run now, or are to be retried."""
    _on: frozenset[str] = frozenset()
    """The packages that were on when the round began."""
    _turned: set[str] = field(default_factory=set)
    """The packages that were switched on or off since then."""
    _flags: dict[str, bool] | None = None
    """The switches of Modules that are in effect; None while the switches of the earlier process are not known."""
    _seen: str = ""
    """The checksum of the global values that packages were last run with."""
    _again: int = 0
    """The number of rounds in a row that afterAll hooks have begun."""

    def expect(self) -> None:
        """Prepare for global hooks: no package is run before them, because global values are part of a package's values.

        Until their switches are known, all installed Modules count as switched on, so that none is disabled only because the
        global hooks have not been read yet.
        """
        if self.others.scheduler.node(GLOBAL) is not None:
            return
        unread = Node(GLOBAL, "", NO_REQUIREMENTS, order=GLOBAL_ORDER, floor=Verdict.ENABLE, script=True)
        self.others.tell(NodeAdded(unread))
        for name in sorted(filter(may_be_flagged, self.others.unheard)):
            self.others.tell(FlagSet(name, enabled=True))

    def adopt_flags(self) -> None:
        """Begin a round if the switches of global hooks have changed; they take effect after its beforeAll hooks."""
        instance = self.others.instances.get(GLOBAL)
        if instance is None or self._running or self._after_all is not None or not self._goes_on():
            return
        if flags_in(instance.patches) != self._flags:
            self.others.tell(Rescheduled(GLOBAL, "ModulesSwitched"))

    def decided(self, name: str, *, on: bool) -> None:
        """Record that a package was decided to be on or off, or is gone."""
        if name != GLOBAL and on is not (name in self._on):
            self._turned.add(name)
        else:
            self._turned.discard(name)

    def begins(self) -> None:
        """Record that the Module ``global`` is about to run.

        AfterAll hooks that run may finish; if they only wait, they are interrupted.
        """
        self._running, self._settling = True, False
        instance, turn = self.others.instances.get(GLOBAL), self._after_all
        if not self._seen and instance is not None and instance.record is not None:
            self._seen = instance.record.state.values  # the values of an earlier process
        if turn is not None and turn.at_work:
            turn.superseded = True
        else:
            self._end_turn("another round begins")

    def has_run(self, instance: Instance) -> None:
        """Record that the beforeAll hooks are done, and run the other packages."""
        self._switch()
        values = checksum(instance.configuration.values)
        changed, self._seen = self._seen != values, values
        self._on_now()
        if changed:
            for name in sorted(self._on):
                if (other := self.others.instances.get(name)) is not None:
                    other.apply(Verified())  # an earlier process applied it with other values
                self.others.tell(Rescheduled(name, "GlobalValuesChanged"))
        # Only after all were rescheduled: a suspended package completes at once, which would end the round.
        self._running, self._settling = False, True
        self.look()

    def look(self) -> None:
        """End the round if it is over or cut short, or begin another one that is due. To be called after any event."""
        instance = self.others.instances.get(GLOBAL)
        if instance is None:
            return
        if self._flags is None and instance.record is not None:
            self._switch()
        if not self._goes_on():
            self._settling = False
            self._end_turn("the global hooks are stopped")
        elif self._running or instance.hooks.started is None:
            return
        elif self._settling:
            if self.others.scheduler.at_rest and not self.others.unheard:
                self._end(instance)
        elif self._after_all is None and self._turned:
            self._on_now()
            self.others.tell(Rescheduled(GLOBAL, "EnabledModulesChanged"))

    def gone(self) -> None:
        """Record that there are no global hooks any more."""
        self._end_turn("the global hooks are gone")
        self._running, self._settling, self._seen, self._again = False, False, "", 0
        self._switch()
        self._flags = None

    def _goes_on(self) -> bool:
        """Return whether the Module is on and settled: it is not being loaded, suspended or removed."""
        lifecycle = self.others.lifecycle
        comes_or_goes = lifecycle.is_loading(GLOBAL) or lifecycle.is_suspended(GLOBAL) or lifecycle.is_removing(GLOBAL)
        return self.others.scheduler.enabled(GLOBAL) and not comes_or_goes

    def _on_now(self) -> None:
        self._on = self.others.scheduler.enabled_names() - {GLOBAL}
        self._turned.clear()

    def _switch(self) -> None:
        """Switch Modules on or off as the global hooks last requested."""
        instance, scheduler = self.others.instances.get(GLOBAL), self.others.scheduler
        wanted = flags_in(instance.patches) if instance is not None else {}
        if wanted != self._flags:
            self._flags = wanted
            for name in sorted({*scheduler.flagged(), *wanted}):
                self.others.tell(FlagSet(name, wanted.get(name)))

    def _end(self, instance: Instance) -> None:
        """Run the afterAll hooks in the Module's main lane, now that all packages are idle."""
        self._settling = False
        turn = self._after_all = AfterAllTurn(self._seen)
        task = AfterAllTask(instance, self.others.tools, self.others.host, turn, self._until_gone)
        before = _made_by_hooks(instance)
        self.others.queues.enqueue(GLOBAL, task, turn.scope, on_done=lambda: self._ended(instance, turn, before))

    async def _until_gone(self) -> None:
        """Wait until the packages that were switched off or are being removed are done, including their hooks, however long
        it takes.
        """
        is_removing = self.others.lifecycle.is_removing
        going = [
            name for name, one in self.others.instances.items() if one.node.disabling is not None or is_removing(name)
        ]
        for name in going:
            await self.others.queues.wait_idle(name)

    def _end_turn(self, cause: str) -> None:
        """Interrupt running afterAll hooks, because the tasks behind them in the lane must not wait for them."""
        turn, self._after_all = self._after_all, None
        if turn is not None:
            turn.scope.cancel(cause)

    def _ended(self, instance: Instance, turn: AfterAllTurn, before: str) -> None:
        self._after_all = None
        if not turn.superseded:  # otherwise the next round, which waits, sees what they changed
            self._go_on(instance, before)
            self.others.settle()

    def _go_on(self, instance: Instance, before: str) -> None:
        """End the round after its afterAll hooks, or begin another one if they changed what packages see."""
        if _made_by_hooks(instance) == before:
            self._again = 0
            self.look()
        elif self._again < MAX_ROUNDS:
            self._again += 1
            log.info("afterAll hooks changed the global values; another round")
            self.others.tell(Rescheduled(GLOBAL, "AfterAllChangedGlobalValues"))
        else:
            self._again = 0
            message = (
                f"afterAll hooks changed the global values {MAX_ROUNDS} rounds in a row; a hook must not change them "
                "when nothing else changes"
            )
            self.others.host.emit(
                instance, StageFailed(Stage.HOOKS, Failure(Reason.VALUES_LOOP, message, permanent=True))
            )


def _made_by_hooks(instance: Instance) -> str:
    """Return a checksum of the values that hooks can change: the global values, and the switches of Modules."""
    return checksum([instance.configuration.values, dict(flags_in(instance.patches))])
