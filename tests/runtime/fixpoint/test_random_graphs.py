"""Random worlds (declared nodes) under random orders of all events. The results of the engine are compared with those of the
oracle (spec/schedulers §A.7, §A.12).

A *drive* (`driving.py`) runs the engine in one world, from the seeds (the nodes that are given at the beginning) to the end. A
*tape* of random bytes chooses the order of the events. A `Watcher` (`watching.py`) checks every step. The verdicts at the end
of a drive are compared with those of the oracle, or with those of a second drive. The second drive has another order of seeds,
another limit or another tape, or it begins with the final world, or it runs only a part of the world.
"""

from dataclasses import replace
from itertools import cycle

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.runtime.fixpoint.driving import ROOMY, Drive
from tests.runtime.fixpoint.oracle import DEPENDENCY, NOT_READY, READY, Part, World, decided_unjudged, expected
from tests.runtime.fixpoint.worlds import (
    GHOST,
    Story,
    datum,
    emission,
    growing_stories,
    node,
    tapes,
    turning_stories,
    world,
    worlds,
)
from tests.scale import scaled
from wharfinger.runtime.fixpoint.machine import start, step
from wharfinger.runtime.fixpoint.model import (
    Arrived,
    Asked,
    Blocked,
    Crashed,
    DependencyFailed,
    Dispatch,
    Emission,
    Exhausted,
    Finished,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Pulled,
    Seeded,
    Terminal,
)
from wharfinger.runtime.fixpoint.state import Rules

many = settings(
    max_examples=scaled(3000, 60),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)
limits = st.integers(1, 4)
flags = st.booleans()


def merged(verdicts: dict[Id, str]) -> dict[Id, str]:
    """Return the verdicts with DEPENDENCY in place of each NOT_READY. The tests do not distinguish the two, because the order
    of events may decide which member of a cycle is forced.
    """
    return {one: DEPENDENCY if verdict == NOT_READY else verdict for one, verdict in verdicts.items()}


def tolerant(some: World) -> bool:
    return any(part.tolerates for part in some.parts.values())


def bound(drive: Drive) -> int:
    """Return the highest number of runs that the proof of termination allows in this drive.

    A finished body runs again only if it is charged, requested or swept. A blocked body runs again only if an id that it lacks
    ended or arrived, or at a fixpoint. There are at most three fixpoints between two ends or arrivals: one at each level.
    """
    outcomes = [event.outcome for event, _ in drive.log if isinstance(event, Finished)]
    ends = sum(not isinstance(outcome, Blocked | Outside) for outcome in outcomes)
    made = sum(len(outcome.emissions) for outcome in outcomes if isinstance(outcome, Terminal))
    judged = sum(not isinstance(effect, Dispatch) for _, effects in drive.log for effect in effects)
    news = ends + made + judged + sum(not isinstance(event, Finished | Pulled) for event, _ in drive.log)
    nodes = len(drive.runs_by_id())
    return ends + nodes * (1 + news) + 3 * nodes * (1 + news)


# --- the result is the oracle's ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@many
@given(some=worlds(), tape=tapes, limit=limits, own=flags, thorough=flags, noops=flags, noise=st.integers(0, 6))
def test_every_verdict_agrees_with_the_oracle(
    some: World, tape: bytes, limit: int, own: bool, thorough: bool, noops: bool, noise: int
) -> None:
    drive = Drive(some, tape, limit, own_store=own, thorough=thorough, noops=noops, noise=noise).live()
    assert merged(drive.verdicts()) == merged(expected(some).verdicts)
    assert len(drive.dispatched) <= bound(drive)


@pytest.mark.slow
@many
@given(some=worlds(tolerant=False), tape=tapes, limit=limits, own=flags)
def test_verdicts_and_level_agree_exactly_with_the_oracle(some: World, tape: bytes, limit: int, own: bool) -> None:
    drive = Drive(some, tape, limit, own_store=own).live()
    found = expected(some)
    assert drive.verdicts() == found.verdicts
    assert drive.level() is found.level


@pytest.mark.slow
@many
@given(some=worlds(), tape=tapes, limit=limits, noops=flags)
def test_no_node_is_judged_unless_it_is_necessary(some: World, tape: bytes, limit: int, noops: bool) -> None:
    drive = Drive(some, tape, limit, noops=noops).live()
    if decided_unjudged(some):
        assert drive.level() is Level.NONE
    else:
        assert drive.level() > Level.NONE


