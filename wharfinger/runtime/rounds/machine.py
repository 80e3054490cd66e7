"""The state machine of rounds: the hooks of the Module ``global`` run before and after all other packages (spec hook-protocol
§5.3, "ConvergeModules"). A pure function computes the next state and the effects from the state of the rounds and an event.

Theory of operation. If the Module ``global`` exists, it is the first package in the order, and its reconciliation begins a
round::

    values configured, hooks started → beforeAll hooks → all other packages, by order and requirements → afterAll hooks

A round begins in three cases: the Module is loaded, or its settings change; one of its hooks changed the global values, or
switched a Module on or off; or the set of packages that are on has changed for another reason. In a round, all packages run
again if the global values differ from those of the previous round.

The afterAll hooks run when no other package runs or may still run by itself, and the packages that were switched off are
gone. The afterAll hooks do not wait for a package whose run has failed, because otherwise one broken package would prevent
the afterAll hooks from running. After a restart, the first round also waits until every installed package was loaded or has
failed to load.

If afterAll hooks changed the global values or a switch, another round begins, up to MAX_ROUNDS in a row. After that, the loop
is reported as a failure, and the hooks cause no further round.

The switches that global hooks have set take effect when the beforeAll hooks of a round are done. If the Module is suspended or
disabled, or another version of it is loaded, the round is interrupted: its afterAll hooks are cancelled, and the round has no
further effect. The values with which all packages were run are recorded at the end of a round. So if a process ends during a
round, the next process runs all packages.

After the Module becomes known, no other package is run until the Module has run once, because the node of the Module has the
lowest order even before the Module is read. So while the Module cannot be loaded, new packages wait, and installed packages are
kept as they are. But if a beforeAll hook fails permanently, or several times, the other packages run without its values.
Packages whose own settings change run by themselves, without a round.

The table lists the effects of each event in each phase (``-``: nothing; ``→``: the next phase). A *turn* is one run of all
afterAll hooks; "switch" means that the switches of the hooks take effect. PackageTurned, ModuleExpected and FlagsRead have the
same effects in every phase.

============  ======================  ======================  =======================  ===================================
event         IDLE                    RUNNING                 SETTLING                 ENDING
============  ======================  ======================  =======================  ===================================
RunBegan      → RUNNING               a turn that failed is   → RUNNING                → RUNNING; a turn that waits is
                                      cancelled                                        cancelled, one at work is superseded
RunEnded      switch, survey [1]      switch, survey [1]      switch, survey [1]       cancel the turn; switch, survey [1]
Looked        if packages were        -                       when all is idle,        -
              switched on or off,                             START_TURN → IDLE
              survey for another
              round
Looked, not   -                       the superseded turn is  → IDLE                   the turn is cancelled → IDLE
active                                cancelled
HookRan       with other switches,    -                       with other switches,     -
              another round                                   another round
TurnStarted   → ENDING                its scope is cancelled  its scope is cancelled   its scope is cancelled
TurnAtWork,   -                       noted [2]               -                        noted [2]
TurnFailed
TurnEnded     -                       the turn is over [2]    -                        → IDLE; another round if the hooks
                                                                                       changed what packages see [2]
ModuleGone    all switches are        as in IDLE; a turn is   as in IDLE; → IDLE       as in IDLE; the turn is cancelled
              removed                 cancelled; → IDLE                                → IDLE
============  ======================  ======================  =======================  ===================================

[1] The effect Survey asks the scheduler which packages are on, after the switches have changed. The answer is the event
Surveyed. These packages run again if the values changed, and the next phase is SETTLING. [2] Only if the event is about the
present turn, because a cancelled turn may still report.

Invariants: at most one turn is not cancelled; a turn exists only in the phases RUNNING and ENDING; in the phase RUNNING, the
turn is at work or has just failed; rounds that afterAll hooks caused are counted, up to MAX_ROUNDS.

No trio, no clock, no I/O, no logging.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

from rpds import HashTrieSet

from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.runtime.resources.identity import GLOBAL
from wharfinger.runtime.rounds.events import (
    Cancel,
    Effect,
    EnqueueTurn,
    Event,
    FlagsRead,
    HookRan,
    Log,
    Looked,
    ModuleExpected,
    ModuleGone,
    PackageTurned,
    Purpose,
    ReportLoop,
    RunAnew,
    RunBegan,
    RunEnded,
    Simple,
    Survey,
    Surveyed,
    Tell,
    TurnAtWork,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from wharfinger.runtime.rounds.state import NO_FLAGS, Phase, Rounds, Turn
from wharfinger.runtime.scheduler.events import FlagSet, NodeAdded, Rescheduled
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.package_node import GLOBAL_ORDER

MAX_ROUNDS: Final = 5
"""The limit on the number of consecutive rounds that afterAll hooks cause."""
UNREAD: Final = Node(GLOBAL, "", NO_REQUIREMENTS, order=GLOBAL_ORDER, floor=Verdict.ENABLE, script=True)
"""The scheduler's node for the Module ``global`` while the files of this Module have not been read yet."""

