"""The cases about charges (spec/schedulers §A.10, ``schedule_accounting_test``). The table of the cases is in spec_cases.py."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.model import (
    Asked,
    Blocked,
    Cancelled,
    Converged,
    DependencyFailed,
    Exhausted,
    Finished,
    Level,
    Noop,
    Outside,
    Seeded,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Runnable

A, B, C = node("a"), node("b"), node("c")
X, Y = datum("x"), datum("y")


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("depth", [8, 32, 40])
def test_every_stage_of_a_selector_chain_is_emitted(depth: int) -> None:
    """Each node looks for data that the node before it emits. In each round, all nodes look before any of them reports."""
    hand = Hand()
    stages = [node(f"{at:02}") for at in range(depth)]
    hand.seed(*stages)
    runs: Counter[str] = Counter()
    hand.bring(datum("00"))
    while ids := hand.pull_all():
        runs.update(one.name for one in ids)
        there = {one for one in ids if hand.state.present(datum(one.name))}
        for one in ids:
            made = (emission(datum(f"{int(one.name) + 1:02}")),) if one in there else ()
            hand.end(one, Terminal("looked", (), made), sweep=True)
    assert all(hand.state.present(datum(f"{at:02}")) for at in range(depth + 1))
    assert set(runs.values()) == {depth + 1}
    assert max(hand.state.charges(one) for one in stages) <= 2
    assert hand.effects == [Converged()]


# --- causes of a queued run, and a change of content on top of each ---------------------------------------------------------


def _immediate(hand: Hand) -> None:
    """Request a run of A while A runs, so that A runs again at once."""
    hand.seed(A)
    hand.pull()
    hand.tell(Asked(A))
    hand.end(A, Terminal("ready"))


def _parked(hand: Hand) -> None:
    """Park A, and let the id that it lacks arrive."""
    hand.seed(A)
    hand.run(A, Blocked((X,)))
    hand.bring(X)


def _recheck(hand: Hand) -> None:
    """Let the id that A lacks arrive while A runs, before A is parked because of it."""
    hand.seed(A)
    hand.pull()
    hand.bring(X)
    hand.end(A, Blocked((X,)))


def _sweep(hand: Hand) -> None:
    """Let A and another node be swept, that is, run again at a fixpoint. Dispatch the other node, so that A is still queued."""
    hand.seed(node("Z first"), A)
    for one in hand.pull_all():
        hand.end(one, Terminal("looked"), sweep=True)
    hand.bring(X)
    assert hand.pull() is not None


def _judged(hand: Hand, *, force: bool) -> None:
    """Let the engine reach a fixpoint, at which it queues A and another node for a run at level FORCE if ``force`` is true, and
    otherwise at level CASCADE. Dispatch the other node, so that A is still queued.
    """
    first = node("Z first")
    hand.seed(first, A)
    for one in hand.pull_all():
        hand.end(one, Blocked((Y,) if one == first else (X,)))
    if force:
        for one in hand.pull_all():
            hand.end(one, Blocked((Y,) if one == first else (X,)))
    assert hand.pull() is not None


def _runnable(hand: Hand) -> None:
    """Let a run of A end, and then request another run of A."""
    hand.seed(A)
    hand.run(A, Terminal("ready"))
    hand.tell(Asked(A))


QUEUED: dict[str, Callable[[Hand], None]] = {
    "immediate": _immediate,
    "parked": _parked,
    "recheck": _recheck,
    "sweep": _sweep,
    "cascade": lambda hand: _judged(hand, force=False),
    "force": lambda hand: _judged(hand, force=True),
    "runnable": _runnable,
}


@pytest.mark.parametrize("why", QUEUED)
def test_a_change_of_content_on_top_of_any_cause_costs_one_charge_and_no_run(why: str) -> None:
    hand = Hand()
    QUEUED[why](hand)
    assert hand.state.phase(A) == Runnable()
    assert hand.state.charges(A) == 0
    for content in ("1", "2", "2", "3"):
        hand.bring(A, content)
        assert hand.state.charges(A) == 1
    order = hand.pull()
    assert order is not None
    assert (order.id, order.level) == (A, Level.NONE)
    for running in list(hand.running):
        hand.end(running, Terminal("ready"))
    assert hand.pull_all() == [], "one place in the queue, and no causes are left"
    assert hand.state.charges(A) == 1
    assert not any(isinstance(effect, Unresolved) for effect in hand.effects)


# --- free runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["arrival", "status"])
def test_retries_of_a_blocked_node_are_free(by: str) -> None:
    """A node is woken forty times. With its first run, it runs 41 times, and none of these runs is charged."""
    hand = Hand()
    lacked = X if by == "arrival" else B
    hand.seed(A)
    hand.run(A, Blocked((lacked,)))
    hand.seed(B)
    hand.run(B, Terminal("ready"))
    runs = 1 + (by == "status")
    if by == "status":
        hand.run(A, Blocked((lacked,)))
    while runs < 41:
        if by == "arrival":
            hand.bring(X, f"content {runs}")
        else:
            hand.tell(Asked(B))
            hand.run(B, Terminal("ready"))
        hand.run(A, Blocked((lacked,)))
        runs += 1
    assert hand.state.charges(A) == 0
    assert hand.effects == []
    assert hand.state.lacks(A) == (lacked,)


def test_an_arrival_while_a_body_waits_for_its_slot_is_a_second_run_and_one_charge() -> None:
    """A dispatched node counts as running, even if its driver has not begun the body yet."""
    hand = Hand()
    hand.seed(A)
    assert hand.pull() is not None
    hand.bring(A)
    hand.end(A, Terminal("ready"))
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []
    assert hand.state.charges(A) == 1


def test_blocked_bodies_publish_nothing_and_are_judged() -> None:
    """A and B wait for each other. With such nodes, the reference implementation ends only when it is cancelled. Here a blocked
    body publishes nothing, so the engine reports both nodes as unresolved, and ends by itself.
    """
    hand = Hand()
    hand.seed(A, B)
    bodies = 0
    while (order := hand.pull()) is not None:
        bodies += 1
        assert bodies < 20
        hand.end(order.id, Blocked((B if order.id == A else A,)))
    assert {effect.id for effect in hand.effects if isinstance(effect, Unresolved)} == {A, B}
    assert hand.effects[-1] == Converged()
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull() is not None
    hand.tell(Cancelled())
    hand.end(A, Blocked((B,)))
    assert hand.pull_all() == []
    assert hand.effects == []


def test_nodes_that_feed_each_other_are_exhausted_and_the_engine_converges() -> None:
    hand = Hand()
    hand.seed(A, B)
    runs: Counter[str] = Counter()
    while (order := hand.pull()) is not None:
        runs[order.id.name] += 1
        other = B if order.id == A else A
        hand.end(order.id, Terminal("ready", (), (emission(other, f"content {runs.total()}"),)))
    given_up = [effect for effect in hand.effects if isinstance(effect, Exhausted)]
    assert given_up
    assert max(runs.values()) <= 33
    assert set(given_up[0].loop) == {A, B}
    assert given_up[0].loop[-1] == given_up[0].id
    assert "→" in given_up[0].message
    assert hand.state.at_rest()
    assert hand.effects[-1] == Converged()


@pytest.mark.parametrize("over", [False, True], ids=["coalesced", "over the cap"])
def test_a_queued_run_is_upgraded_only_within_the_budget(over: bool) -> None:
    """A requested run, which is not charged, waits in the queue when new content arrives. It then becomes a charged run, and is
    charged once. If the budget is spent, the node is exhausted instead.
    """
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"))
    for at in range(31 + over):
        hand.bring(A, f"content {at}")
        hand.run(A, Terminal("ready"))
    hand.tell(Asked(A))
    hand.bring(A, "upgrade")
    hand.bring(A, "and another")
    assert hand.state.charges(A) == 32
    assert [type(effect) for effect in hand.effects] == ([Exhausted] if over else [])
    assert hand.pull_all() == ([] if over else [A])


def test_each_outcome_has_its_meaning() -> None:
    """Check the results of the outcomes, which are types with fields. In the reference implementation, outcomes are numbers."""
    hand = Hand()
    hand.seed(A, B, C)
    hand.run(A, Terminal("ready"))
    hand.run(B, DependencyFailed((X,), "for x"))
    hand.run(C, Blocked((X,)))
    assert [hand.state.result(one) for one in (A, B, C)] == ["ready", "for x", None]
    hand.tell(Asked(A))
    hand.tell(Asked(B))
    hand.run(A, Noop())
    hand.run(B, Noop())
    assert [hand.state.result(one) for one in (A, B)] == ["ready", "for x"]
    assert hand.state.waiters(X) == (B, C)


@pytest.mark.parametrize("content_first", [True, False])
@pytest.mark.parametrize("where", ["runnable", "running", "parked", "done"])
def test_changes_of_content_and_status_share_one_run(where: str, content_first: bool) -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, DependencyFailed((B,), "for b") if where == "done" else Blocked((X,) if where == "runnable" else (B,)))
    if where == "runnable":
        hand.bring(X)
    if where == "running":
        hand.tell(Asked(A))
        assert hand.pull() is not None
    causes: list[Callable[[], None]] = [lambda: hand.bring(A), lambda: hand.end(B, Terminal("ready"))]
    for cause in causes if content_first else causes[::-1]:
        cause()
    if where == "running":
        hand.end(A, Blocked((B,)))
    assert hand.pull_all() == [A]
    hand.end(A, Terminal("ready"))
    assert hand.pull_all() == []
    assert hand.state.charges(A) == 1


def test_progress_upgrades_a_free_queued_run() -> None:
    """Node A failed because the id x was missing. Then a run of A is requested, which is not charged to the budget of A. Before
    this run begins, x arrives. One run is made for both causes, and it is charged.
    """
    hand = Hand()
    hand.seed(A)
    hand.run(A, DependencyFailed((X,), "for x"))
    hand.tell(Asked(A))
    assert hand.state.charges(A) == 0
    hand.bring(X)
    assert hand.state.charges(A) == 1
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []


def test_further_causes_after_a_charged_run_are_charged() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, DependencyFailed((X,), "for x"))
    for at in (1, 2, 3):
        hand.bring(X, f"content {at}")
        hand.run(A, DependencyFailed((X,), "for x"))
        assert hand.state.charges(A) == at


def test_an_upgraded_run_is_one_run() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Blocked((X,)))
    hand.bring(X)
    hand.bring(A)
    order = hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []
    hand.tell(Finished(A, order.run, Terminal("again")))
    assert hand.state.result(A) == "ready"


def test_a_change_of_content_during_a_run_does_not_hide_its_failure() -> None:
    """During a run of A, the content of A changes, and so does x. Then the run fails because of x. A runs once more for both
    changes. The reference implementation makes another run as a precaution.
    """
    hand = Hand()
    hand.seed(A)
    assert hand.pull() is not None
    hand.bring(A)
    hand.bring(X)
    hand.end(A, DependencyFailed((X,), "for x"))
    hand.run(A, DependencyFailed((X,), "for x"))
    assert hand.pull_all() == [], "there is no precautionary retry"
    assert hand.state.charges(A) == 1


def test_wakes_of_a_node_that_waits_outside_are_free() -> None:
    hand = Hand()
    hand.seed(A)
    for at in range(40):
        hand.run(A, Outside((X,)))
        hand.bring(X, f"content {at}")
    hand.run(A, Terminal("ready"))
    hand.tell(Seeded((A,)))
    assert hand.state.charges(A) == 0
