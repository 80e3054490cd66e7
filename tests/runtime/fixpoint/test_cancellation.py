"""A cancellation after any dispatch, and a crash of any run: in the machine and in `converge` (spec/schedulers §A.6, §A.12)."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.runtime.fixpoint.driving import ROOMY, Drive
from tests.runtime.fixpoint.oracle import CRASHED, DEPENDENCY, READY, UNRESOLVED, Part, World, expected
from tests.runtime.fixpoint.test_random_graphs import merged
from tests.runtime.fixpoint.worlds import GHOST, Bodies, Store, node, tapes, verdict, world, worlds
from tests.scale import scaled
from wharfinger.runtime.fixpoint.converge import Report, converge
from wharfinger.runtime.fixpoint.model import Cancelled, Crashed, Dispatch, Id, Level, Outcome, Pulled
from wharfinger.runtime.fixpoint.state import Done, Parked, Rules

PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
many = settings(max_examples=scaled(2000, 50), phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
# Each example is run once for each of its dispatches.
at_every_order = settings(many, max_examples=scaled(300, 50))
limits = st.integers(1, 4)
A, B, C = node("a"), node("b"), node("c")


def some_of(orders: int, sample: int) -> range:
    """Return the numbers of all dispatches under `make test-full`, and otherwise about ``sample`` of them, evenly spread."""
    return range(0, orders, max(1, orders // scaled(orders + 1, sample)))


def sound(some: World) -> World:
    """Return the same world without crashes. A crashed part reads nothing, so its failure would be permanent."""
    return replace(some, parts={one: replace(part, crashes=False) for one, part in some.parts.items()})


# --- the machine --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@at_every_order
@given(some=worlds(tolerant=False), tape=tapes, limit=limits, own=st.booleans())
def test_after_a_cancellation_no_false_verdict_and_no_dispatch_follows(
    some: World, tape: bytes, limit: int, own: bool
) -> None:
    whole = Drive(some, tape, limit, own_store=own).live()
    truth = expected(some).verdicts
    for at in some_of(len(whole.dispatched), 12):
        cut = Drive(some, tape, limit, own_store=own, cancel_at=at).live()
        assert cut.dispatched == whole.dispatched[: at + 1]
        assert not cut.running
        here = next(index for index, (event, _) in enumerate(cut.log) if isinstance(event, Cancelled))
        assert all(not effects for _, effects in cut.log[here:])
        for one, said in cut.verdicts().items():
            assert said in {"none", truth[one]}, f"{one} has the result {said}"
            if said == "none":
                assert not isinstance(cut.state.phase(one), Done)


@pytest.mark.slow
@at_every_order
@given(some=worlds(), tape=tapes, limit=limits)
def test_after_a_cancellation_parked_nodes_stay_parked(some: World, tape: bytes, limit: int) -> None:
    whole = Drive(some, tape, limit).live()
    for at in some_of(len(whole.dispatched), 6):
        cut = Drive(some, tape, limit)
        cut.live_until(at)
        parked = [one for one in some.parts if isinstance(cut.state.phase(one), Parked)]
        results = {one: cut.state.result(one) for one in parked}
        cut.tell(Cancelled())
        while cut.running:
            one = min(cut.running)
            cut.look(one)
            cut.report(one)
            assert cut.tell(Pulled()) == ()
        assert all(isinstance(cut.state.phase(one), Parked) for one in parked)
        assert {one: cut.state.result(one) for one in parked} == results


@pytest.mark.slow
@at_every_order
@given(some=worlds().map(sound), tape=tapes, limit=limits, own=st.booleans())
def test_a_crash_of_any_run_leaves_the_other_verdicts_correct(some: World, tape: bytes, limit: int, own: bool) -> None:
    orders = len(Drive(some, tape, limit, own_store=own).live().dispatched)
    for at in some_of(orders, 8):
        drive = Drive(some, tape, limit, own_store=own, crash_at=at).live()
        struck = frozenset(one for one, run in drive.crashed.items() if drive.watcher.runs[one] == run)
        there = frozenset(drive.watcher.digests)
        truth = expected(replace(some, brought=some.brought | there, struck=struck))
        assert merged(drive.verdicts()) == merged(truth.verdicts)


# --- converge -----------------------------------------------------------------------------------------------------------------


class StruckError(Exception):
    """The error that a body raises if a test wants it to crash."""


@dataclass(slots=True)
class Living:
    """The bodies of a world, for `converge`. Each body sleeps twice. Between the two pauses, it looks at the other nodes and
    writes its own result. It reports its outcome after the second pause.
    """

    world: World
    tape: bytes = b""
    crash_at: int | None = None
    predicate_crashes: bool = False
    store: Store = field(default_factory=Store)
    inside: Counter[Id] = field(default_factory=Counter)
    most: int = 0
    orders: list[Dispatch] = field(default_factory=list)
    left: list[Id] = field(default_factory=list)
    bodies: Bodies = field(init=False)

    def __post_init__(self) -> None:
        self.bodies = Bodies(dict(self.world.parts))
        self.store.there |= {*self.world.seeds, *self.world.brought}

    def time(self) -> float:
        """Return the duration of the next step, which the tape (`tests/runtime/fixpoint/driving.py`) chooses."""
        return self.tape[len(self.orders) % len(self.tape)] / 16 if self.tape else 1.0

    async def run(self, id: Id, level: Level, loop: tuple[Id, ...]) -> Outcome:  # noqa: A002
        """Run one body."""
        at = len(self.orders)
        self.orders.append(Dispatch(id, at, level, loop))
        self.inside[id] += 1
        self.most = max(self.most, self.inside.total())
        assert self.inside[id] == 1, f"{id} runs twice at once"
        try:
            await trio.sleep(self.time())
            if at == self.crash_at:
                self.store.results[id] = CRASHED
                raise StruckError(str(id))
            outcome = self.bodies.answer(self.store, id, level)
            self.store.write(id, outcome)
            if isinstance(outcome, Crashed):
                raise StruckError(outcome.message)
            await trio.sleep(self.time())
        finally:
            self.inside[id] -= 1
            self.left.append(id)
        return outcome

    def reruns_at_drain(self, id: Id) -> bool:  # noqa: A002
        """Return whether the part requests sweeps, that is, further runs at fixpoints."""
        if self.predicate_crashes:
            raise StruckError(f"predicate of {id}")
        return self.bodies.sweeps(id)


def within(bodies: Living, limit: int, *, rules: Rules = ROOMY) -> Report:
    """Run `converge` with trio's autojump clock."""

    async def main() -> Report:
        with trio.fail_after(1_000_000):
            return await converge(bodies, bodies.world.seeds, limit=limit, rules=rules)

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def still(some: World) -> World:
    """Return the world in a form for `converge`, which gets no events from outside in these tests. No node waits for the world
    outside, and an additional node emits the data that would come from there.
    """
    parts = {one: replace(part, outside=0) for one, part in some.parts.items()}
    bringer = Part(node("bringer"), emits=tuple(sorted(some.brought)))
    return World({**parts, bringer.id: bringer}, (*some.seeds, bringer.id))


