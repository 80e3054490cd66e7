"""Fixpoints: which nodes are swept, at which level parked nodes run, and which nodes end as unresolved. The terms are explained
in `wharfinger.runtime.fixpoint`.
"""

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Asked,
    Blocked,
    Converged,
    DependencyFailed,
    Dispatch,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Removed,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Done, Parked, Waiting

A, B, C, D, E = (node(name) for name in "abcde")
X, Y, Z = datum("x"), datum("y"), datum("z")


def parked(**lacks: tuple[Id, ...]) -> Hand:
    """Return an engine with nodes of these names, each parked on the given ids."""
    hand = Hand()
    hand.seed(*(node(name) for name in lacks))
    for one in hand.pull_all():
        hand.end(one, Blocked(lacks[one.name]))
    return hand


def orders(hand: Hand) -> list[tuple[str, Level, str]]:
    """Make all dispatches that are possible now, and return them with their levels and loops."""
    found = []
    while (order := hand.pull()) is not None:
        found.append((order.id.name, order.level, "".join(one.name for one in order.loop)))
    return found


def test_nodes_that_lack_only_parked_nodes_are_not_picked() -> None:
    assert orders(parked(a=(B,), b=(C,), c=(X,), d=(A, Y))) == [("c", Level.CASCADE, ""), ("d", Level.CASCADE, "")]


def test_one_member_of_a_cycle_is_forced_at_once() -> None:
    assert orders(parked(a=(C,), b=(A,), c=(B,), d=(A,))) == [("a", Level.FORCE, "acb")]
    assert orders(parked(a=(A,))) == [("a", Level.FORCE, "a")]


def test_absent_ids_come_before_cycles_in_one_group() -> None:
    hand = parked(a=(B,), b=(A,), c=(A, X))
    assert orders(hand) == [("c", Level.CASCADE, "")]
    hand.end(C, Blocked((A, X)))
    assert orders(hand) == [("a", Level.FORCE, "ab")]


def test_groups_are_independent() -> None:
    hand = parked(a=(B,), b=(A,), c=(X,), d=(Y,), e=(Y,))
    assert orders(hand) == [
        ("a", Level.FORCE, "ab"),
        ("c", Level.CASCADE, ""),
        ("d", Level.CASCADE, ""),
        ("e", Level.CASCADE, ""),
    ]


def test_a_node_that_lacks_a_finished_node_becomes_unresolved() -> None:
    """No event wakes B, because the node that it lacks has already ended."""
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("ready"))
    hand.run(B, Blocked((A,)))
    assert hand.run(B, Blocked((A,))).level is Level.CASCADE
    assert hand.run(B, Blocked((A,))).level is Level.FORCE
    assert hand.pull_all() == []
    assert hand.effects == [Unresolved(B, (A,)), Converged()]
    assert hand.state.phase(B) == Done("unresolved")


def test_a_blocked_node_without_lacks_becomes_unresolved() -> None:
    hand = parked(a=())
    assert hand.run(A, Blocked(())).level is Level.FORCE
    assert hand.pull_all() == []
    assert hand.effects == [Unresolved(A, ()), Converged()]


def test_a_verdict_wakes_dependents_at_level_none() -> None:
    hand = parked(a=(B,), b=(A,))
    assert hand.run(A, Blocked((B,))).level is Level.FORCE
    order = hand.run(B, DependencyFailed((A,), "a is unresolved"))
    assert (order.level, order.loop) == (Level.NONE, ())
    assert hand.effects == [Unresolved(A, (B,))]


def test_a_woken_node_begins_again_at_level_none() -> None:
    hand = parked(a=(X, Y), b=(Z,))
    assert orders(hand) == [("a", Level.CASCADE, ""), ("b", Level.CASCADE, "")]
    hand.end(A, Blocked((X, Y)))
    hand.bring(X)
    hand.end(B, Terminal("without z"))
    assert hand.run(A, Blocked((Y,))).level is Level.NONE
    assert hand.run(A, Blocked((Y,))).level is Level.CASCADE
    assert hand.run(A, Terminal("without y")).level is Level.FORCE


