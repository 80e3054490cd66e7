"""The statistics of a reconciler."""

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.cluster.reconciler.statistics import Performed, Tally, health


def failures(count: int) -> list[Failure[int]]:
    return [Failure(key, ClusterError("no"), 1, 0.0, permanent=False, since=0.0) for key in range(count)]


def test_health_is_summarized() -> None:
    assert [health(rows, failures(0), None) for rows in (0, 1, 3)] == ["OK, 0 objects", "OK, 1 object", "OK, 3 objects"]
    assert health(3, failures(2), None) == "Degraded, 2 errors: 0: no; 1: no"
    assert health(3, failures(1), ClusterError("late")) == "Degraded, 2 errors: prune: late; 0: no"
    assert health(3, failures(0), ClusterError("late")) == "Degraded, 1 error: prune: late"


def test_at_most_ten_errors_are_listed() -> None:
    told = health(99, failures(11), None)
    assert told.startswith("Degraded, 11 errors: 0: no; 1: no")
    assert told.endswith("9: no; 1 further error omitted")
    assert health(99, failures(30), None).endswith("20 further errors omitted")
    assert "omitted" not in health(99, failures(10), None)


def test_a_tally_counts_operations_errors_and_seconds() -> None:
    tally = Tally()
    tally.add(0.5, failed=False)
    tally.add(1.5, failed=True)
    assert tally.snapshot() == Performed(2, 1, 2.0)