@pytest.mark.slow
@many
@given(some=worlds().map(still), tape=tapes, limit=limits)
def test_converge_agrees_with_the_oracle(some: World, tape: bytes, limit: int) -> None:
    bodies = Living(some, tape)
    report = within(bodies, limit)
    found = {one: verdict(result) for one, result in report.results.items()}
    assert merged(found) == merged(expected(some).verdicts)
    assert bodies.most <= limit
    assert report.runs == Counter(order.id for order in bodies.orders)
    assert report.level == max(order.level for order in bodies.orders)


@pytest.mark.slow
@at_every_order
@given(some=worlds().map(sound).map(still), tape=tapes, limit=limits)
def test_converge_survives_an_error_of_any_run(some: World, tape: bytes, limit: int) -> None:
    orders = within(whole := Living(some, tape), limit).runs.values()
    assert sum(orders) == len(whole.orders)
    for at in some_of(len(whole.orders), 4):
        bodies = Living(some, tape, crash_at=at)
        report = within(bodies, limit)
        last = {order.id: index for index, order in enumerate(bodies.orders)}
        # Bodies that end at the same time may end in any order, so this run may have had fewer dispatches.
        struck = frozenset(one for one, index in last.items() if index == at)
        there = frozenset(bodies.store.there)
        truth = expected(replace(some, brought=there, struck=struck))
        assert merged({one: verdict(said) for one, said in report.results.items()}) == merged(truth.verdicts)


