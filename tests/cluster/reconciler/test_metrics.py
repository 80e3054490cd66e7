"""Metrics of several reconcilers, by name."""

from wharfinger.cluster.reconciler.metrics import MemoryMetrics, Operation
from wharfinger.cluster.reconciler.statistics import Performed


def test_metrics_are_stored_by_name_and_operation() -> None:
    metrics = MemoryMetrics()
    metrics.performed("apply", Operation.UPDATE, 0.5, failed=True)
    metrics.performed("apply", Operation.UPDATE, 1.5, failed=False)
    metrics.performed("labels", Operation.PRUNE, 2.0, failed=False)
    metrics.failing("apply", Operation.UPDATE, 3)
    assert metrics.of("apply") == {Operation.UPDATE: Performed(2, 1, 2.0)}
    assert metrics.of("labels") == {Operation.PRUNE: Performed(1, 0, 2.0)}
    assert metrics.of("nobody") == {}
    assert [metrics.current_errors(name) for name in ("apply", "labels")] == [3, 0]
    assert metrics.current_errors("apply", Operation.PRUNE) == 0
