"""Rounds: the hooks of the Module ``global`` around all other packages (spec hook-protocol §5.3, "ConvergeModules").

Where there is such a Module, it is the first of all in the order, and its reconciliation begins a round::

    values configured, hooks started → beforeAll hooks → everybody else, as orders and requirements have it → afterAll hooks

A round begins when the Module is loaded or its settings change, when one of its hooks changed the global values or switched a
Module on or off, and when the set of Modules that are on has changed otherwise. Packages run again in a round where the global
values are not those that they were run with. The round ends when nobody runs, or may yet run by itself, and who was switched off
is gone; a run that has failed is not waited for, or one broken package would keep the afterAll hooks from ever running. After a
restart the first round also waits until each installed package was loaded, or has failed to load. AfterAll
hooks that changed the global values or a switch begin another round, up to MAX_ROUNDS in a row, after which the loop is named
instead of being run for ever.

Whom global hooks have switched on or off is looked at when the beforeAll hooks of a round are through. A round that is cut short
(the Module is put to rest, or brought in another version) leaves nothing behind: its afterAll hooks are interrupted. The
values that everybody was run with are recorded at its end, so a process that was ended in a round begins with everybody.

From when the Module is known until it has run once, nobody else is run: its node holds the first order before anything of it
was read. A broken global hook so holds up what is new; what is installed stays as it is.

Packages whose own settings change run by themselves, without a round. Without the Module ``global`` nothing here does
anything.
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
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.global_tasks import AfterAllTask, AfterAllTurn

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime

log = logging.getLogger(__name__)

GLOBAL_ORDER: Final = -1
"""Before the lowest order that a package may have."""
MAX_ROUNDS: Final = 5
"""In a row that were begun by afterAll hooks."""


@dataclass(slots=True)
class Rounds:
    """The rounds of one runtime, which it belongs to."""

    runtime: "Runtime"
    _running: bool = False
    """The Module's own run is under way, or to come: its end is the beginning of everybody's turn."""
    _settling: bool = False
    """Others run; the afterAll hooks are to come."""
    _after_all: AfterAllTurn | None = None
    """The afterAll hooks run, or are to be run again."""
    _on: frozenset[str] = frozenset()
    """Who was on when the round began."""
    _turned: set[str] = field(default_factory=set)
    """Who is on and was not then, or the other way round."""
    _flags: dict[str, bool] | None = None
    """What Modules were switched to; None: it is not known what an earlier process was told."""
    _seen: str = ""
    """The global values that packages were last run with."""
    _again: int = 0
    """Rounds in a row that afterAll hooks have begun."""

    def expect(self) -> None:
        """There are global hooks, or will be: nobody is run before they were, since what is run is made of global values.

        Until it is known whom they had switched on, that is taken to be everybody who is installed: nobody is taken away for not
        having been read in time.
        """
        if self.runtime.scheduler.node(GLOBAL) is not None:
            return
        unread = Node(GLOBAL, "", NO_REQUIREMENTS, order=GLOBAL_ORDER, floor=Verdict.ENABLE, script=True)
        self.runtime.operations.tell_scheduler(NodeAdded(unread))
        for name in sorted(filter(may_be_flagged, self.runtime.statements.unheard)):
            self.runtime.operations.tell_scheduler(FlagSet(name, enabled=True))

    def adopt_flags(self) -> None:
        """What global hooks say of Modules may have changed: a round begins, after whose beforeAll hooks it counts."""
        instance = self.runtime.instances.get(GLOBAL)
        if instance is None or self._running or self._after_all is not None or not self._goes_on():
            return
        if flags_in(instance.patches) != self._flags:
            self.runtime.operations.tell_scheduler(Rescheduled(GLOBAL, "ModulesSwitched"))

    def decided(self, name: str, *, on: bool) -> None:
        """It was decided whether a package is on, or it is gone."""
        if name != GLOBAL and on is not (name in self._on):
            self._turned.add(name)
        else:
            self._turned.discard(name)

    def begins(self) -> None:
        """The Module ``global`` is about to be run: afterAll hooks are let finish, and give way where they only wait."""
        self._running, self._settling = True, False
        instance, turn = self.runtime.instances.get(GLOBAL), self._after_all
        if not self._seen and instance is not None and instance.record is not None:
            self._seen = instance.record.state.values  # those of an earlier process
        if turn is not None and turn.at_work:
            turn.superseded = True
        else:
            self._end_turn("another round begins")

    def has_run(self, instance: Instance) -> None:
        """The beforeAll hooks are through: it is everybody's turn."""
        self._switch()
        values = checksum(instance.values)
        changed, self._seen = self._seen != values, values
        self._on_now()
        if changed:
            for name in sorted(self._on):
                if (other := self.runtime.instances.get(name)) is not None:
                    other.verified = True  # what an earlier process applied was made of other values
                self.runtime.operations.tell_scheduler(Rescheduled(name, "GlobalValuesChanged"))
        # Not before everybody was told: who is suspended is through at once, and the round would be over.
        self._running, self._settling = False, True
        self.look()

    def look(self) -> None:
        """Something ended, or was decided: the round may be over, or cut short, or another one due."""
        instance = self.runtime.instances.get(GLOBAL)
        if instance is None:
            return
        if self._flags is None and instance.record is not None:
            self._switch()
        if not self._goes_on():
            self._settling = False
            self._end_turn("the global hooks are put to rest")
        elif self._running or instance.started is None:
            return
        elif self._settling:
            if self.runtime.scheduler.at_rest and not self.runtime.statements.unheard:
                self._end(instance)
        elif self._after_all is None and self._turned:
            self._on_now()
            self.runtime.operations.tell_scheduler(Rescheduled(GLOBAL, "EnabledModulesChanged"))

    def gone(self) -> None:
        """There are no global hooks any more."""
        self._end_turn("the global hooks are gone")
        self._running, self._settling, self._seen, self._again = False, False, "", 0
        self._switch()
        self._flags = None

    def _goes_on(self) -> bool:
        """Whether the Module is on and stays as it is: no version is brought, and it is neither suspended nor removed."""
        lifecycle = self.runtime.lifecycle
        comes_or_goes = lifecycle.is_loading(GLOBAL) or lifecycle.is_suspended(GLOBAL) or lifecycle.is_removing(GLOBAL)
        return self.runtime.scheduler.enabled(GLOBAL) and not comes_or_goes

    def _on_now(self) -> None:
        self._on = self.runtime.scheduler.enabled_names() - {GLOBAL}
        self._turned.clear()

    def _switch(self) -> None:
        """Modules are on, or not, as global hooks have said last."""
        instance, scheduler = self.runtime.instances.get(GLOBAL), self.runtime.scheduler
        wanted = flags_in(instance.patches) if instance is not None else {}
        if wanted != self._flags:
            self._flags = wanted
            for name in sorted({*scheduler.flagged(), *wanted}):
                self.runtime.operations.tell_scheduler(FlagSet(name, wanted.get(name)))

    def _end(self, instance: Instance) -> None:
        """Everybody is at rest: the afterAll hooks, in the Module's main lane."""
        self._settling = False
        turn = self._after_all = AfterAllTurn(self._seen)
        task = AfterAllTask(instance, self.runtime.tools, self.runtime.reports, turn, self._until_gone)
        before = _made_by_hooks(instance)
        self.runtime.queues.enqueue(GLOBAL, task, turn.scope, on_done=lambda: self._ended(instance, turn, before))

    async def _until_gone(self) -> None:
        """Wait until those that were switched off, or are removed, are at their end, hooks and all; however long that takes."""
        is_removing = self.runtime.lifecycle.is_removing
        going = [name for name, one in self.runtime.instances.items() if one.disabling is not None or is_removing(name)]
        for name in going:
            await self.runtime.queues.wait_idle(name)

    def _end_turn(self, cause: str) -> None:
        """Interrupt the afterAll hooks; nothing if they do not run. What comes behind them in the lane must not wait for them."""
        turn, self._after_all = self._after_all, None
        if turn is not None:
            turn.scope.cancel(cause)

    def _ended(self, instance: Instance, turn: AfterAllTurn, before: str) -> None:
        self._after_all = None
        if turn.superseded:
            return  # the round that waits sees what they changed
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
                f"afterAll hooks changed the global values {MAX_ROUNDS} rounds in a row; a hook must come to rest when nothing "
                "else changes"
            )
            self.runtime.reports.failed(instance, Stage.HOOKS, Failure("ValuesLoop", message, permanent=True))


def _made_by_hooks(instance: Instance) -> str:
    """A checksum of what hooks can change: the global values, and whom they have switched."""
    return checksum([instance.values, dict(flags_in(instance.patches))])
