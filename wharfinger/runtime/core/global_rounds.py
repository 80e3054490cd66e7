"""Rounds: the hooks of the Module ``global`` around all other packages (spec hook-protocol §5.3, "ConvergeModules").

If there is such a Module, it is the first of all in the order, and its reconciliation begins a round::

    values configured, hooks started → beforeAll hooks → all other packages, by order and requirements → afterAll hooks

A round begins when the Module is loaded or its settings change, when one of its hooks changed the global values or switched a
Module on or off, and when the set of Modules that are on has changed otherwise. In a round, packages run again if the global
values differ from those of their last run. The round ends when no package runs or may still run by itself, and the packages
that were switched off are gone. A failed run is not waited for; otherwise one broken package would keep the afterAll hooks
from ever running. After a restart, the first round also waits until every installed package was loaded or has failed to load.
AfterAll hooks that changed the global values or a switch begin another round, up to MAX_ROUNDS in a row; then the loop is
reported as a failure, and no further round begins.

The switches that global hooks have set take effect when the beforeAll hooks of a round are done. A round that is cut short
(the Module is suspended or disabled, or another version of it is loaded) leaves nothing behind: its afterAll hooks are
interrupted. The values that all packages were run with are recorded at its end, so after a process ended within a round, the
next one runs all packages.

From the moment the Module is known until it has run once, no other package is run: its node holds the first order before
anything of the Module was read. So a broken global hook holds up new packages; installed ones are kept as they are.

Packages whose own settings change run by themselves, without a round. Without the Module ``global``, this module does
nothing.
"""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wharfinger.formats.json.value import checksum
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import GLOBAL
from wharfinger.runtime.scheduler.events import FlagSet, NodeAdded, Rescheduled
from wharfinger.runtime.scheduler.global_flags import flags_in, may_be_flagged
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.package_node import GLOBAL_ORDER
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.global_tasks import AfterAllTask, AfterAllTurn

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime

log = logging.getLogger(__name__)

MAX_ROUNDS: Final = 5
"""The limit on rounds in a row that were begun by afterAll hooks."""