@pytest.mark.slow
@many
@given(
    story=growing_stories(), tape=tapes, limit=limits, own=flags, thorough=flags, noops=flags, noise=st.integers(0, 4)
)
def test_the_time_of_arrivals_does_not_change_the_verdicts(
    story: Story, tape: bytes, limit: int, own: bool, thorough: bool, noops: bool, noise: int
) -> None:
    drive = Drive(
        story.first, tape, limit, changes=story.changes, own_store=own, thorough=thorough, noops=noops, noise=noise
    ).live()
    assert merged(drive.verdicts()) == merged(expected(story.last).verdicts)
    assert len(drive.dispatched) <= bound(drive)


@pytest.mark.slow
@many
@given(story=turning_stories(), tape=tapes, limit=limits, own=flags, thorough=flags, noops=flags)
def test_incremental_changes_give_the_same_verdicts_as_a_new_engine(
    story: Story, tape: bytes, limit: int, own: bool, thorough: bool, noops: bool
) -> None:
    drive = Drive(story.first, tape, limit, changes=story.changes, own_store=own, thorough=thorough, noops=noops).live()
    assert drive.verdicts() == expected(story.last).verdicts
    assert drive.verdicts() == Drive(story.last).live().verdicts()


# --- independence of order --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@many
@given(some=worlds(tolerant=False), one=tapes, other=tapes, seeds=st.randoms(use_true_random=False), limit=limits)
def test_results_do_not_depend_on_seed_order_finishing_order_or_limit(
    some: World, one: bytes, other: bytes, seeds: object, limit: int
) -> None:
    first = Drive(some, one, 1).live()
    shuffled = [
        seed for _, seed in sorted(zip(cycle(other or b"\0"), some.seeds, strict=False), key=lambda pair: pair[0])
    ]
    second = Drive(some, other, limit).live(shuffled)
    assert second.results() == first.results()


@pytest.mark.slow
@many
@given(story=growing_stories(), tape=tapes, limit=limits, noise=st.integers(0, 4))
def test_equal_events_have_equal_effects_and_states_are_immutable(
    story: Story, tape: bytes, limit: int, noise: int
) -> None:
    drive = Drive(story.first, tape, limit, changes=story.changes, noise=noise).live()
    state = start(ROOMY)
    states = [state]
    for event, effects in drive.log:
        state, again = step(state, event)
        states.append(state)
        assert again == effects
    for before, (event, effects) in zip(states, drive.log, strict=False):
        assert step(before, event)[1] == effects
    assert {one: state.result(one) for one in drive.results()} == drive.results()


@pytest.mark.slow
@many
@given(some=worlds(tolerant=False), other=worlds(plain=True, tolerant=False), tape=tapes, limit=limits)
def test_independent_parts_of_a_world_do_not_affect_each_other(
    some: World, other: World, tape: bytes, limit: int
) -> None:
    def away(one: Id) -> Id:
        return Id(one.kind, "elsewhere", one.name)

    moved = [
        replace(
            part,
            id=away(part.id),
            needs=tuple(map(away, part.needs)),
            never_true=frozenset(map(away, part.never_true)),
        )
        for part in other.parts.values()
    ]
    both = World(
        {**some.parts, **{part.id: part for part in moved}},
        (*some.seeds, *map(away, other.seeds)),
        some.brought | {away(one) for one in other.brought},
    )
    together = Drive(both, tape, limit).live()
    alone = Drive(some).live()
    levels = [order.level for order in together.dispatched if order.id in some.parts]
    assert max(levels) is alone.level()
    assert {one: result for one, result in together.results().items() if one in some.parts} == alone.results()


# --- termination for any outcomes of bodies ---------------------------------------------------------------------------------


class Chaos:
    """Bodies whose outcomes are chosen by a tape of random bytes. An outcome may name any of five ids."""

    def __init__(self, tape: bytes) -> None:
        self.again = cycle(tape or b"\0")
        self.ids = [node("a"), node("b"), node("c"), datum("x"), GHOST]

    def pick(self, among: int) -> int:
        return next(self.again) % among

    def some(self) -> tuple[Id, ...]:
        return tuple(self.ids[self.pick(len(self.ids))] for _ in range(1 + self.pick(2)))

    def emissions(self) -> tuple[Emission, ...]:
        made = self.some()[: self.pick(3)]
        return tuple(emission(one, str(self.pick(256))) for one in dict.fromkeys(made))

    def outcome(self, *, outside: bool) -> Outcome:
        match self.pick(8 if outside else 7):
            case 0:
                return Noop()
            case 1:
                return Crashed(str(self.pick(256)))
            case 2:
                return DependencyFailed(self.some(), str(self.pick(256)))
            case 3 | 4:
                return Blocked(self.some())
            case 5 | 6:
                return Terminal(str(self.pick(256)), self.some(), self.emissions())
            case _:
                return Outside(self.some())


