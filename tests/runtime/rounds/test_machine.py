"""The state machine of rounds: each row of its table, and random orders of events. A *turn* is one run of the afterAll hooks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from rpds import HashTrieSet

from tests.scale import scaled
from wharfinger.queue.scope import WorkScope
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
from wharfinger.runtime.rounds.machine import MAX_ROUNDS, UNREAD, step
from wharfinger.runtime.rounds.state import Phase, Rounds, Turn
from wharfinger.runtime.scheduler.events import FlagSet, NodeAdded, Rescheduled

SCOPE: Final = WorkScope("afterAll hooks")
TURN: Final = Turn(SCOPE, "before")
AT_WORK: Final = replace(TURN, at_work=True)
KNOWN: Final = Rounds(flags_known=True, seen="v1", on=frozenset({"dns"}))
RUNNING: Final = replace(KNOWN, phase=Phase.RUNNING)
SETTLING: Final = replace(KNOWN, phase=Phase.SETTLING)
ENDING: Final = replace(KNOWN, phase=Phase.ENDING, turn=TURN)
LATE: Final = replace(RUNNING, turn=AT_WORK)
IDLE_LOOK: Final = Looked(active=True, started=True, recorded=True, idle=True)
BUSY_LOOK: Final = replace(IDLE_LOOK, idle=False)
STOPPED_LOOK: Final = replace(IDLE_LOOK, active=False)


def again(reason: str) -> Tell:
    return Tell(Rescheduled(GLOBAL, reason))


def after(rounds: Rounds, *events: Event) -> Rounds:
    for event in events:
        rounds, _ = step(rounds, event)
    return rounds


def turned(rounds: Rounds, *names: str) -> Rounds:
    return replace(rounds, turned=HashTrieSet(names))


# --- the table -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "event", "phase", "effects"),
    [
        (KNOWN, RunBegan("v0"), Phase.RUNNING, ()),
        (RUNNING, RunBegan("v0"), Phase.RUNNING, ()),
        (SETTLING, RunBegan("v0"), Phase.RUNNING, ()),
        (ENDING, RunBegan("v0"), Phase.RUNNING, (Cancel(SCOPE, "another round begins"),)),
        (replace(ENDING, turn=AT_WORK), RunBegan("v0"), Phase.RUNNING, ()),
        (KNOWN, RunEnded("v1", {}), Phase.IDLE, (Survey(Purpose.RUN_OTHERS),)),
        (RUNNING, RunEnded("v1", {}), Phase.RUNNING, (Survey(Purpose.RUN_OTHERS),)),
        (SETTLING, RunEnded("v2", {}), Phase.SETTLING, (Survey(Purpose.RUN_ALL),)),
        (ENDING, RunEnded("v1", {}), Phase.IDLE,
         (Cancel(SCOPE, "another round has run"), Survey(Purpose.RUN_OTHERS))),
        (KNOWN, IDLE_LOOK, Phase.IDLE, ()),
        (turned(KNOWN, "web"), BUSY_LOOK, Phase.IDLE, (Survey(Purpose.BEGIN),)),
        (turned(RUNNING, "web"), IDLE_LOOK, Phase.RUNNING, ()),
        (turned(SETTLING, "web"), BUSY_LOOK, Phase.SETTLING, ()),
        (turned(SETTLING, "web"), IDLE_LOOK, Phase.IDLE, (Simple.START_TURN,)),
        (turned(ENDING, "web"), IDLE_LOOK, Phase.ENDING, ()),
        (SETTLING, replace(IDLE_LOOK, started=False), Phase.SETTLING, ()),
        (turned(KNOWN, "web"), STOPPED_LOOK, Phase.IDLE, ()),
        (RUNNING, STOPPED_LOOK, Phase.RUNNING, ()),
        (LATE, STOPPED_LOOK, Phase.RUNNING, (Cancel(SCOPE, "the global hooks are stopped"),)),
        (SETTLING, STOPPED_LOOK, Phase.IDLE, ()),
        (ENDING, STOPPED_LOOK, Phase.IDLE, (Cancel(SCOPE, "the global hooks are stopped"),)),
        (Rounds(), IDLE_LOOK, Phase.IDLE, (Simple.READ_FLAGS, Simple.LOOK)),
        (Rounds(), replace(IDLE_LOOK, recorded=False), Phase.IDLE, ()),
        (KNOWN, HookRan(True, {"a": True}), Phase.IDLE, (again("ModulesSwitched"),)),
        (SETTLING, HookRan(True, {"a": True}), Phase.SETTLING, (again("ModulesSwitched"),)),
        (Rounds(), HookRan(True, {}), Phase.IDLE, (again("ModulesSwitched"),)),
        (KNOWN, HookRan(True, {}), Phase.IDLE, ()),
        (KNOWN, HookRan(False, {"a": True}), Phase.IDLE, ()),
        (RUNNING, HookRan(True, {"a": True}), Phase.RUNNING, ()),
        (ENDING, HookRan(True, {"a": True}), Phase.ENDING, ()),
        (KNOWN, TurnStarted(SCOPE, "before"), Phase.ENDING, (EnqueueTurn(SCOPE, "v1"),)),
        (RUNNING, TurnStarted(SCOPE, "before"), Phase.RUNNING, (Cancel(SCOPE, "another round has begun"),)),
        (SETTLING, TurnStarted(SCOPE, "before"), Phase.SETTLING, (Cancel(SCOPE, "another round has begun"),)),
        (LATE, TurnEnded(SCOPE, "after"), Phase.RUNNING, ()),
        (ENDING, TurnEnded(SCOPE, "before"), Phase.IDLE, (Simple.LOOK,)),
        (ENDING, TurnEnded(WorkScope("another"), "after"), Phase.ENDING, ()),
        (KNOWN, TurnEnded(SCOPE, "after"), Phase.IDLE, ()),
        (KNOWN, ModuleGone(), Phase.IDLE, ()),
        (LATE, ModuleGone(), Phase.IDLE, (Cancel(SCOPE, "the global hooks are gone"),)),
        (SETTLING, ModuleGone(), Phase.IDLE, ()),
        (ENDING, ModuleGone(), Phase.IDLE, (Cancel(SCOPE, "the global hooks are gone"),)),
    ],
)  # fmt: skip
def test_each_row_of_the_table_gives_its_state_and_effects(
    before: Rounds, event: Event, phase: Phase, effects: tuple[Effect, ...]
) -> None:
    rounds, done = step(before, event)
    assert (rounds.phase, done) == (phase, effects)
    assert rounds.turn is None or phase in (Phase.RUNNING, Phase.ENDING)


def test_a_package_has_turned_while_its_state_differs_from_the_beginning() -> None:
    assert set(after(KNOWN, PackageTurned("web", on=True)).turned) == {"web"}
    assert set(after(KNOWN, PackageTurned("dns", on=False)).turned) == {"dns"}
    assert not after(KNOWN, PackageTurned("web", on=True), PackageTurned("web", on=False)).turned
    assert not after(KNOWN, PackageTurned("dns", on=True), PackageTurned("off", on=False)).turned
    assert not after(KNOWN, PackageTurned(GLOBAL, on=True)).turned


def test_installed_modules_are_on_until_the_flags_are_known() -> None:
    rounds, done = step(Rounds(), ModuleExpected(("web", "dns")))
    assert done == (Tell(NodeAdded(UNREAD)), Tell(FlagSet("dns", True)), Tell(FlagSet("web", True)))
    rounds, done = step(rounds, FlagsRead({"web": True, "log": False}))
    assert done == (Tell(FlagSet("dns", None)), Tell(FlagSet("log", False)))
    assert (rounds.flags, rounds.flags_known) == ({"web": True, "log": False}, True)


def test_flags_take_effect_after_the_run_and_before_the_survey() -> None:
    rounds, done = step(replace(RUNNING, flags={"dns": True}), RunEnded("v1", {"web": False}))
    assert done == (Tell(FlagSet("dns", None)), Tell(FlagSet("web", False)), Survey(Purpose.RUN_OTHERS))
    assert rounds.flags == {"web": False}


def test_all_packages_run_again_if_global_values_changed() -> None:
    rounds, done = step(turned(RUNNING, "web"), Surveyed(frozenset({"web", "dns"}), Purpose.RUN_ALL))
    runs = [Tell(Rescheduled(name, "GlobalValuesChanged")) for name in ("dns", "web")]
    assert done == (RunAnew("dns"), runs[0], RunAnew("web"), runs[1], Simple.LOOK)
    assert (rounds.phase, rounds.on, set(rounds.turned)) == (Phase.SETTLING, frozenset({"web", "dns"}), set())
    rounds, done = step(RUNNING, Surveyed(frozenset({"web"}), Purpose.RUN_OTHERS))
    assert (rounds.phase, done) == (Phase.SETTLING, (Simple.LOOK,))
    rounds, done = step(turned(KNOWN, "web"), Surveyed(frozenset({"web"}), Purpose.BEGIN))
    assert (rounds.phase, set(rounds.turned), done) == (Phase.IDLE, set(), (again("EnabledModulesChanged"),))


def test_values_of_an_earlier_process_are_used_until_the_first_run() -> None:
    assert after(Rounds(), RunBegan("v0")).seen == "v0"
    assert after(KNOWN, RunBegan("v0")).seen == "v1"
    assert after(KNOWN, RunBegan("v0"), RunEnded("v2", {})).seen == "v2"


def test_a_running_turn_is_superseded_and_a_waiting_turn_cancelled() -> None:
    rounds = after(ENDING, TurnAtWork(SCOPE), RunBegan(""))
    assert rounds.turn == AT_WORK
    assert rounds.is_superseded(SCOPE)
    rounds = after(ENDING, TurnAtWork(SCOPE), TurnFailed(SCOPE))
    assert rounds.turn == TURN
    assert not rounds.is_superseded(SCOPE)
    assert after(rounds, RunBegan("")).turn is None


def test_the_number_of_rounds_begun_by_afterall_hooks_is_limited() -> None:
    rounds, done = replace(ENDING, turn=AT_WORK), list[Effect]()
    for _ in range(MAX_ROUNDS + 1):
        rounds, effects = step(replace(rounds, phase=Phase.ENDING, turn=AT_WORK), TurnEnded(SCOPE, "after"))
        done += effects
    asked = [effect for effect in done if effect == again("AfterAllChangedGlobalValues")]
    assert len(asked) == MAX_ROUNDS == sum(isinstance(effect, Log) for effect in done)
    assert isinstance(done[-1], ReportLoop)
    assert f"{MAX_ROUNDS + 1} rounds in a row" in done[-1].message
    assert rounds.again == 0


def test_a_turn_without_changes_resets_the_count_of_rounds() -> None:
    assert after(replace(ENDING, again=3), TurnEnded(SCOPE, "before")).again == 0
    assert after(replace(ENDING, again=3), TurnEnded(SCOPE, "after")).again == 4


def test_deleting_the_module_resets_rounds_but_not_enabled_packages() -> None:
    gone = after(replace(turned(ENDING, "web"), flags={"web": True}, again=2), ModuleGone())
    assert gone == turned(Rounds(on=KNOWN.on), "web")
    assert step(replace(KNOWN, flags={"web": True}), ModuleGone())[1] == (Tell(FlagSet("web", None)),)


# --- every order -----------------------------------------------------------------------------------------------------------

NAMES: Final = ("dns", "log", "web")
FLAGS: Final = st.dictionaries(st.sampled_from(NAMES), st.booleans(), max_size=2)


class RoundsStory(RuleBasedStateMachine):
    """The Module of the global hooks and the other packages. The story chooses the answers of the hooks and the scheduler."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = Rounds()
        self.on: set[str] = set()
        self.told: dict[str, bool] = {}
        """The flags that the scheduler has."""
        self.wanted: Mapping[str, bool] = {}
        """The flags in the record of the Module."""
        self.active, self.running = True, False
        self.asked = False
        """True if a round was requested from the scheduler and has not begun."""
        self.scopes: list[WorkScope] = []
        """The scopes of enqueued turns that have not ended. The queue does not run a turn whose scope is cancelled."""
        self.made, self.values = 0, 0
        self.turns, self.in_a_row = 0, 0

    def send(self, event: Event) -> None:
        before = self.rounds
        self.rounds, effects = step(before, event)
        assert step(before, event) == (self.rounds, effects)
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: Effect) -> None:
        match effect:
            case Tell(FlagSet(name, enabled)):
                assert self.told.get(name) is not enabled
                self.told.pop(name, None)
                if enabled is not None:
                    self.told[name] = enabled
            case Tell(Rescheduled("global", _)):
                self.asked = True
            case Survey(purpose):
                assert self.told == dict(self.wanted) or purpose is Purpose.BEGIN
                self.send(Surveyed(frozenset(self.on), purpose))
            case Simple.READ_FLAGS:
                self.send(FlagsRead(self.wanted))
            case Simple.LOOK:
                self.look(idle=False)
            case Simple.START_TURN:
                self.send(TurnStarted(WorkScope("afterAll hooks"), str(self.made)))
            case EnqueueTurn(scope, values):
                assert values == str(self.values)
                self.scopes.append(scope)
                self.turns += 1
            case Cancel(scope, cause):
                assert cause
                scope.cancel(cause)
            case ReportLoop():
                assert self.in_a_row == MAX_ROUNDS + 1
                self.in_a_row = 0
            case _:
                pass

    def live(self) -> list[WorkScope]:
        return [scope for scope in self.scopes if not scope.cancelled]

    # --- the story -------------------------------------------------------------------------------------------------------

    @initialize(names=st.sets(st.sampled_from(NAMES)))
    def it_is_expected(self, names: set[str]) -> None:
        self.send(ModuleExpected(tuple(names)))
        assert self.told == dict.fromkeys(names, True)

    @rule(name=st.sampled_from(NAMES))
    def a_package_turns(self, name: str) -> None:
        self.on ^= {name}
        self.send(PackageTurned(name, name in self.on))

    @rule()
    def its_run_begins(self) -> None:
        self.asked, self.running = False, True
        self.send(RunBegan(str(self.values)))
        assert self.rounds.phase is Phase.RUNNING

    @precondition(lambda self: self.running and not self.live())
    @rule(changes=st.booleans(), flags=FLAGS)
    def its_run_ends(self, changes: bool, flags: Mapping[str, bool]) -> None:
        """End the run of the Module ``global``. No turn of the previous round is under way at this time, because runs and turns
        use the same lane.
        """
        self.running, self.wanted = False, flags
        self.values += changes
        self.send(RunEnded(str(self.values), flags))
        assert self.rounds.phase is (Phase.SETTLING if self.active else Phase.IDLE)
        assert self.rounds.on == self.on
        assert not self.rounds.turned
        assert self.told == dict(flags)

    @rule(flags=FLAGS)
    def a_hook_runs(self, flags: Mapping[str, bool]) -> None:
        self.wanted = flags
        self.send(HookRan(self.active, flags))

    @rule(idle=st.booleans())
    def look(self, idle: bool) -> None:
        self.send(Looked(self.active, started=True, recorded=True, idle=idle))

    @rule()
    def it_is_stopped_or_comes_back(self) -> None:
        self.active = not self.active
        self.look(idle=False)
        if not self.active:
            assert not self.live()

    @precondition(lambda self: bool(self.scopes))
    @rule(data=st.data())
    def a_turn_is_at_work(self, data: st.DataObject) -> None:
        self.send(TurnAtWork(data.draw(st.sampled_from(self.scopes))))

    @precondition(lambda self: bool(self.scopes))
    @rule(data=st.data())
    def a_turn_fails(self, data: st.DataObject) -> None:
        scope = data.draw(st.sampled_from(self.scopes))
        self.send(TurnFailed(scope))
        if self.rounds.is_superseded(scope):  # a superseded turn does not run again, and its task succeeds
            self.end(scope)

    @precondition(lambda self: bool(self.live()))
    @rule(changes=st.booleans(), data=st.data())
    def a_turn_ends(self, changes: bool, data: st.DataObject) -> None:
        self.made += changes
        self.end(data.draw(st.sampled_from(self.live())), changes=changes)

    def end(self, scope: WorkScope, *, changes: bool = False) -> None:
        self.scopes.remove(scope)
        counts = not self.rounds.is_superseded(scope)
        if counts:
            changed = self.rounds.turn is not None and self.rounds.turn.made != str(self.made)
            self.in_a_row = self.in_a_row + 1 if changed else 0
        self.send(TurnEnded(scope, str(self.made)))

    @rule()
    def it_goes_and_is_expected_again(self) -> None:
        self.send(ModuleGone())
        assert (self.told, self.live()) == ({}, [])
        self.running, self.wanted, self.in_a_row = False, {}, 0
        self.values = 0
        self.send(ModuleExpected(()))

    @rule()
    def it_comes_to_rest(self) -> None:
        """Check that at most two rounds run if nothing else changes, and that the last of them runs its afterAll hooks."""
        self.active = True
        for _ in range(3):
            for scope in self.live():
                self.send(TurnAtWork(scope))
                self.end(scope)
            self.look(idle=True)
            if self.asked or self.running:
                before = self.turns
                self.its_run_begins()
                for scope in self.live():
                    self.end(scope)
                self.its_run_ends(changes=False, flags=self.wanted)
                self.look(idle=True)
                assert self.turns == before + 1
        assert (self.rounds.phase, self.rounds.turn, set(self.rounds.turned)) == (Phase.IDLE, None, set())
        assert not self.asked
        assert not self.running

    # --- invariants -----------------------------------------------------------------------------------------------

    @invariant()
    def one_turn_at_most(self) -> None:
        turn = self.rounds.turn
        assert self.live() == ([] if turn is None else [turn.scope])
        assert turn is None or self.rounds.phase in (Phase.RUNNING, Phase.ENDING)
        assert self.rounds.phase is not Phase.ENDING or turn is not None

    @invariant()
    def the_scheduler_has_the_switches_of_the_rounds(self) -> None:
        assert dict(self.rounds.flags) == self.told

    @invariant()
    def who_has_turned_is_not_as_at_the_beginning(self) -> None:
        assert set(self.rounds.turned) == self.on ^ self.rounds.on

    @invariant()
    def the_count_is_limited(self) -> None:
        assert self.rounds.again == self.in_a_row <= MAX_ROUNDS


RoundsStory.TestCase.settings = settings(
    max_examples=scaled(2_000, 150), stateful_step_count=scaled(60, 30), deadline=None
)
TestRoundsStory = RoundsStory.TestCase