@dataclass(slots=True)
class Rounds:
    """The rounds of one runtime; they belong to that runtime."""

    runtime: "Runtime"
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
    """The switches of Modules that are in effect; None: those of an earlier process are not known."""
    _seen: str = ""
    """The checksum of the global values that packages were last run with."""
    _again: int = 0
    """The number of rounds in a row that afterAll hooks have begun."""

    def expect(self) -> None:
        """Prepare for global hooks: no package is run before them, because global values are part of a package's values.

        Until their switches are known, all installed Modules count as switched on, so that none is disabled only because the
        global hooks have not been read yet.
        """
        if self.runtime.scheduler.node(GLOBAL) is not None:
            return
        unread = Node(GLOBAL, "", NO_REQUIREMENTS, order=GLOBAL_ORDER, floor=Verdict.ENABLE, script=True)
        self.runtime.operations.tell_scheduler(NodeAdded(unread))
        for name in sorted(filter(may_be_flagged, self.runtime.statements.unheard)):
            self.runtime.operations.tell_scheduler(FlagSet(name, enabled=True))

    def adopt_flags(self) -> None:
        """Begin a round if the switches of global hooks have changed; they take effect after its beforeAll hooks."""
        instance = self.runtime.instances.get(GLOBAL)
        if instance is None or self._running or self._after_all is not None or not self._goes_on():
            return
        if flags_in(instance.patches) != self._flags:
            self.runtime.operations.tell_scheduler(Rescheduled(GLOBAL, "ModulesSwitched"))

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
        instance, turn = self.runtime.instances.get(GLOBAL), self._after_all
        if not self._seen and instance is not None and instance.record is not None:
            self._seen = instance.record.state.values  # the values of an earlier process
        if turn is not None and turn.at_work:
            turn.superseded = True
        else:
            self._end_turn("another round begins")

    def has_run(self, instance: Instance) -> None:
        """Record that the beforeAll hooks are done, and run the other packages."""
        self._switch()
        values = checksum(instance.values)
        changed, self._seen = self._seen != values, values
        self._on_now()
        if changed:
            for name in sorted(self._on):
                if (other := self.runtime.instances.get(name)) is not None:
                    other.verified = True  # an earlier process applied it with other values
                self.runtime.operations.tell_scheduler(Rescheduled(name, "GlobalValuesChanged"))
        # Only after all were rescheduled: a suspended package completes at once, which would end the round.
        self._running, self._settling = False, True
        self.look()

    def look(self) -> None:
        """Check after any event whether the round is over or cut short, or another one is due."""
        instance = self.runtime.instances.get(GLOBAL)
        if instance is None:
            return
        if self._flags is None and instance.record is not None:
            self._switch()
        if not self._goes_on():
            self._settling = False
            self._end_turn("the global hooks are stopped")
        elif self._running or instance.started is None:
            return
        elif self._settling:
            if self.runtime.scheduler.at_rest and not self.runtime.statements.unheard:
                self._end(instance)
        elif self._after_all is None and self._turned:
            self._on_now()
            self.runtime.operations.tell_scheduler(Rescheduled(GLOBAL, "EnabledModulesChanged"))

    def gone(self) -> None:
        """Record that there are no global hooks any more."""
        self._end_turn("the global hooks are gone")
        self._running, self._settling, self._seen, self._again = False, False, "", 0
        self._switch()
        self._flags = None

    def _goes_on(self) -> bool:
        """Return whether the Module is on and settled: it is not being loaded, suspended or removed."""
        lifecycle = self.runtime.lifecycle
        comes_or_goes = lifecycle.is_loading(GLOBAL) or lifecycle.is_suspended(GLOBAL) or lifecycle.is_removing(GLOBAL)
        return self.runtime.scheduler.enabled(GLOBAL) and not comes_or_goes

    def _on_now(self) -> None:
        self._on = self.runtime.scheduler.enabled_names() - {GLOBAL}
        self._turned.clear()

    def _switch(self) -> None:
        """Switch Modules on or off as global hooks have last asked."""
        instance, scheduler = self.runtime.instances.get(GLOBAL), self.runtime.scheduler
        wanted = flags_in(instance.patches) if instance is not None else {}
        if wanted != self._flags:
            self._flags = wanted
            for name in sorted({*scheduler.flagged(), *wanted}):
                self.runtime.operations.tell_scheduler(FlagSet(name, wanted.get(name)))

    def _end(self, instance: Instance) -> None:
        """Run the afterAll hooks in the Module's main lane, now that all packages are idle."""
        self._settling = False
        turn = self._after_all = AfterAllTurn(self._seen)
        task = AfterAllTask(instance, self.runtime.tools, self.runtime.reports, turn, self._until_gone)
        before = _made_by_hooks(instance)
        self.runtime.queues.enqueue(GLOBAL, task, turn.scope, on_done=lambda: self._ended(instance, turn, before))

    async def _until_gone(self) -> None:
        """Wait until the packages that were switched off or are being removed are done, including their hooks, however long
        it takes.
        """
        is_removing = self.runtime.lifecycle.is_removing
        going = [name for name, one in self.runtime.instances.items() if one.disabling is not None or is_removing(name)]
        for name in going:
            await self.runtime.queues.wait_idle(name)

    def _end_turn(self, cause: str) -> None:
        """Interrupt running afterAll hooks, because the tasks behind them in the lane must not wait for them."""
        turn, self._after_all = self._after_all, None
        if turn is not None:
            turn.scope.cancel(cause)

    def _ended(self, instance: Instance, turn: AfterAllTurn, before: str) -> None:
        self._after_all = None
        if turn.superseded:
            return  # the next round, which waits, sees what they changed
        if _made_by_hooks(instance) == before:
            self._again = 0
            self.look()
        elif self._again < MAX_ROUNDS:
            self._again += 1
            log.info("afterAll hooks changed the global values; another round")
            self.runtime.operations.tell_scheduler(Rescheduled(GLOBAL, "AfterAllChangedGlobalValues"))
        else:
            self._again = 0
            message = (
                f"afterAll hooks changed the global values {MAX_ROUNDS} rounds in a row; a hook must not change them "
                "when nothing else changes"
            )
            self.runtime.reports.failed(instance, Stage.HOOKS, Failure(Reason.VALUES_LOOP, message, permanent=True))


def _made_by_hooks(instance: Instance) -> str:
    """Return a checksum of the values that hooks can change: the global values, and the switches of Modules."""
    return checksum([instance.values, dict(flags_in(instance.patches))])
