"""The tests of the reference (the program that spec/schedulers describes) for its scheduler alone (§A.10, ``schedule_test``),
repeated for this engine. The table of cases is in spec_cases.py.
"""

import pytest

from tests.runtime.fixpoint.driving import Drive, Hand
from tests.runtime.fixpoint.oracle import DEPENDENCY, NOT_READY, READY, Part
from tests.runtime.fixpoint.worlds import GHOST, datum, emission, node, world
from wharfinger.runtime.fixpoint.model import (
    Blocked,
    Converged,
    DependencyFailed,
    Exhausted,
    Id,
    Level,
    Outcome,
    Terminal,
)

A, B, C, D = node("a"), node("b"), node("c"), node("d")
X = datum("x")


def fails(*failed: Id) -> DependencyFailed:
    """Return the outcome of a body that fails because of these ids."""
    return DependencyFailed(failed, "dependency")


# --- nodes that failed because of others -----------------------------------------------------------------------------------


@pytest.mark.parametrize("same", [(B, C), (C, B), (B, C, B)], ids=["unchanged", "reordered", "duplicated"])
def test_an_equal_failed_set_does_not_change_the_lists_of_readers(same: tuple[Id, ...]) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, fails(B, C))
    before = hand.state.readers
    hand.bring(A)
    hand.run(A, fails(*same))
    assert hand.state.readers is before
    assert [hand.state.waiters(one) for one in (B, C)] == [(A,), (A,)]


@pytest.mark.parametrize(
    ("now", "told"), [((B,), {B}), ((D,), {D}), ((B, D), {B, D}), ((), set())], ids=["fewer", "replaced", "one", "none"]
)
def test_a_different_failed_set_changes_the_lists_of_readers(now: tuple[Id, ...], told: set[Id]) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, fails(B, C))
    hand.bring(A)
    hand.run(A, fails(*now))
    assert {one for one in (B, C, D) if hand.state.waiters(one)} == told


@pytest.mark.parametrize("fan_in", [2, 32])
def test_a_failed_replacement_preserves_other_consumers(fan_in: int) -> None:
    hand = Hand()
    consumers = [node(f"n{at:02}") for at in range(fan_in)]
    hand.seed(*consumers)
    for one in consumers:
        hand.run(one, fails(X))
    hand.bring(consumers[0])
    hand.run(consumers[0], fails(B))
    assert hand.state.waiters(X) == tuple(consumers[1:])
    assert hand.state.waiters(B) == (consumers[0],)
    hand.bring(X)
    assert hand.pull_all() == consumers[1:]


def test_failed_sets_may_grow_and_shrink() -> None:
    hand = Hand()
    blockers = [node(f"b{at:02}") for at in range(40)]
    hand.seed(A)
    hand.run(A, fails(*blockers[:2]))
    for width in (40, 9, 10, 11, 1, 40, 0):
        hand.bring(A, f"for {width}")
        hand.run(A, fails(*blockers[:width]))
        assert [bool(hand.state.waiters(one)) for one in blockers] == [at < width for at in range(40)]


# --- the budget ---------------------------------------------------------------------------------------------------------------


def given_up(hand: Hand) -> list[Exhausted]:
    """Return the reports of exhausted nodes."""
    return [effect for effect in hand.effects if isinstance(effect, Exhausted)]


def content(hand: Hand, outcome: Outcome, times: int, *, running: bool) -> int:
    """Change the content of A ``times`` times, during its runs or after them, and return the number of A's runs."""
    runs = 0
    hand.seed(A)
    for at in range(times + 1):
        if (order := hand.pull()) is None:
            break
        runs += 1
        if running and at < times:
            hand.bring(A, f"content {at}")
        hand.end(order.id, outcome)
        if not running and at < times:
            hand.bring(A, f"content {at}")
    return runs


@pytest.mark.parametrize("running", [True, False], ids=["running arrival", "terminal arrival"])
def test_a_node_is_exhausted_after_33_dispatches(running: bool) -> None:
    hand = Hand()
    assert content(hand, Terminal("ready"), 40, running=running) == 33
    (exhausted,) = given_up(hand)
    assert exhausted.id == A
    assert str(A) in exhausted.message
    assert "32 times" in exhausted.message
    assert hand.state.charges(A) == 32
    assert hand.state.result(A) == f"exhausted: {exhausted.message}"


def test_the_redispatch_limit_applies_to_endless_sweeps() -> None:
    hand = Hand()
    hand.seed(A)
    runs = 0
    while (order := hand.pull()) is not None:
        runs += 1
        hand.end(order.id, Terminal("ready", (), (emission(X, f"content {runs}"),)), sweep=True)
    assert runs == 33
    assert [type(effect) for effect in hand.effects] == [Exhausted, Converged]


