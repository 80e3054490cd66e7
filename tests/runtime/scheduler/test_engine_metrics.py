"""The metrics of the scheduler: each state of its nodes is counted."""

from wharfinger.runtime.scheduler.engine_metrics import NODES, SCHEDULER_METRICS, scheduler_families
from wharfinger.runtime.scheduler.scheduler import EngineCounts, Scheduler


def test_every_state_has_a_metric() -> None:
    families = dict(scheduler_families(EngineCounts(10, 1, 2, 3, 40, 5)))
    assert set(families) == set(SCHEDULER_METRICS)
    assert {labels[0]: number for labels, number in families[NODES]} == {
        "queued": 1,
        "running": 2,
        "waiting": 3,
        "settled": 4,
    }


def test_a_scheduler_without_packages_counts_zero() -> None:
    assert Scheduler().counts() == EngineCounts(0, 0, 0, 0, 0, 0)
