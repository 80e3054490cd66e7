"""Reports of overtaken runs: which parts of them count, and for which nodes.

A run is *overtaken* if a cause for another run of its node came after its beginning. Its emissions are published, but its
result is not, because the node has to run again anyway. But some bodies store their results themselves, so the nodes that read
such a result may already have seen it. Each of these nodes is woken once, when the next result is published.
"""

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.model import Asked, Blocked, Noop, Outcome, Terminal
from wharfinger.runtime.fixpoint.state import Parked

A, B, C = node("a"), node("b"), node("c")
X = datum("x")


def test_emissions_of_an_overtaken_body_are_published() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((X,)))
    hand.tell(Asked(A))
    hand.end(A, Terminal("ready", (), (emission(X), emission(C))))
    assert hand.state.present(X)
    assert sorted(hand.pull_all()) == [A, B, C]


def test_parked_nodes_are_woken_by_the_end_after_an_overtaken_one() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((A,)))
    hand.tell(Asked(A))
    hand.end(A, Terminal("ready"))
    assert isinstance(hand.state.phase(B), Parked)
    hand.run(A, Terminal("ready"))
    hand.run(B, Terminal("ready"))


def overtaken(first: str, stale: str) -> Hand:
    """Return an engine in which B has read A's result ``first``. The next run of A was overtaken: another run of A was
    requested while it ran. At its end, it has reported ``stale``.
    """
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
def test_readers_of_an_overtaken_body_are_woken_by_its_next_end(last: Outcome) -> None:
    hand = overtaken("old", "new")
    hand.run(A, last)
    assert hand.state.result(A) == "new"
    assert hand.pull_all() == [B]


def test_readers_of_an_overtaken_body_are_woken_once() -> None:
    hand = overtaken("old", "new")
    hand.run(A, Noop())
    hand.run(B, Noop())
    for _ in range(3):
        hand.tell(Asked(A))
        hand.run(A, Noop())
        assert hand.pull_all() == []


def test_readers_of_a_withdrawn_result_are_woken() -> None:
    """The overtaken run of A reports ``new``, which is not published, and the next run of A reports ``old`` again. A body may
    store its result itself, so a reader may have seen ``new`` in between. So the engine wakes all readers of A: B and C.
    """
    hand = overtaken("old", "new")
    hand.seed(C)
    assert hand.pull_all() == [A, C]
    hand.end(C, Terminal("saw new", (A,)))
    hand.end(A, Terminal("old"))
    assert hand.pull_all() == [B, C]