@pytest.mark.slow
@many
@given(some=worlds().map(still), tape=tapes, limit=limits, at=st.floats(0, 60))
def test_a_cancelled_converge_leaves_no_body_running(some: World, tape: bytes, limit: int, at: float) -> None:
    bodies = Living(some, tape)

    async def main() -> bool:
        with trio.move_on_after(at) as scope:
            await converge(bodies, some.seeds, limit=limit, rules=ROOMY)
        begun = len(bodies.orders)
        assert bodies.inside.total() == 0
        assert len(bodies.left) == begun
        await trio.sleep(1000)
        assert len(bodies.orders) == begun
        return scope.cancelled_caught

    cancelled = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    truth = expected(some).verdicts
    said = {one: verdict(result) for one, result in bodies.store.results.items()}
    if not cancelled:
        assert merged(said) == merged({one: truth[one] for one in said})
    if not any(part.tolerates for part in some.parts.values()):
        assert all(merged({one: word})[one] == merged({one: truth[one]})[one] for one, word in said.items())


def test_an_error_in_the_sweep_predicate_is_a_crash_of_the_body() -> None:
    report = within(Living(world(Part(A), Part(B, needs=(A,))), predicate_crashes=True), 2)
    assert verdict(report.results[A]) == CRASHED
    assert verdict(report.results[B]) == CRASHED


def test_the_result_of_a_crash_contains_its_message() -> None:
    report = within(Living(world(Part(A, crashes=True), Part(B, needs=(A,)), Part(C))), 2)
    assert "as declared" in report.results[A]
    assert verdict(report.results[B]) == DEPENDENCY
    assert verdict(report.results[C]) == READY


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_as_many_bodies_run_at_once_as_the_limit_allows(limit: int) -> None:
    bodies = Living(world(*(Part(node(f"n{at}")) for at in range(20))))
    within(bodies, limit)
    assert bodies.most == limit


def test_dependents_of_an_unresolved_node_end() -> None:
    """C needs B, and B needs A, which ends as unresolved. B and C end, too, although their bodies do not see this result of A:
    under `converge`, bodies see only results that other bodies have stored.
    """
    some = world(Part(A, needs=(GHOST,), stubborn=True), Part(B, needs=(A,)), Part(C, needs=(B,)), Part(node("d")))
    report = within(Living(some), 2)
    assert verdict(report.results[A]) == UNRESOLVED
    assert A in report.unresolved
    assert verdict(report.results[B]) in {UNRESOLVED, DEPENDENCY, "not ready"}
    assert verdict(report.results[C]) in {UNRESOLVED, DEPENDENCY, "not ready"}
    assert verdict(report.results[node("d")]) == READY


def test_converge_does_not_hang_on_a_body_that_waits_for_the_world_outside() -> None:
    """`converge` gets no events from outside in this test. So it has to end a body that waits for the world outside, instead of
    waiting for ever.
    """
    bodies = Living(world(Part(A, outside=1), Part(B, needs=(A,)), Part(C)))
    report = within(bodies, 2)
    assert verdict(report.results[A]) != READY
    assert verdict(report.results[C]) == READY
