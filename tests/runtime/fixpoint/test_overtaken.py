"""Reports of bodies that have to run again anyway: what of them counts, and for whom.

What such a body made is there; its result is published to nobody. But bodies that keep their results themselves have shown it, so
whoever may have seen it is told of what is published next, once.
"""

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.model import Asked, Blocked, Noop, Outcome, Terminal
from wharfinger.runtime.fixpoint.state import Parked

A, B, C = node("a"), node("b"), node("c")
X = datum("x")


def test_what_an_overtaken_body_made_is_there() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((X,)))
    hand.tell(Asked(A))
    hand.end(A, Terminal("ready", (), (emission(X), emission(C))))
    assert hand.state.present(X)
    assert sorted(hand.pull_all()) == [A, B, C]


def test_no_one_parked_is_woken_by_an_overtaken_end_but_by_the_one_after_it() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((A,)))
    hand.tell(Asked(A))
    hand.end(A, Terminal("ready"))
    assert isinstance(hand.state.phase(B), Parked)
    hand.run(A, Terminal("ready"))
    hand.run(B, Terminal("ready"))


def overtaken(first: str, stale: str, last: Outcome) -> Hand:
    """B has read A while A's result was ``first``; A then reports ``stale``, is overtaken, and reports ``last``."""
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal(first))
    hand.seed(B)
    hand.run(B, Terminal(f"saw {first}", (A,)))
    hand.tell(Asked(A))
    assert hand.pull() is not None
    hand.tell(Asked(A))
    hand.end(A, Terminal(stale))
    return hand


@pytest.mark.parametrize("last", [Terminal("new"), Noop()], ids=["the same again", "noop"])
def test_news_of_an_overtaken_body_reach_its_readers_with_the_next_end(last: Outcome) -> None:
    hand = overtaken("old", "new", last)
    hand.run(A, last)
    assert hand.state.result(A) == "new"
    assert hand.pull_all() == [B]


def test_news_of_an_overtaken_body_are_told_once() -> None:
    hand = overtaken("old", "new", Noop())
    hand.run(A, Noop())
    hand.run(B, Noop())
    for _ in range(3):
        hand.tell(Asked(A))
        hand.run(A, Noop())
        assert hand.pull_all() == []


def test_who_read_the_result_of_an_overtaken_body_is_told_when_it_was_taken_back() -> None:
    """Bodies that keep their results themselves show them before they report, so somebody may have seen ``new``."""
    hand = overtaken("old", "new", Terminal("old"))
    hand.seed(C)
    assert hand.pull_all() == [A, C]
    hand.end(C, Terminal("saw new", (A,)))
    hand.end(A, Terminal("old"))
    assert hand.pull_all() == [B, C]