Next: TypeAlias = tuple[Rounds, tuple[Effect, ...]]
"""The state of the rounds after a step, and the effects in the order in which they are to be carried out."""


def step(rounds: Rounds, event: Event) -> Next:
    """Return the state of the rounds after an event, and the effects in the order in which they are to be carried out."""
    match event:
        case PackageTurned(name, on):
            has_turned = name != GLOBAL and on is not (name in rounds.on)
            turned = rounds.turned.insert(name) if has_turned else rounds.turned.discard(name)
            return replace(rounds, turned=turned), ()
        case ModuleExpected() | FlagsRead() | HookRan():
            return _switched(rounds, event)
        case RunBegan() | RunEnded() | Surveyed():
            return _run(rounds, event)
        case Looked():
            return _looked(rounds, event)
        case TurnStarted(scope, made):
            if rounds.phase is not Phase.IDLE:
                return rounds, (Cancel(scope, "another round has begun"),)
            return replace(rounds, phase=Phase.ENDING, turn=Turn(scope, made)), (EnqueueTurn(scope, rounds.seen),)
        case TurnAtWork() | TurnFailed() | TurnEnded():
            return _turn(rounds, event)
        case ModuleGone():
            rounds, ended = _without_turn(rounds, "the global hooks are gone")
            rounds, told = _switch(rounds, NO_FLAGS)
            return replace(rounds, phase=Phase.IDLE, seen="", again=0, flags_known=False), (*ended, *told)
        case _:
            assert_never(event)


# --- the switches of Modules -----------------------------------------------------------------------------------------------


def _switched(rounds: Rounds, event: ModuleExpected | FlagsRead | HookRan) -> Next:
    match event:
        case ModuleExpected(installed):
            # No package runs before global hooks, because global values are part of a package's values. Until the switches are
            # known, installed Modules count as switched on, so that none is disabled only because no hook was read yet.
            on = dict.fromkeys(sorted(installed), True)
            told = (Tell(NodeAdded(UNREAD)), *(Tell(FlagSet(name, enabled=True)) for name in on))
            return replace(rounds, flags={**rounds.flags, **on}), told
        case FlagsRead(flags):
            return _switch(rounds, flags)
        case HookRan(active, flags):
            is_new = not rounds.flags_known or flags != rounds.flags
            if not active or not is_new or rounds.phase is Phase.RUNNING or rounds.turn is not None:
                return rounds, ()
            # The switches take effect after the beforeAll hooks of the next round.
            return rounds, (Tell(Rescheduled(GLOBAL, "ModulesSwitched")),)
        case _:
            assert_never(event)


def _switch(rounds: Rounds, flags: Mapping[str, bool]) -> Next:
    """Set the switches of Modules to those that the global hooks last requested."""
    before = rounds.flags
    changed = sorted(name for name in {*before, *flags} if before.get(name) is not flags.get(name))
    told = tuple(Tell(FlagSet(name, flags.get(name))) for name in changed)
    return replace(rounds, flags=flags, flags_known=True), told


# --- the Module's own run --------------------------------------------------------------------------------------------------


