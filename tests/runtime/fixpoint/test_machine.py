"""The fixpoint engine, event by event."""

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.machine import start, step
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Arrived,
    Asked,
    Blocked,
    Cancelled,
    Converged,
    Crashed,
    DependencyFailed,
    Dispatch,
    Effect,
    Emission,
    Event,
    Exhausted,
    Finished,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Pulled,
    Removed,
    Seeded,
    Terminal,
)
from wharfinger.runtime.fixpoint.state import Done, Parked, Rules, Runnable, Running, Waiting

A, B, C = node("a"), node("b"), node("c")
X, Y = datum("x"), datum("y")


# --- seeds and arrivals -------------------------------------------------------------------------------------------------------


def test_each_seed_runs_once_in_the_order_of_ids() -> None:
    hand = Hand()
    hand.seed(C, A, A)
    hand.seed(B, A)
    assert hand.pull_all() == [A, C, B]
    hand.seed(A)
    assert hand.pull_all() == []


def test_content_that_arrives_before_the_first_run_is_free() -> None:
    hand = Hand()
    hand.seed(A)
    hand.bring(A, "1")
    hand.bring(A, "2")
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []
    assert hand.state.charges(A) == 0


def test_the_first_content_of_a_seed_is_a_change_and_equal_content_is_not() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"))
    hand.bring(A, "1")
    hand.run(A, Terminal("ready"))
    hand.bring(A, "1")
    assert hand.pull_all() == []
    assert hand.state.charges(A) == 1


def test_arriving_nodes_run_and_arriving_data_do_not() -> None:
    hand = Hand()
    hand.bring(X)
    hand.bring(A)
    assert hand.pull_all() == [A]


def test_data_that_become_a_node_run_even_with_the_same_content() -> None:
    """An id that has arrived as data becomes a node when it arrives as runnable, and then its body runs, even if the content is
    the same. It stays a node until it is removed.
    """
    state = start()
    for digest, runnable, runs in (("1", False, False), ("1", True, True), ("1", False, False), ("2", False, True)):
        state, _ = step(state, Arrived(Emission(A, digest, runnable)))
        state, effects = step(state, Pulled())
        orders = [effect for effect in effects if isinstance(effect, Dispatch)]
        assert bool(orders) == runs
        for order in orders:
            state, _ = step(state, Finished(A, order.run, Terminal("ready")))


# --- outcomes of bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (Terminal("ready"), "ready"),
        (DependencyFailed((X,), "for x"), "for x"),
        (Crashed("boom"), "crashed: boom"),
        (Noop(), ""),
        (Blocked((X,)), None),
        (Outside(), None),
    ],
)
def test_each_outcome_has_its_result(outcome: Outcome, result: str | None) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, outcome)
    assert hand.state.result(A) == result


@pytest.mark.parametrize("between", [Terminal("one", (X,)), Blocked((Y,)), Crashed("boom"), Outside((Y,))])
def test_a_noop_keeps_the_last_result_of_the_body(between: Outcome) -> None:
    """After a Noop, the last result of the body and its reads stay valid, even if the body blocked, crashed or waited in
    between.
    """
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("one", (X,)))
    hand.tell(Asked(A))
    hand.run(A, between)
    hand.tell(Asked(A))
    hand.run(A, Noop())
    assert hand.state.result(A) == "one"
    assert hand.state.waiters(X) == (A,)
    assert hand.state.waiters(Y) == ()


def test_a_noop_publishes_an_overtaken_result() -> None:
    hand = Hand()
    hand.seed(A)
    assert hand.pull() is not None
    hand.tell(Asked(A))
    hand.end(A, Terminal("overtaken", (X,)))
    assert hand.state.result(A) is None
    hand.run(A, Noop())
    assert hand.state.result(A) == "overtaken"
    assert hand.state.waiters(X) == (A,)


def test_a_noop_after_a_verdict_restores_the_former_result() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("one"))
    hand.bring(A)
    for _ in range(3):
        hand.run(A, Blocked((X,)))
    assert hand.pull_all() == []
    assert hand.state.result(A) == "unresolved"
    hand.bring(X)
    hand.run(A, Noop())
    assert hand.state.result(A) == "one"


def test_a_crash_reads_nothing_and_runs_again_when_its_content_changes() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("read x", (X,)))
    hand.tell(Asked(A))
    hand.run(A, Crashed("boom"))
    hand.bring(X)
    assert hand.pull_all() == []
    hand.bring(A)
    hand.run(A, Crashed("boom"))
    assert hand.state.charges(A) == 1


