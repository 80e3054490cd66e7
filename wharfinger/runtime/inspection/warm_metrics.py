"""The metrics of warm hooks: how runs were started, and the pools of interpreters."""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind
from wharfinger.pools.interpreters.pool import InterpreterPool
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.runtime.inspection.warm_pools import named_pools

Rows = Sequence[tuple[Sequence[str], float]]


def _gauge(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_warm_{name}", MetricKind.GAUGE, what, labels)


def _counter(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_warm_{name}", MetricKind.COUNTER, what, labels)


STARTS: Final = _counter("starts_total", "Hooks by their start: in a warm worker, or as a new process.", "start")
WORKERS: Final = _gauge("workers", "Workers that are ready, or reserved for a hook.", "interpreter", "state")
WAITING: Final = _gauge("waiting", "Hooks that wait for a worker.", "interpreter")
CLAIMS: Final = _counter("claims_total", "Ends of claims and requests for workers.", "interpreter", "outcome")
DISPATCH: Final = _counter("dispatch_seconds_total", "Time from requests to their first claims.", "interpreter")
CLAIMED: Final = _counter(
    "claim_seconds_total", "Time from requests to the start of their scripts, of those that succeeded.", "interpreter"
)
RESTARTS: Final = _counter("zygote_restarts_total", "Zygotes that ended and were replaced.", "interpreter")

WARM_METRICS: Final = (STARTS, WORKERS, WAITING, CLAIMS, DISPATCH, CLAIMED, RESTARTS)


def warm_families(starts: WarmStarts) -> Iterator[tuple[Description, Rows]]:
    """Yield all families with their present rows; pools of one program with different variables have numbered labels."""
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


def _outcomes(pool: InterpreterPool) -> Iterator[tuple[str, int]]:
    counters = pool.metrics.counters
    yield "success", counters.succeeded
    yield "conflict", counters.conflicts
    yield "failed", counters.failed
    yield "expired", counters.expired
    yield "refused", pool.metrics.refused