@pytest.mark.parametrize("outcome", [Terminal("ready"), Blocked((X,))], ids=["terminal", "blocked"])
def test_the_redispatch_budget_allows_convergence(outcome: Outcome) -> None:
    hand = Hand()
    assert content(hand, outcome, 32, running=False) == 33
    assert hand.state.charges(A) == 32
    assert hand.effects == []
    if isinstance(outcome, Blocked):
        hand.bring(X)
        hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []
    assert hand.state.result(A) == "ready"
    assert hand.effects == [Converged()]


@pytest.mark.parametrize("times", [32, 33])
@pytest.mark.parametrize("kind", ["terminal", "blocked", "alternating"])
def test_changes_of_content_are_charged_whatever_the_outcomes(kind: str, times: int) -> None:
    """The outcomes of the runs do not change the number of charges."""
    hand = Hand()
    hand.seed(A)
    for at in range(times + 1):
        order = hand.pull()
        if order is None:
            break
        blocks = kind == "blocked" or (kind == "alternating" and at % 2)
        hand.end(A, Blocked((X,)) if blocks else Terminal("ready"))
        if at < times:
            hand.bring(A, f"content {at}")
    assert len([event for event in hand.told if type(event).__name__ == "Finished"]) == 33
    assert [effect.id for effect in given_up(hand)] == ([A] if times > 32 else [])
    assert hand.state.charges(A) == 32


# --- shapes of graphs ---------------------------------------------------------------------------------------------------------


def test_a_linear_chain_becomes_ready() -> None:
    drive = Drive(world(Part(A, needs=(B,)), Part(B, needs=(C,)), Part(C))).live()
    assert set(drive.verdicts().values()) == {READY}
    assert drive.level() is Level.NONE


def test_the_join_of_a_diamond_runs_after_both_arms() -> None:
    drive = Drive(world(Part(A, needs=(B, C)), Part(B, needs=(D,)), Part(C, needs=(D,)), Part(D)), limit=4).live()
    assert set(drive.verdicts().values()) == {READY}
    assert drive.dispatched[-1].id == A
    assert drive.level() is Level.NONE


def test_a_dangling_chain_fails_from_its_leaf_on() -> None:
    drive = Drive(world(Part(A, needs=(B,)), Part(B, needs=(C,)), Part(C, needs=(GHOST,)))).live()
    assert set(drive.verdicts().values()) == {DEPENDENCY}
    assert drive.level() is Level.CASCADE
    assert [order.id for order in drive.dispatched][-3:] == [C, B, A]
    assert drive.results()[C] == "dependency: ghost absent"
    assert drive.results()[A] == "dependency: b failed"


def test_a_node_parked_on_an_absent_id_is_woken_by_its_arrival() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Blocked((X,)))
    assert hand.state.waiters(X) == (A,)
    hand.bring(X)
    assert hand.run(A, Terminal("ready")).level is Level.NONE


def test_a_wakeup_between_look_and_parking_is_not_lost() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Terminal("ready"))
    hand.end(A, Blocked((B,)))
    assert hand.run(A, Terminal("ready")).level is Level.NONE


@pytest.mark.parametrize("names", ["abc", "cba", "bca"])
def test_the_verdict_of_transitive_blocks_does_not_depend_on_the_order_of_ids(names: str) -> None:
    first, second, third = (node(name) for name in names)
    drive = Drive(world(Part(first, needs=(second,)), Part(second, needs=(third,)), Part(third, needs=(GHOST,)))).live()
    assert drive.results() == {
        first: f"dependency: {second.name} failed",
        second: f"dependency: {third.name} failed",
        third: "dependency: ghost absent",
    }


def test_a_cycle_is_ended_by_force_and_both_members_fail() -> None:
    drive = Drive(world(Part(A, needs=(B,)), Part(B, needs=(A,)))).live()
    assert drive.level() is Level.FORCE
    assert drive.verdicts() == {A: NOT_READY, B: DEPENDENCY}
    (forced,) = [order for order in drive.dispatched if order.level is Level.FORCE]
    assert (forced.id, forced.loop) == (A, (A, B))


# --- sweeps -------------------------------------------------------------------------------------------------------------------


def test_a_sweep_expands_again_after_an_arrival() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("nothing"), sweep=True)
    hand.bring(X)
    hand.run(A, Terminal("x"), sweep=True)
    assert hand.pull_all() == []
    assert hand.effects == [Converged()]
    assert hand.state.charges(A) == 0


def test_no_sweep_without_an_arrival() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("nothing"), sweep=True)
    assert hand.pull_all() == []
    assert hand.effects == [Converged()]


@pytest.mark.parametrize("dependents_first", [True, False])
def test_the_number_of_runs_of_a_dangling_chain_is_bounded(dependents_first: bool) -> None:
    names = [node(name) for name in ("abcde" if dependents_first else "edcba")]
    needed = [*names[1:], GHOST]
    drive = Drive(world(*(Part(one, needs=(need,)) for one, need in zip(names, needed, strict=True)))).live()
    assert max(drive.runs_by_id().values()) <= 3