def test_a_new_member_lowers_the_level_of_its_group() -> None:
    hand = parked(a=(B,), b=(A, X))
    assert orders(hand) == [("b", Level.CASCADE, "")]
    hand.end(B, Blocked((A, X)))
    hand.seed(C)
    hand.run(C, Blocked((B, Y)))
    assert orders(hand) == [("c", Level.CASCADE, "")], "a is not forced, because c may emit something"
    hand.end(C, Blocked((B, Y)))
    assert orders(hand) == [("a", Level.FORCE, "ab")]


def test_a_change_between_pick_and_run_resets_the_level() -> None:
    hand = parked(a=(X,), b=(X,))
    assert hand.run(A, Terminal("ready", (), (emission(X),))).level is Level.CASCADE
    assert hand.run(B, Terminal("ready")).level is Level.NONE


def test_an_outstanding_answer_delays_judgement() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Outside())
    hand.run(B, Blocked((X,)))
    assert hand.pull_all() == []
    assert hand.effects == []
    phase = hand.state.phase(A)
    assert isinstance(phase, Waiting)
    hand.tell(Answered(A, phase.run))
    hand.run(A, Terminal("ready"))
    assert orders(hand) == [("b", Level.CASCADE, "")]


def test_sweeps_come_before_judgement_and_may_prevent_it() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("nothing there"), sweep=True)
    hand.run(B, Blocked((X,)))
    hand.bring(Y)
    hand.run(A, Terminal("saw y", (), (emission(X),)), sweep=True)
    assert hand.run(B, Terminal("ready")).level is Level.NONE
    hand.run(A, Terminal("saw both"), sweep=True)
    assert orders(hand) == []
    assert hand.state.charges(A) == 1, "for the sweep after A had emitted x"


@pytest.mark.parametrize("now", ["parked", "failed", "another answer"])
def test_only_finished_nodes_that_request_a_sweep_are_swept(now: str) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"), sweep=True)
    hand.tell(Asked(A))
    outcomes: dict[str, Outcome] = {"parked": Blocked((Y,)), "failed": DependencyFailed((Y,), "for y")}
    hand.run(A, outcomes.get(now, Terminal("ready")), sweep=now != "another answer")
    hand.bring(X)
    expected = {"parked": [("a", Level.CASCADE, "")], "failed": [("a", Level.NONE, "")]}.get(now, [])
    assert orders(hand) == expected


def test_removals_cause_sweeps_like_arrivals() -> None:
    hand = Hand()
    hand.bring(X)
    hand.seed(A)
    hand.run(A, Terminal("saw x"), sweep=True)
    hand.tell(Removed(X))
    hand.run(A, Noop(), sweep=True)
    hand.tell(Removed(A))
    hand.bring(X)
    assert orders(hand) == []


def test_one_pull_makes_one_dispatch_however_many_nodes_end() -> None:
    hand = parked(a=(A,), b=(B,), c=(X,))
    assert orders(hand) == [("a", Level.FORCE, "a"), ("b", Level.FORCE, "b"), ("c", Level.CASCADE, "")]
    hand.end(A, Blocked((A,)))
    hand.end(B, Blocked((B,)))
    hand.end(C, Blocked((X,)))
    assert [order for order in (hand.pull(),) if order] == [
        Dispatch(C, hand.running[C].run, Level.FORCE, ()),
    ]
    assert hand.effects == [Unresolved(A, (A,)), Unresolved(B, (B,))]
    assert hand.state.phase(D) is None
    hand.end(C, Blocked((X,)))
    assert hand.state.phase(C) == Parked((X,))
    assert orders(hand) == []
    assert hand.effects[2:] == [Unresolved(C, (X,)), Converged()]
