"""The times at which prunes run."""

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.pruning import Pruning, asked, begun, ended, started

OPTIONS = ReconcilerOptions(prune_s=3600)
ON_DEMAND = ReconcilerOptions(prune_s=0)
INFINITY = float("inf")


def done(
    pruning: Pruning, now: float, error: ClusterError | None = None, options: ReconcilerOptions = OPTIONS
) -> Pruning:
    return ended(started(pruning), options, error, now=now, took_s=0.5, draw=0.0)


def test_the_first_prune_is_due_at_once_and_then_hourly() -> None:
    assert begun(OPTIONS).next_at == -INFINITY
    assert done(begun(OPTIONS), 10).next_at == 3610


def test_prunes_may_be_on_demand_only() -> None:
    pruning = begun(ON_DEMAND)
    assert pruning.next_at == INFINITY
    pruning = asked(asked(pruning))
    assert pruning.next_at == -INFINITY
    assert done(pruning, 10, options=ON_DEMAND).next_at == INFINITY


def test_a_prune_requested_during_another_runs_after_it() -> None:
    pruning = asked(started(asked(begun(OPTIONS))))
    assert pruning.next_at == INFINITY
    pruning = ended(pruning, OPTIONS, None, now=10, took_s=1, draw=0.0)
    assert pruning.next_at == -INFINITY


def test_a_failed_prune_is_retried_soon() -> None:
    pruning = begun(OPTIONS)
    pauses = []
    for _ in range(3):
        pruning = done(pruning, 10, ClusterError("no"))
        pauses.append(round(pruning.next_at - 10, 3))
    assert pauses == [0.1, 0.2, 0.4]
    assert (str(pruning.error), pruning.errors_total, pruning.count, pruning.seconds) == ("no", 3, 3, 1.5)
    pruning = done(pruning, 10)
    assert (pruning.error, pruning.failures, pruning.errors_total, pruning.next_at) == (None, 0, 3, 3610)