def test_emissions_are_published_once_in_their_order() -> None:
    hand = Hand()
    hand.seed(A)
    made = (emission(C), emission(X), emission(B), emission(C))
    hand.run(A, Terminal("ready", (), made))
    assert hand.pull_all() == [C, B]
    hand.tell(Asked(A))
    hand.end(C, Terminal("ready"))
    hand.end(B, Terminal("ready"))
    hand.run(A, Terminal("ready", (), made))
    assert hand.pull_all() == []


def test_a_node_that_reads_its_own_result_is_not_woken_by_it() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("read myself", (A,)))
    assert hand.pull_all() == []


@pytest.mark.parametrize("outcome", [Terminal("ready", (X,)), DependencyFailed((X,), "for x"), Noop()])
def test_a_change_of_a_read_id_during_a_run_causes_a_charged_run(outcome: Outcome) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("first", (X,)))
    hand.tell(Asked(A))
    assert hand.pull() is not None
    hand.bring(X)
    hand.end(A, outcome)
    assert hand.state.phase(A) == Runnable()
    assert hand.state.charges(A) == 1
    hand.run(A, outcome)
    assert hand.pull_all() == []


def test_reports_of_other_runs_are_ignored() -> None:
    hand = Hand()
    hand.seed(A)
    first = hand.run(A, Outside())
    hand.tell(Finished(A, first.run, Terminal("late")))
    hand.tell(Finished(B, 1, Terminal("nobody")))
    hand.tell(Answered(A, first.run + 1))
    hand.tell(Answered(B, 1))
    assert hand.state.phase(A) == Waiting(first.run, ())
    hand.tell(Answered(A, first.run))
    second = hand.pull()
    assert second is not None
    assert second.run > first.run
    hand.tell(Answered(A, first.run))
    hand.tell(Finished(A, first.run, Terminal("late")))
    assert hand.state.phase(A) == Running(second.run, Level.NONE)


# --- removal and return ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [Arrived(emission(A, "new")), Seeded((A,))])
def test_a_node_removed_during_its_run_and_added_again_is_new(back: Event) -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("old"))
    hand.run(B, Terminal("read a", (A,)))
    hand.tell(Asked(A))
    order = hand.pull()
    assert order is not None
    hand.tell(Removed(A))
    assert (hand.state.present(A), hand.state.result(A)) == (False, None)
    hand.tell(back)
    hand.tell(back)
    assert hand.state.present(A)
    assert hand.pull_all() == [B], "never at the same time as its old body"
    hand.tell(Asked(A))
    hand.running.pop(A)
    state, effects = step(hand.state, Finished(A, order.run, Terminal("late", (), (emission(C),))))
    assert effects == ()
    assert state.phase(A) == Runnable()
    assert not state.present(C)
    assert (state.result(A), state.charges(A)) == (None, 0)


def test_data_in_place_of_a_node_removed_during_its_run_are_not_a_node() -> None:
    hand = Hand()
    hand.seed(A)
    order = hand.pull()
    assert order is not None
    hand.tell(Removed(A))
    state, _ = step(hand.state, Arrived(Emission(A, "1", runnable=False)))
    state, _ = step(state, Finished(A, order.run, Terminal("late")))
    assert state.present(A)
    assert state.phase(A) is None
    assert step(state, Pulled())[1] == (Converged(),)


def test_a_node_removed_twice_during_its_run_is_absent() -> None:
    hand = Hand()
    hand.seed(A)
    order = hand.pull()
    assert order is not None
    state = hand.state
    for event in (Removed(A), Seeded((A,)), Removed(A), Removed(A), Asked(A)):
        state, effects = step(state, event)
        assert effects == ()
    state, _ = step(state, Finished(A, order.run, Terminal("late")))
    assert state.phase(A) is None
    assert not state.marks


def test_a_queued_node_removed_and_added_again_keeps_its_place() -> None:
    hand = Hand()
    hand.seed(A, B, C)
    hand.tell(Removed(A))
    hand.tell(Removed(B))
    hand.bring(A)
    assert hand.pull_all() == [A, C]


def run_if_ordered(hand: Hand, outcome: Outcome) -> None:
    """Take the next dispatch of the engine, if there is one, and report this outcome for it."""
    if (order := hand.pull()) is not None:
        hand.end(order.id, outcome)


# --- the end, and a live daemon -----------------------------------------------------------------------------------------------


def test_convergence_is_reported_once_after_each_change() -> None:
    state = start()
    state, effects = step(state, Pulled())
    assert effects == (Converged(),)
    state, effects = step(state, Pulled())
    assert effects == ()
    state, _ = step(state, Arrived(emission(X)))
    state, effects = step(state, Pulled())
    assert effects == (Converged(),)


