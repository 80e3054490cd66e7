"""The state of the engine: its invariants after any events, and its queries."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.machine import start, step
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Arrived,
    Asked,
    Blocked,
    Cancelled,
    Crashed,
    DependencyFailed,
    Dispatch,
    Event,
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
from wharfinger.runtime.fixpoint.state import (
    Done,
    Fixpoint,
    Parked,
    Rules,
    Runnable,
    Running,
    Stage,
    Waiting,
)

A, B, C = node("a"), node("b"), node("c")
X = datum("x")

ids = st.sampled_from([A, B, C, X])
some = st.lists(ids, max_size=3).map(tuple)
emissions = st.builds(emission, ids, st.sampled_from("12")) | st.builds(emission, st.just(node("new")))
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Terminal, st.sampled_from("rs"), some, st.lists(emissions, max_size=2).map(tuple)),
    st.builds(Blocked, some),
    st.builds(DependencyFailed, some, st.just("dependency")),
    st.builds(Outside, some),
    st.builds(Crashed, st.just("boom")),
    st.just(Noop()),
)
events: st.SearchStrategy[Event | Outcome] = st.one_of(
    st.just(Pulled()),
    st.just(Pulled()),
    outcomes,
    outcomes,
    outcomes,
    st.builds(Seeded, some),
    st.builds(Arrived, emissions),
    st.builds(Removed, ids),
    st.builds(Asked, ids),
    st.builds(Answered, ids, st.integers(0, 60)),
)


def check_books(state: Fixpoint) -> None:
    """Check every invariant of `wharfinger.runtime.fixpoint.state` by counting everything again."""
    stages = Counter(found.stage for found in state.nodes.values())
    assert state.queued == stages[Stage.RUNNABLE]
    assert state.running == stages[Stage.RUNNING]
    assert state.waiting == stages[Stage.WAITING]
    places = Counter(state.queue)
    assert max(places.values(), default=1) == 1
    for who, found in state.nodes.items():
        assert (places[who] == 1) == found.queued
        assert found.queued or found.stage not in (Stage.RUNNABLE, Stage.GONE)
        if found.stage is Stage.PARKED:
            assert all(who in state.parked_on[lacked] for lacked in found.lacks)
            assert (who in state.parked) == state.rules.drain
        if found.stage in (Stage.DONE, Stage.WAITING):
            assert all(who in state.readers[read] for read in found.reads)
    listed = [(who, found.lacks, state.parked_on) for who, found in state.nodes.items()]
    listed += [(who, found.reads, state.readers) for who, found in state.nodes.items()]
    for index in (state.parked_on, state.readers):
        named = {(who, key) for who, keys, where in listed if where is index for key in keys}
        assert all(index[key] for key in index)
        assert {(who, key) for key in index for who in index[key]} <= named
    assert set(state.loops) <= set(state.nodes)
    assert set(state.sweepers) == {who for who, found in state.nodes.items() if found.sweep}
    if not state.running:
        assert all(mark.present for mark in state.marks.values()), "a removed id leaves no state"
    assert state.at_rest() == (not stages[Stage.RUNNABLE] and not stages[Stage.RUNNING])


@given(st.lists(events, max_size=40), st.booleans(), st.integers(0, 3))
def test_the_invariants_hold_after_any_events(told: list[Event | Outcome], drain: bool, budget: int) -> None:
    state = start(Rules(drain=drain, budget=budget, depth=2))
    running: list[Dispatch] = []
    state, _ = step(state, Seeded((A, B)))
    for at, each in enumerate(told):
        if isinstance(each, Terminal | Blocked | DependencyFailed | Outside | Crashed | Noop):
            if not running:
                continue
            order = running.pop(at % len(running))
            event: Event = Finished(order.id, order.run, each, sweep=at % 3 == 0)
        else:
            event = each
        before, copied = state, repr(state)
        state, effects = step(state, event)
        check_books(state)
        assert repr(before) == copied, "states are immutable"
        running += [effect for effect in effects if isinstance(effect, Dispatch)]
        assert {order.id for order in running} == {who for who in state.nodes if isinstance(state.phase(who), Running)}


def test_the_phase_of_a_node_can_be_queried() -> None:
    hand = Hand()
    assert hand.state.phase(A) is None
    assert not hand.state.present(A)
    hand.seed(A)
    assert hand.state.phase(A) == Runnable()
    assert hand.state.present(A)
    order = hand.pull()
    assert order is not None
    assert hand.state.phase(A) == Running(order.run, Level.NONE)
    hand.end(A, Blocked((X, C, B, C)))
    assert hand.state.phase(A) == Parked((X, B, C))
    assert hand.state.lacks(A) == (X, B, C)
    hand.bring(X)
    assert hand.state.lacks(A) == ()
    order = hand.run(A, Outside((C, B)))
    assert hand.state.phase(A) == Waiting(order.run, (B, C))
    hand.tell(Asked(A))
    hand.run(A, Terminal("ready"))
    assert hand.state.phase(A) == Done("ready")
    hand.tell(Removed(A))
    assert hand.state.phase(A) is None
    assert hand.state.result(A) is None


def test_a_result_is_known_until_another_one_is_published() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("one"))
    hand.tell(Asked(A))
    assert hand.state.result(A) == "one"
    assert hand.pull_all() == [B, A]
    assert hand.state.result(A) == "one"
    hand.end(A, Blocked((B,)))
    assert hand.state.result(A) == "one"
    assert hand.state.results() == {A: "one"}
    hand.end(B, Terminal("two"))
    assert hand.state.results() == {A: "one", B: "two"}
    assert list(hand.state.results()) == [A, B]


def test_waiters_are_sorted_and_listed_only_while_they_wait() -> None:
    hand = Hand()
    hand.seed(C, B, A)
    assert hand.pull_all() == [A, B, C]
    hand.end(C, Blocked((X,)))
    hand.end(B, Outside((X,)))
    hand.end(A, Terminal("ready", (X,)))
    assert hand.state.waiters(X) == (A, B, C)
    hand.tell(Asked(A))
    hand.tell(Asked(B))
    hand.tell(Asked(C))
    assert hand.state.waiters(X) == ()


def test_data_are_present_from_arrival_to_removal() -> None:
    hand = Hand()
    hand.bring(X)
    assert hand.state.present(X)
    assert hand.state.phase(X) is None
    assert hand.state.result(X) is None
    hand.tell(Removed(X))
    assert not hand.state.present(X)


@pytest.mark.parametrize("drain", [True, False])
def test_an_engine_at_rest_has_no_runnable_and_no_running_node(drain: bool) -> None:
    hand = Hand(Rules(drain=drain))
    assert hand.state.at_rest()
    hand.seed(A)
    assert not hand.state.at_rest()
    assert hand.pull() is not None
    assert not hand.state.at_rest()
    hand.end(A, Blocked((X,)))
    assert hand.state.at_rest()
    hand.tell(Asked(A))
    hand.run(A, Outside())
    assert hand.state.at_rest()


def test_the_list_of_parked_nodes_is_at_most_twice_as_long_as_needed() -> None:
    """One node waits for an event from outside of the engine all the time, so there is no fixpoint that would empty the
    list.
    """
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, Outside())
    hand.end(B, Blocked((X,)))
    for at in range(50):
        hand.bring(X, str(at))
        hand.run(B, Blocked((X,)))
        assert len(hand.state.parked) <= 2 * 2 + 1
    check_books(hand.state)


def test_the_invariants_hold_after_a_cancellation() -> None:
    hand = Hand()
    hand.seed(A, B, C)
    assert hand.pull_all() == [A, B, C]
    hand.end(A, Blocked((B,)))
    hand.tell(Cancelled())
    hand.end(B, Terminal("ready", (), (emission(X), emission(C, "other"))))
    hand.end(C, Terminal("ready"))
    check_books(hand.state)
    assert hand.state.phase(A) == Parked((B,))
    assert hand.state.phase(C) == Runnable(), "it is outdated and no longer runs"
    assert hand.state.waiters(B) == (A,)


def test_removed_ids_leave_no_state() -> None:
    hand = Hand(Rules(drain=False))
    for at in range(100):
        one: Id = node(f"n{at}")
        hand.seed(one)
        hand.run(one, Terminal("ready", (X,)))
        hand.tell(Removed(one))
    state = hand.state
    assert not state.nodes
    assert not state.marks
    assert not state.readers
    assert not state.gone
    assert not state.parked
    assert len(state.queue) == 0
