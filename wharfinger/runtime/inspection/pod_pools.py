"""Snapshots of the pools of pods, which WorkerPools define."""

from wharfinger.pools.pods.pod_pool import PodPool
from wharfinger.pools.pods.pod_pools import PodPools
from wharfinger.runtime.daemon_details import WarmPoolSnapshot


def pod_pools(pools: PodPools) -> tuple[WarmPoolSnapshot, ...]:
    """Return snapshots of the pools that accept requests, sorted by namespace and name."""
    return tuple(_snapshot(pool) for pool in pools.pools())


def pool_name(pool: PodPool) -> str:
    """Return the name of a pool: its namespace and name."""
    return f"{pool.spec.namespace}/{pool.spec.name}"


def _snapshot(pool: PodPool) -> WarmPoolSnapshot:
    found, now, scheduler = pool.numbers(), pool.snapshot(), pool.scheduler
    counters = scheduler.metrics.counters if scheduler is not None else None
    return WarmPoolSnapshot(
        name=pool_name(pool),
        state="invalid" if pool.invalid else found.reason or "ready",
        size=found.desired,
        ready=now.ready if now is not None else 0,
        reserved=now.reserved if now is not None else 0,
        waiting=now.waiting if now is not None else 0,
        started=counters.succeeded if counters is not None else 0,
        conflicts=counters.conflicts if counters is not None else 0,
        failed=counters.failed if counters is not None else 0,
        expired=counters.expired if counters is not None else 0,
        refused=scheduler.metrics.refused if scheduler is not None else 0,
        restarts=pool.replaced,
        problem=pool.invalid or found.problem,
        kind="pods",
        starting=found.starting,
        claimed=found.claimed,
    )