def _run(rounds: Rounds, event: RunBegan | RunEnded | Surveyed) -> Next:
    match event:
        case RunBegan(recorded):
            ended: tuple[Effect, ...] = ()
            if rounds.turn is not None and not rounds.turn.at_work:
                rounds, ended = _without_turn(rounds, "another round begins")
            return replace(rounds, phase=Phase.RUNNING, seen=rounds.seen or recorded), ended
        case RunEnded(values, flags):
            rounds, ended = _without_turn(rounds, "another round has run")
            purpose = Purpose.RUN_OTHERS if values == rounds.seen else Purpose.RUN_ALL
            rounds, told = _switch(replace(rounds, seen=values), flags)
            return rounds, (*ended, *told, Survey(purpose))
        case Surveyed(on, purpose):
            return _surveyed(replace(rounds, on=on, turned=HashTrieSet()), on, purpose)
        case _:
            assert_never(event)


def _surveyed(rounds: Rounds, on: frozenset[str], purpose: Purpose) -> Next:
    match purpose:
        case Purpose.BEGIN:
            return rounds, (Tell(Rescheduled(GLOBAL, "EnabledModulesChanged")),)
        case Purpose.RUN_OTHERS:
            return replace(rounds, phase=Phase.SETTLING), (Simple.LOOK,)
        case Purpose.RUN_ALL:
            again: list[Effect] = []
            for name in sorted(on):
                again += (RunAnew(name), Tell(Rescheduled(name, "GlobalValuesChanged")))
            # The check comes after all packages were rescheduled, because a suspended package completes its run immediately,
            # and an earlier check would end the round.
            return replace(rounds, phase=Phase.SETTLING), (*again, Simple.LOOK)
        case _:
            assert_never(purpose)


# --- the end of a round ----------------------------------------------------------------------------------------------------


def _looked(rounds: Rounds, event: Looked) -> Next:
    """Process a check of the round: begin the afterAll hooks, or another round, if the time has come. End the round if the
    Module ``global`` is not active.
    """
    if event.recorded and not rounds.flags_known:
        return rounds, (Simple.READ_FLAGS, Simple.LOOK)
    if not event.active:
        phase = Phase.RUNNING if rounds.phase is Phase.RUNNING else Phase.IDLE
        return _without_turn(replace(rounds, phase=phase), "the global hooks are stopped")
    if not event.started:
        return rounds, ()
    if rounds.phase is Phase.SETTLING and event.idle:
        return replace(rounds, phase=Phase.IDLE), (Simple.START_TURN,)
    if rounds.phase is Phase.IDLE and rounds.turned:
        return rounds, (Survey(Purpose.BEGIN),)
    return rounds, ()


def _without_turn(rounds: Rounds, cause: str) -> Next:
    """Cancel the run of the afterAll hooks, if there is one, so that the tasks behind it in the lane do not wait for it."""
    turn = rounds.turn
    if turn is None:
        return rounds, ()
    phase = Phase.IDLE if rounds.phase is Phase.ENDING else rounds.phase
    return replace(rounds, phase=phase, turn=None), (Cancel(turn.scope, cause),)


def _turn(rounds: Rounds, event: TurnAtWork | TurnFailed | TurnEnded) -> Next:
    turn = rounds.turn
    if turn is None or turn.scope is not event.scope:
        return rounds, ()
    match event:
        case TurnAtWork():
            return replace(rounds, turn=replace(turn, at_work=True)), ()
        case TurnFailed():
            return replace(rounds, turn=replace(turn, at_work=False)), ()
        case TurnEnded(_, made):
            ended = replace(rounds, turn=None)
            if rounds.phase is not Phase.ENDING:
                return ended, ()  # the next round, which already waits, takes the changes of the hooks into account
            return _go_on(replace(ended, phase=Phase.IDLE), changed=made != turn.made)
        case _:
            assert_never(event)


def _go_on(rounds: Rounds, *, changed: bool) -> Next:
    """Process the end of the afterAll hooks, which ends the round. Begin another round if ``changed``, that is, if these hooks
    changed the global values or the Modules that are on.
    """
    if not changed:
        return replace(rounds, again=0), (Simple.LOOK,)
    if rounds.again < MAX_ROUNDS:
        said = Log("afterAll hooks changed the global values; another round begins")
        return replace(rounds, again=rounds.again + 1), (said, Tell(Rescheduled(GLOBAL, "AfterAllChangedGlobalValues")))
    message = (
        f"afterAll hooks changed the global values {MAX_ROUNDS + 1} rounds in a row; a hook must not change the "
        "values again if nothing else has changed"
    )
    return replace(rounds, again=0), (ReportLoop(message),)