@many
@given(tape=st.binary(max_size=60), budget=st.integers(0, 4), limit=limits, depth=st.integers(1, 4))
@example(tape=b"2\x012\x06\x00\xb5\x00\x03kH", budget=2, limit=3, depth=1)
def test_the_number_of_runs_is_bounded_for_any_outcomes(tape: bytes, budget: int, limit: int, depth: int) -> None:
    drive = Drive(world(Part(node("a")), Part(node("b"))), tape, limit, rules=Rules(budget=budget, depth=depth))
    chaos = Chaos(tape)
    drive.tell(Seeded(drive.world.seeds))
    while True:
        if len(drive.running) < limit and not drive.idle and not (drive.running and chaos.pick(3) == 0):
            drive.idle = not drive.tell(Pulled())
        elif drive.running:
            one = sorted(drive.running)[chaos.pick(len(drive.running))]
            # No body waits for the world outside, because such a wait needs an answer, and there may be endlessly many.
            drive.running[one].outcome = chaos.outcome(outside=False)
            drive.report(one, sweep=chaos.pick(2) == 0)
        else:
            break
        assert len(drive.dispatched) <= bound(drive)
    assert drive.converged == 1
    for one, runs in drive.runs_by_id().items():
        # A body ends at most 1 + budget times, except in free sweeps. There are at most as many sweeps as arrivals.
        assert drive.state.charges(one) <= budget
        done = sum(
            event.id == one and not isinstance(event.outcome, Blocked)
            for event, _ in drive.log
            if isinstance(event, Finished)
        )
        assert done <= 1 + budget + drive.watcher.came + 1, runs


@pytest.mark.parametrize("budget", [0, 3, 32])
def test_nodes_that_emit_each_other_endlessly_are_exhausted_and_others_are_not(budget: int) -> None:
    some = world(Part(node("a")), Part(node("b")), Part(node("c"), needs=(node("a"),)), Part(node("d")))
    drive = Drive(some, rules=Rules(budget=budget))
    drive.tell(Seeded(some.seeds))
    versions = iter(range(10_000))
    other = {node("a"): node("b"), node("b"): node("a")}
    while not drive.idle or drive.running:
        if not drive.idle and len(drive.running) < 2:
            drive.idle = not drive.tell(Pulled())
            continue
        one = min(drive.running)
        if one in other:
            made = (emission(other[one], f"version {next(versions)}"),)
            drive.running[one].outcome = Terminal(READY, emissions=made)
            drive.report(one)
        else:
            drive.look(one)
            drive.report(one)
    assert drive.converged == 1
    stopped = [effect for _, effects in drive.log for effect in effects if isinstance(effect, Exhausted)]
    assert stopped
    for effect in stopped:
        assert {node("a"), node("b")} == set(effect.loop)
        assert all(str(one) in effect.message for one in effect.loop)
    assert drive.runs(stopped[0].id) == budget + 1
    assert drive.state.result(node("d")) == READY
    assert drive.state.result(node("c")) is not None


def test_requested_runs_are_free() -> None:
    drive = Drive(world(Part(node("a"))), rules=Rules(budget=0)).live()
    for _ in range(40):
        drive.tell(Asked(node("a")))
        while drive.move([]):
            pass
    assert drive.runs(node("a")) == 41
    assert drive.state.charges(node("a")) == 0
    assert drive.converged == 41


def test_convergence_is_reported_once_after_each_change() -> None:
    drive = Drive(world(Part(node("a"), needs=(datum("x"),)))).live()
    assert drive.verdicts() == {node("a"): DEPENDENCY}
    assert drive.tell(Pulled()) == ()
    drive.tell(Arrived(emission(datum("x"))))
    while drive.move([]):
        pass
    assert drive.converged == 2
    assert drive.tell(Pulled()) == ()
