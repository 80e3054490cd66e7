"""The metrics of the scheduler, and of the engine that orders the runs of packages."""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind
from wharfinger.runtime.scheduler.scheduler import EngineCounts

Rows = Sequence[tuple[Sequence[str], float]]

NODES: Final = Description(
    "wharfinger_scheduler_nodes",
    MetricKind.GAUGE,
    "Number of nodes in the scheduler's fixpoint engine, by state: queued, running, waiting (for an answer from outside of the "
    "engine), or settled (all others).",
    ("state",),
)
RUNS: Final = Description(
    "wharfinger_scheduler_runs_total",
    MetricKind.COUNTER,
    "Number of times that the scheduler requested a run of a package.",
)
STAMPS: Final = Description(
    "wharfinger_scheduler_changes_total",
    MetricKind.COUNTER,
    "Number of changes that the scheduler's fixpoint engine has processed.",
)

SCHEDULER_METRICS: Final = (NODES, RUNS, STAMPS)


def scheduler_families(counts: EngineCounts) -> Iterator[tuple[Description, Rows]]:
    """Yield all families of metrics, each with its present rows (the values of the labels, and the number)."""
    states = {"queued": counts.queued, "running": counts.running, "waiting": counts.waiting}
    states["settled"] = max(0, counts.nodes - sum(states.values()))
    yield NODES, [((state,), number) for state, number in states.items()]
    yield RUNS, [((), counts.runs)]
    yield STAMPS, [((), counts.stamps)]
