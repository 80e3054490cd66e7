"""Fixpoints: who is swept, who of the parked is asked how hard, and who is at its end."""

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
    """Nodes by name, each parked on these."""
    hand = Hand()
    hand.seed(*(node(name) for name in lacks))
    for one in hand.pull_all():
        hand.end(one, Blocked(lacks[one.name]))
    return hand


def orders(hand: Hand) -> list[tuple[str, Level, str]]:
    """Who is asked now, how hard, and on which loop."""
    found = []
    while (order := hand.pull()) is not None:
        found.append((order.id.name, order.level, "".join(one.name for one in order.loop)))
    return found


def test_who_lacks_only_others_that_are_parked_is_not_asked_for_that() -> None:
    assert orders(parked(a=(B,), b=(C,), c=(X,), d=(A, Y))) == [("c", Level.CASCADE, ""), ("d", Level.CASCADE, "")]


def test_a_circle_is_asked_by_force_at_once_and_only_one_of_it() -> None:
    assert orders(parked(a=(C,), b=(A,), c=(B,), d=(A,))) == [("a", Level.FORCE, "acb")]
    assert orders(parked(a=(A,))) == [("a", Level.FORCE, "a")]


def test_circles_come_after_what_is_absent_where_both_hang_together() -> None:
    hand = parked(a=(B,), b=(A,), c=(A, X))
    assert orders(hand) == [("c", Level.CASCADE, "")]
    hand.end(C, Blocked((A, X)))
    assert orders(hand) == [("a", Level.FORCE, "ab")]


def test_groups_do_not_wait_for_each_other() -> None:
    hand = parked(a=(B,), b=(A,), c=(X,), d=(Y,), e=(Y,))
    assert orders(hand) == [
        ("a", Level.FORCE, "ab"),
        ("c", Level.CASCADE, ""),
        ("d", Level.CASCADE, ""),
        ("e", Level.CASCADE, ""),
    ]


def test_who_lacks_what_is_done_is_asked_and_then_is_at_its_end() -> None:
    """Nothing wakes it: nothing is going to change."""
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("ready"))
    hand.run(B, Blocked((A,)))
    assert hand.run(B, Blocked((A,))).level is Level.CASCADE
    assert hand.run(B, Blocked((A,))).level is Level.FORCE
    assert hand.pull_all() == []
    assert hand.effects == [Unresolved(B, (A,)), Converged()]
    assert hand.state.phase(B) == Done("unresolved")


def test_who_lacks_nothing_at_all_is_at_its_end_too() -> None:
    hand = parked(a=())
    assert hand.run(A, Blocked(())).level is Level.FORCE
    assert hand.pull_all() == []
    assert hand.effects == [Unresolved(A, ()), Converged()]


def test_a_verdict_wakes_who_is_parked_on_it_without_prejudice() -> None:
    hand = parked(a=(B,), b=(A,))
    assert hand.run(A, Blocked((B,))).level is Level.FORCE
    order = hand.run(B, DependencyFailed((A,), "a is unresolved"))
    assert (order.level, order.loop) == (Level.NONE, ())
    assert hand.effects == [Unresolved(A, (B,))]


def test_whatever_is_woken_begins_again_at_none() -> None:
    hand = parked(a=(X, Y), b=(Z,))
    assert orders(hand) == [("a", Level.CASCADE, ""), ("b", Level.CASCADE, "")]
    hand.end(A, Blocked((X, Y)))
    hand.bring(X)
    hand.end(B, Terminal("without z"))
    assert hand.run(A, Blocked((Y,))).level is Level.NONE
    assert hand.run(A, Blocked((Y,))).level is Level.CASCADE
    assert hand.run(A, Terminal("without y")).level is Level.FORCE


def test_a_member_that_begins_again_takes_its_group_back() -> None:
    hand = parked(a=(B,), b=(A, X))
    assert orders(hand) == [("b", Level.CASCADE, "")]
    hand.end(B, Blocked((A, X)))
    hand.seed(C)
    hand.run(C, Blocked((B, Y)))
    assert orders(hand) == [("c", Level.CASCADE, "")], "not a by force: c may bring something"
    hand.end(C, Blocked((B, Y)))
    assert orders(hand) == [("a", Level.FORCE, "ab")]


def test_news_between_the_pick_and_the_run_take_the_level_back() -> None:
    hand = parked(a=(X,), b=(X,))
    assert hand.run(A, Terminal("ready", (), (emission(X),))).level is Level.CASCADE
    assert hand.run(B, Terminal("ready")).level is Level.NONE


def test_an_answer_that_is_owed_holds_up_judgement() -> None:
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


def test_sweeps_come_before_judgement_and_may_spare_it() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("nothing there"), sweep=True)
    hand.run(B, Blocked((X,)))
    hand.bring(Y)
    hand.run(A, Terminal("saw y", (), (emission(X),)), sweep=True)
    assert hand.run(B, Terminal("ready")).level is Level.NONE
    hand.run(A, Terminal("saw both"), sweep=True)
    assert orders(hand) == []
    assert hand.state.charges(A) == 1, "for the sweep after it had made x"


@pytest.mark.parametrize("now", ["parked", "failed", "another answer"])
def test_only_who_is_done_and_still_wants_to_is_swept(now: str) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"), sweep=True)
    hand.tell(Asked(A))
    outcomes: dict[str, Outcome] = {"parked": Blocked((Y,)), "failed": DependencyFailed((Y,), "for y")}
    hand.run(A, outcomes.get(now, Terminal("ready")), sweep=now != "another answer")
    hand.bring(X)
    expected = {"parked": [("a", Level.CASCADE, "")], "failed": [("a", Level.NONE, "")]}.get(now, [])
    assert orders(hand) == expected


def test_what_goes_is_swept_for_as_what_comes() -> None:
    hand = Hand()
    hand.bring(X)
    hand.seed(A)
    hand.run(A, Terminal("saw x"), sweep=True)
    hand.tell(Removed(X))
    hand.run(A, Noop(), sweep=True)
    hand.tell(Removed(A))
    hand.bring(X)
    assert orders(hand) == []


def test_one_pull_is_one_order_however_many_end_on_the_way() -> None:
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