def test_an_engine_without_drain_never_converges_and_never_judges() -> None:
    hand = Hand(Rules(drain=False))
    hand.seed(A, B)
    hand.run(A, Blocked((X,)))
    hand.run(B, Terminal("swept never"), sweep=True)
    for content in ("1", "2"):
        hand.bring(Y, content)
        assert hand.pull_all() == []
    assert hand.state.phase(A) == Parked((X,))
    assert hand.effects == []


def test_an_idle_engine_without_drain_resets_charges() -> None:
    hand = Hand(Rules(drain=False, budget=2))
    hand.seed(A, B)
    hand.run(A, Terminal("ready"))
    assert hand.pull() is not None
    for content in "12345":
        hand.bring(A, content)
        run_if_ordered(hand, Terminal("ready"))
    (exhausted,) = hand.effects
    assert isinstance(exhausted, Exhausted)
    assert hand.state.charges(A) == 2
    hand.tell(Asked(A))
    assert hand.pull_all() == [], "not even on request while B still runs"
    hand.end(B, Terminal("ready"))
    assert hand.state.at_rest()
    assert hand.state.charges(A) == 0
    assert isinstance(hand.state.phase(A), Done)
    hand.bring(A, "6")
    hand.run(A, Terminal("ready"))
    assert hand.state.result(A) == "ready"


def test_an_exhausted_node_keeps_its_reads() -> None:
    hand = Hand(Rules(drain=False, budget=1))
    hand.seed(A, B)
    hand.run(A, Terminal("read x", (X,)))
    assert hand.pull() is not None
    for content in "12":
        hand.bring(X, content)
        run_if_ordered(hand, Terminal("read x", (X,)))
    assert str(hand.state.result(A)).startswith("exhausted: Node/a does not settle")
    hand.end(B, Terminal("ready"))
    hand.bring(X, "3")
    hand.run(A, Terminal("read x", (X,)))
    assert hand.state.result(A) == "read x"


def test_a_chain_of_creations_ends_at_the_depth_limit_and_wakes_its_dependents() -> None:
    hand = Hand(Rules(depth=1))
    hand.seed(A, node("waits"))
    assert hand.pull() is not None
    hand.run(node("waits"), Blocked((C,)))
    hand.end(A, Terminal("ready", (), (emission(B),)))
    hand.run(B, Terminal("ready", (), (emission(C),)))
    (exhausted,) = hand.effects
    assert isinstance(exhausted, Exhausted)
    assert (exhausted.id, exhausted.loop) == (C, (A, B, C))
    assert hand.pull_all() == [node("waits")]
    hand.bring(C, "brought from outside, while it is exhausted")
    assert hand.pull_all() == []


def test_arrivals_from_outside_have_depth_0() -> None:
    hand = Hand(Rules(depth=1))
    hand.seed(A)
    hand.run(A, Terminal("ready", (), (emission(B),)))
    hand.bring(B, "from outside")
    hand.run(B, Terminal("ready", (), (emission(C),)))
    assert hand.pull_all() == [C]
    assert [effect for effect in hand.effects if isinstance(effect, Exhausted)] == []


# --- cancellation -------------------------------------------------------------------------------------------------------------


def test_a_cancelled_engine_begins_judges_and_wakes_nothing() -> None:
    hand = Hand(Rules(budget=0, depth=0))
    hand.seed(A, B, C)
    assert hand.pull() is not None
    hand.run(B, Blocked((X,)))
    hand.tell(Cancelled())
    hand.bring(X)
    hand.bring(A)
    hand.tell(Asked(B))
    hand.end(A, Terminal("ready", (), (emission(node("new")),)))
    assert hand.pull_all() == []
    assert hand.effects == []
    assert [hand.state.phase(one) for one in (A, B, C)] == [Runnable(), Parked((X,)), Runnable()]
    assert hand.state.phase(node("new")) == Runnable()


def test_the_same_events_have_the_same_effects() -> None:
    told: list[Event] = [Seeded((B, A)), Pulled(), Pulled(), Arrived(emission(X)), Removed(X), Pulled()]
    runs: list[list[tuple[Effect, ...]]] = []
    for _ in range(2):
        state, seen = start(), list[tuple[Effect, ...]]()
        for event in told:
            state, effects = step(state, event)
            seen.append(effects)
        runs.append(seen)
    assert runs[0] == runs[1]
    assert [effect.id for effects in runs[0] for effect in effects if isinstance(effect, Dispatch)] == [A, B]


def test_ids_of_different_kinds_are_independent() -> None:
    kinds = [Id("Package", "shop", "web"), Id("Hook", "shop", "web"), Id("Package", "", "web")]
    hand = Hand()
    hand.seed(*kinds)
    assert hand.pull_all() == sorted(kinds)
