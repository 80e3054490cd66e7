"""The metrics of the pools of pods, which WorkerPools define."""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind
from wharfinger.pools.pods.pod_pool import PodPool
from wharfinger.pools.pods.pod_pools import PodPools

Rows = Sequence[tuple[Sequence[str], float]]
MAX_POOLS: Final = 200
"""The limit on the number of pools that metrics name in their labels; all further pools are counted together."""
OTHERS: Final = ("", "others")
_POOL: Final = ("namespace", "pool")


def _described(name: str, kind: MetricKind, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_worker_pool_{name}", kind, what, (*_POOL, *labels))


PODS: Final = _described(
    "pods",
    MetricKind.GAUGE,
    "Number of pods of a WorkerPool, by state: ready (for a claim), reserved (being assigned to a claim), starting, or "
    "claimed.",
    "state",
)
DESIRED: Final = _described("desired", MetricKind.GAUGE, "Number of idle pods that the WorkerPool should have now.")
WAITING: Final = _described("waiting", MetricKind.GAUGE, "Number of claims that wait for a pod.")
CLAIMS: Final = _described(
    "claims_total",
    MetricKind.COUNTER,
    "Number of claims for pods, by outcome: success, conflict (another program had changed the pod), "
    "failed, expired (no pod in time), or refused (too many requests waited).",
    "outcome",
)
DISPATCH: Final = _described(
    "dispatch_seconds_total",
    MetricKind.COUNTER,
    "Time from a request for a pod to the first attempt to assign one, summed over all requests, in seconds.",
)
CLAIMED: Final = _described(
    "claim_seconds_total",
    MetricKind.COUNTER,
    "Time from a request for a pod to the assignment of a pod, summed over all requests, in seconds.",
)
REPLACED: Final = _described(
    "replaced_total", MetricKind.COUNTER, "Number of pods that were replaced because they did not become ready."
)

POD_METRICS: Final = (PODS, DESIRED, WAITING, CLAIMS, DISPATCH, CLAIMED, REPLACED)


def pod_families(pools: PodPools) -> Iterator[tuple[Description, Rows]]:
    """Yield all families with their present series, for the pools that accept requests."""
    named = [(_labels(number, pool), pool) for number, pool in enumerate(pools.pools())]
    yield PODS, _summed([((*labels, state), count) for labels, pool in named for state, count in _states(pool)])
    yield DESIRED, _summed([(labels, pool.numbers().desired) for labels, pool in named])
    yield WAITING, _summed([(labels, pool.numbers().waiting) for labels, pool in named])
    yield CLAIMS, _summed([((*labels, outcome), count) for labels, pool in named for outcome, count in _outcomes(pool)])
    yield (
        DISPATCH,
        _summed([(labels, pool.scheduler.metrics.dispatch_s.total) for labels, pool in named if pool.scheduler]),
    )
    yield CLAIMED, _summed([(labels, pool.scheduler.metrics.claim_s.total) for labels, pool in named if pool.scheduler])
    yield REPLACED, _summed([(labels, pool.replaced) for labels, pool in named])


def _labels(number: int, pool: PodPool) -> tuple[str, ...]:
    return (pool.spec.namespace, pool.spec.name) if number < MAX_POOLS else OTHERS


def _states(pool: PodPool) -> Iterator[tuple[str, int]]:
    found, now = pool.numbers(), pool.snapshot()
    yield "ready", found.ready
    yield "reserved", now.reserved if now is not None else 0
    yield "starting", found.starting
    yield "claimed", found.claimed


def _outcomes(pool: PodPool) -> Iterator[tuple[str, int]]:
    if pool.scheduler is not None:
        counters = pool.scheduler.metrics.counters
        yield "success", counters.succeeded
        yield "conflict", counters.conflicts
        yield "failed", counters.failed
        yield "expired", counters.expired
        yield "refused", pool.scheduler.metrics.refused


def _summed(rows: Rows) -> Rows:
    sums: dict[Sequence[str], float] = {}
    for labels, number in rows:
        sums[labels] = sums.get(labels, 0) + number
    return list(sums.items())
