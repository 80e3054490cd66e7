"""The metrics of warm hooks: how runs were started, and the pools of interpreters."""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind
from wharfinger.pools.interpreters.pool import InterpreterPool
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.pools.persistent.programs import PersistentPrograms
from wharfinger.runtime.inspection.warm_pools import named_pools

Rows = Sequence[tuple[Sequence[str], float]]


def _gauge(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_warm_{name}", MetricKind.GAUGE, what, labels)


def _counter(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_warm_{name}", MetricKind.COUNTER, what, labels)


STARTS: Final = _counter(
    "starts_total", "Number of hook runs, by start: warm (in an idle worker), or cold (as a new process).", "start"
)
WORKERS: Final = _gauge(
    "workers",
    "Number of workers, by state: ready (for a hook), or reserved (being assigned to a hook).",
    "interpreter",
    "state",
)
WAITING: Final = _gauge("waiting", "Number of hook runs that wait for a worker.", "interpreter")
CLAIMS: Final = _counter(
    "claims_total",
    "Number of claims for workers, by outcome: success, conflict (the worker had died), failed (the worker "
    "refused the script), expired (no worker in time), or refused (too many requests waited).",
    "interpreter",
    "outcome",
)
DISPATCH: Final = _counter(
    "dispatch_seconds_total",
    "Time from a request for a worker to the first attempt to claim one, summed over all requests, in seconds.",
    "interpreter",
)
CLAIMED: Final = _counter(
    "claim_seconds_total",
    "Time from a request for a worker to the start of the script in the worker, summed over all requests, in seconds.",
    "interpreter",
)
RESTARTS: Final = _counter(
    "zygote_restarts_total",
    "Number of zygotes (processes from which workers are forked) that ended and were replaced.",
    "interpreter",
)

MEMORY: Final = _gauge(
    "memory_bytes",
    "Memory of idle workers, of zygotes (processes from which workers are forked), and of processes of hooks with "
    "`pool: persistent`, all together, in bytes, by kind: used (the present memory), or limit (the upper limit).",
    "kind",
)
REFUSED: Final = _counter(
    "memory_refused_total", "Number of processes that were not started, because the memory limit was reached."
)
ENDED: Final = _counter(
    "memory_ended_total", "Number of idle processes that the daemon ended, because the memory limit was exceeded."
)
PERSISTENT: Final = _gauge("persistent_processes", "Number of processes of hooks with `pool: persistent`.")
PERSISTENT_RUNS: Final = _counter(
    "persistent_runs_total",
    "Number of runs of hooks with `pool: persistent`, by start: kept (in a process that serves several runs, its first run "
    "included), or new (in a new process for this run only, because a limit allowed no further kept process).",
    "start",
)
PERSISTENT_STARTS: Final = _counter(
    "persistent_starts_total", "Number of processes that were started for hooks with `pool: persistent`."
)
BROKEN: Final = _counter(
    "persistent_broken_total",
    "Number of processes of hooks with `pool: persistent` that ended during a run, or that the daemon ended because of a "
    "failed run.",
)

WARM_METRICS: Final = (
    *(STARTS, WORKERS, WAITING, CLAIMS, DISPATCH, CLAIMED, RESTARTS, MEMORY, REFUSED, ENDED),
    *(PERSISTENT, PERSISTENT_RUNS, PERSISTENT_STARTS, BROKEN),
)


def warm_families(starts: WarmStarts, programs: PersistentPrograms) -> Iterator[tuple[Description, Rows]]:
    """Yield each family of metrics about warm and persistent hooks, with its present series.

    If pools have the same program, but different environment variables, their labels are numbered (`named_pools`).
    """
    pools = list(named_pools(starts.pools()))
    yield STARTS, [(("warm",), starts.warm), (("cold",), starts.cold)]
    snapshots = [(name, pool.snapshot()) for name, pool in pools]
    yield (
        WORKERS,
        [
            ((name, state), number)
            for name, found in snapshots
            for state, number in (("ready", found.ready), ("reserved", found.reserved))
        ],
    )
    yield WAITING, [((name,), found.waiting) for name, found in snapshots]
    yield CLAIMS, [((name, outcome), number) for name, pool in pools for outcome, number in _outcomes(pool)]
    yield DISPATCH, [((name,), pool.metrics.dispatch_s.total) for name, pool in pools]
    yield CLAIMED, [((name,), pool.metrics.claim_s.total) for name, pool in pools]
    yield RESTARTS, [((name,), pool.restarts) for name, pool in pools]
    budget, counters = starts.budget, programs.counters
    yield MEMORY, [(("used",), budget.used), (("limit",), budget.limit_bytes)]
    yield REFUSED, [((), budget.refused)]
    yield ENDED, [((), budget.ended)]
    yield PERSISTENT, [((), len(programs))]
    yield PERSISTENT_RUNS, [(("kept",), counters.runs), (("new",), counters.alone)]
    yield PERSISTENT_STARTS, [((), counters.started)]
    yield BROKEN, [((), counters.broken)]


def _outcomes(pool: InterpreterPool) -> Iterator[tuple[str, int]]:
    counters = pool.metrics.counters
    yield "success", counters.succeeded
    yield "conflict", counters.conflicts
    yield "failed", counters.failed
    yield "expired", counters.expired
    yield "refused", pool.metrics.refused
