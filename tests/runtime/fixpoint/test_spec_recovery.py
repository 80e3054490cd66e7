"""The cases about recovery (spec/schedulers §A.10, ``recovery_test``): a node that failed because of another node recovers when
the other node does.
"""

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, node
from wharfinger.runtime.fixpoint.model import (
    Asked,
    Blocked,
    Cancelled,
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


def fails(*failed: object) -> DependencyFailed:
    """Return the outcome of a body that fails because of these ids."""
    return DependencyFailed(tuple(one for one in (A, B, C, D, X) if one in failed), "dependency")


def test_a_failed_dependent_recovers_after_its_dependency_ends() -> None:
    hand = Hand()
    hand.seed(B, A)
    hand.run(A, fails(B))
    hand.run(B, Terminal("ready"))
    assert hand.run(A, Terminal("ready")).level is Level.NONE
    assert hand.effects == []


def test_a_failed_dependent_recovers_if_its_dependency_ends_during_the_report() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Terminal("ready"))
    hand.end(A, fails(B))
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []


def test_a_failure_because_of_absent_data_recovers_when_they_arrive() -> None:
    hand = Hand()
    hand.seed(A)
    assert hand.run(A, Blocked((X,))).level is Level.NONE
    assert hand.run(A, fails(X)).level is Level.CASCADE
    hand.bring(X)
    assert hand.run(A, Terminal("ready")).level is Level.NONE, "no trace of the judgement"


def test_a_permanent_failure_is_not_retried() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, fails(B))
    hand.run(B, Terminal("failed"))
    hand.run(A, fails(B))
    hand.tell(Asked(B))
    hand.run(B, Terminal("failed"))
    assert hand.pull_all() == [], "an equal result is not a change"
    assert hand.state.result(A) == "dependency"


@pytest.mark.parametrize("wake_first", [True, False], ids=["wake, then end", "end, then wake"])
@pytest.mark.parametrize("then", ["success", "other dependencies", "failure of its own", "cancelled"])
def test_a_wake_by_an_id_no_longer_failed_for_causes_no_run(then: str, wake_first: bool) -> None:
    """The first run of A has failed because of B. The next run of A does not fail because of B any more, and B becomes ready
    shortly before or after the end of this run.
    """
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, fails(B, C))
    hand.tell(Asked(A))
    assert hand.pull_all() == [A]
    outcome = {"success": Terminal("ready"), "failure of its own": Terminal("failed")}.get(then, fails(C, D))
    if wake_first:
        hand.end(B, Terminal("ready"))
    if then == "cancelled":
        hand.tell(Cancelled())
    hand.end(A, outcome)
    if not wake_first:
        hand.end(B, Terminal("ready"))
    assert hand.pull_all() == [], "nothing that it looks at now has changed since it began"
    assert hand.state.result(A) == (outcome.result)
    assert hand.state.waiters(B) == ()
    assert hand.state.waiters(C) == ((A,) if outcome == fails(C, D) else ())
    assert hand.effects == ([] if then == "cancelled" else [Converged()])


@pytest.mark.parametrize("wake_first", [True, False], ids=["wake, then end", "end, then wake"])
def test_a_wake_by_the_failed_dependency_is_followed_in_both_orders(wake_first: bool) -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    events: list[tuple[Id, Outcome]] = [(B, Terminal("ready")), (A, fails(B))]
    for one, outcome in events if wake_first else events[::-1]:
        hand.end(one, outcome)
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []


def test_recovery_passes_through_several_hops() -> None:
    hand = Hand()
    hand.seed(A, B, C)
    hand.run(A, fails(B))
    hand.run(B, fails(C))
    hand.run(C, fails(X))
    hand.run(A, fails(B))  # the result of B has changed
    hand.run(B, fails(C))
    hand.pull_all()
    hand.bring(X)
    for one in (C, B, A):
        hand.run(one, Terminal("ready"))
    assert hand.pull_all() == []
    assert {hand.state.result(one) for one in (A, B, C)} == {"ready"}


def test_recovery_is_charged() -> None:
    hand = Hand()
    hand.seed(A)
    runs = 0
    while (order := hand.pull()) is not None:
        runs += 1
        hand.end(order.id, fails(X))
        hand.bring(X, f"content {runs}")
    assert runs == 33
    (exhausted,) = [effect for effect in hand.effects if isinstance(effect, Exhausted)]
    assert exhausted.id == A
    assert exhausted.loop == (A,)
    assert "events from outside" in exhausted.message
