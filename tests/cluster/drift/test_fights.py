"""Fights: corrections are prompt at first and then become rarer. All drift is corrected, and the end of a fight is noticed."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wharfinger.cluster.drift.fights import (
    MAX_WRITERS,
    Correct,
    Drifted,
    Elapsed,
    Fight,
    FightEffect,
    FightEvent,
    FightRules,
    Fights,
    FightsChanged,
    Forgotten,
    Settled,
    step,
)
from wharfinger.cluster.objects.desired import Identity

WEB: Final = Identity("Deployment.apps", "prod", "web")
DB: Final = Identity("StatefulSet.apps", "prod", "db")
RULES: Final = FightRules(limit=3, window_s=100.0, first_delay_s=10.0, max_delay_s=35.0)


def run(*events: FightEvent, state: Fights | None = None) -> tuple[Fights, list[tuple[FightEffect, ...]]]:
    """Return the state after all events, and the effects of each event."""
    state, told = state or Fights(RULES), []
    for event in events:
        state, effects = step(state, event)
        told.append(effects)
    return state, told


def drifts(*times: float, by: str = "ed") -> list[Drifted]:
    return [Drifted(WEB, (by,), at) for at in times]


def test_the_first_corrections_are_made_at_once() -> None:
    state, told = run(*drifts(1, 2, 3))

    assert told == [(Correct(WEB),)] * 3
    assert state.fight(WEB) is None


def test_drift_beyond_the_limit_is_a_fight_with_growing_delays() -> None:
    state, told = run(*drifts(1, 2, 3, 4))
    assert told[3] == (FightsChanged(WEB),)
    assert state.fight(WEB) == Fight(WEB, ("ed",), since=4, corrections=3, delay_s=10)
    assert state.due() == 14

    both = (Correct(WEB), FightsChanged(WEB))
    state, told = run(Elapsed(13), Elapsed(14), *drifts(15), Elapsed(33), Elapsed(34), state=state)
    assert told == [(), both, (), (), both]
    fight = state.fight(WEB)
    assert fight is not None
    assert (fight.corrections, fight.delay_s) == (5, 35), "the delay is limited"


def test_a_drift_after_the_delay_is_corrected_at_once() -> None:
    state, _ = run(*drifts(1, 2, 3, 4), Elapsed(14))
    state, told = run(*drifts(40), state=state)

    assert told == [(Correct(WEB), FightsChanged(WEB))]


def test_a_fight_ends_after_a_window_without_drift() -> None:
    state, _ = run(*drifts(1, 2, 3, 4), Elapsed(14))
    assert state.due() == 114

    state, told = run(Elapsed(113), Elapsed(114), state=state)

    assert told == [(), (FightsChanged(WEB),)]
    assert (state.fight(WEB), state.due(), len(state.bouts)) == (None, None, 0)


def test_a_fight_ends_if_the_other_writer_gave_up_during_the_delay() -> None:
    state, _ = run(*drifts(1, 2, 3, 4), Settled(WEB, 6))
    state, told = run(Elapsed(14), Elapsed(106), state=state)

    assert told == [(), (FightsChanged(WEB),)]


def test_slow_drift_is_not_a_fight_and_is_forgotten() -> None:
    state, told = run(*drifts(*range(0, 1000, 40)))
    assert set(told) == {(Correct(WEB),)}

    state, told = run(Elapsed(2000), state=state)
    assert (told, len(state.bouts)) == ([()], 0)


def test_fights_of_different_objects_are_independent() -> None:
    state, told = run(*drifts(1, 2, 3, 4), Drifted(DB, (), 4))

    assert told[4] == (Correct(DB),)
    assert state.fight(DB) is None


def test_forgetting_an_object_reports_the_end_of_its_fight() -> None:
    state, told = run(*drifts(1), Forgotten(WEB), Forgotten(WEB), *drifts(1, 2, 3, 4), Forgotten(WEB))

    assert told[1:3] == [(), ()]
    assert told[-1] == (FightsChanged(WEB),)
    assert state.due() is None


def test_settling_an_object_without_a_fight_changes_nothing() -> None:
    before, _ = run(*drifts(1))
    after, told = run(Settled(WEB, 2), Settled(DB, 2), state=before)

    assert (after, told) == (before, [(), ()])


def test_the_writers_of_a_fight_are_named_up_to_a_limit() -> None:
    state, told = run(*drifts(1, 2, 3, 4), *drifts(5, by="ed"), *drifts(6, by="al"))
    assert told[4:] == [(), (FightsChanged(WEB),)]
    fight = state.fight(WEB)
    assert fight is not None
    assert fight.by == ("al", "ed")
    assert str(fight) == (
        "Deployment.apps prod/web: changed again by al, ed after 3 corrections; corrected at most every 10 s"
    )

    state, _ = run(Drifted(WEB, tuple("abcdefgh"), 7), state=state)
    fight = state.fight(WEB)
    assert fight is not None
    assert len(fight.by) == MAX_WRITERS


def test_a_fight_with_unknown_writers_is_formatted() -> None:
    fight = Fight(WEB, (), 0, 5, 15)

    assert str(fight) == "Deployment.apps prod/web: changed again after 5 corrections; corrected at most every 15 s"


class Bouts(RuleBasedStateMachine):
    """Random drift, quiet times and delays. Every drift is corrected in the end, but not more often than allowed."""

    @initialize()
    def begin(self) -> None:
        self.state = Fights(RULES)
        self.now = 0.0
        self.corrected: dict[Identity, list[float]] = {WEB: [], DB: []}
        self.told: dict[Identity, Fight | None] = {WEB: None, DB: None}
        self.drifted: set[Identity] = set()

    def take(self, event: FightEvent) -> None:
        self.state, effects = step(self.state, event)
        for effect in effects:
            if isinstance(effect, Correct):
                assert effect.identity in self.drifted, "only what drifted is corrected"
                self.drifted.discard(effect.identity)
                self.corrected[effect.identity].append(self.now)
            else:
                self.told[effect.identity] = self.state.fight(effect.identity)

    @rule(identity=st.sampled_from([WEB, DB]), by=st.sampled_from(["", "ed", "al"]))
    def drift(self, identity: Identity, by: str) -> None:
        self.drifted.add(identity)
        self.take(Drifted(identity, (by,) if by else (), self.now))

    @rule(identity=st.sampled_from([WEB, DB]))
    def settle(self, identity: Identity) -> None:
        self.drifted.discard(identity)
        self.take(Settled(identity, self.now))

    @rule(identity=st.sampled_from([WEB, DB]))
    def forget(self, identity: Identity) -> None:
        self.drifted.discard(identity)
        self.corrected[identity].clear()
        self.take(Forgotten(identity))

    @rule(pause=st.sampled_from([0.5, 3.0, 11.0, 40.0, 150.0]))
    def wait(self, pause: float) -> None:
        end = self.now + pause
        while (due := self.state.due()) is not None and due <= end:
            self.now = due
            self.take(Elapsed(due))
        self.now = end

    @precondition(lambda self: self.drifted)
    @rule()
    def wait_for_what_is_left(self) -> None:
        self.wait(RULES.max_delay_s)
        assert not self.drifted, "nothing waits longer than the longest delay"

    @invariant()
    def no_more_than_the_limit_and_one_for_each_delay(self) -> None:
        for times in self.corrected.values():
            recent = [at for at in times if at > self.now - RULES.first_delay_s]
            assert len(recent) <= RULES.limit + 1

    @invariant()
    def what_was_told_is_what_is(self) -> None:
        for identity, told in self.told.items():
            assert self.state.fight(identity) == told

    @invariant()
    def bouts_are_bounded(self) -> None:
        for bout in self.state.bouts.values():
            assert len(bout.corrections) <= RULES.limit
        due = self.state.due()
        assert due is None or due > self.now - RULES.window_s


TestBouts = Bouts.TestCase
