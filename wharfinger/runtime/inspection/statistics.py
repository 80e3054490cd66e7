"""The counts of a running daemon as one snapshot, for users who want to know why work makes no progress, or which count is
unexpectedly large.

Each part of the daemon has its own counts; this module only collects them.
"""

import os
from collections.abc import Iterator

from wharfinger.cluster.releases.options import EngineStatistics
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.hooks.watching.jq_pool import JqPool, JqStatistics
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.settings.cel_pool import CelPool, CelStatistics
from wharfinger.packages.store.disk_store import DiskStore
from wharfinger.packages.store.store import Store
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.pools.memory.footprint import footprint, footprints_below, peak_memory
from wharfinger.queue.dump import QueuesStatistics
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.daemon_details import (
    MemoryPartSnapshot,
    MemorySnapshot,
    MonitorCounts,
    ObjectCounts,
    PoolSnapshot,
    SchedulesSnapshot,
    SlotsSnapshot,
    StatisticsSnapshot,
    StoreSnapshot,
    TaskCounts,
)
from wharfinger.runtime.inspection.package_logs import PackageLogs
from wharfinger.runtime.recording.recorder import Recorder


def statistics(runtime: Runtime) -> StatisticsSnapshot:
    """Return all counts at this moment."""
    tools = runtime.tools
    schedules = tools.hook_services.schedules()
    return StatisticsSnapshot(
        tasks=_tasks(runtime.queues.statistics()),
        slots=slots_of(tools.slots),
        trying_crds=tools.crd_phase.trying(),
        schedules=SchedulesSnapshot(schedules.crontabs, schedules.ticks, schedules.next_due),
        monitors=_monitors(runtime),
        # The protocols of these parts do not require counts, so an implementation may have none.
        filters=_pool(tools.filters.statistics()) if isinstance(tools.filters, JqPool) else None,
        rules=_pool(tools.rules.statistics()) if isinstance(tools.rules, CelPool) else None,
        store=_store(tools.store),
        objects=_objects(tools.releases.statistics()),
        warm=_warm(tools.warm) if tools.warm is not None else None,
        charts=_charts(tools.engine) if tools.engine is not None else None,
        renderer="helm template" if tools.engine is None else f"chart engine, helm {tools.engine.versions.helm}",
    )


def memory_of_processes() -> MemorySnapshot:
    """Return the memory of this process and, by program, of its descendants. The ``parts`` of this process are not measured.
    Blocks for milliseconds.
    """
    own = footprint(os.getpid())
    programs = [
        MemoryPartSnapshot(name, len(sizes), sum(size.total for size in sizes))
        for name, sizes in footprints_below(os.getpid()).items()
    ]
    return MemorySnapshot(
        own_bytes=own.total if own is not None else 0,
        peak_bytes=peak_memory(),
        programs=tuple(sorted(programs, key=lambda each: (-(each.bytes or 0), each.part))),
    )


def memory_parts(
    runtime: Runtime | None, metrics: HookMetrics, logs: PackageLogs | None, recorder: Recorder | None
) -> tuple[MemoryPartSnapshot, ...]:
    """Return each kind of data that is kept in memory, with the number of its items and, if known, its size."""
    series, found = metrics.statistics(), [] if runtime is None else list(_runtime_parts(runtime))
    found.append(MemoryPartSnapshot("metrics of hooks", series.series, series.bytes))
    if logs is not None:
        found.append(MemoryPartSnapshot("log lines of packages", *logs.size()))
    if recorder is not None:
        found.append(MemoryPartSnapshot("recorded events", recorder.rings.count()))
    return tuple(found)


def _runtime_parts(runtime: Runtime) -> Iterator[MemoryPartSnapshot]:
    tools = runtime.tools
    engine, renderer = tools.releases.statistics(), tools.renderer
    yield MemoryPartSnapshot("packages", len(runtime.instances))
    yield MemoryPartSnapshot("wanted objects of releases", engine.reconciler.rows)
    yield MemoryPartSnapshot("watched objects of releases", sum(engine.live.objects.values()))
    yield MemoryPartSnapshot("revisions of releases", engine.cached_records, engine.cached_record_bytes)
    yield MemoryPartSnapshot("snapshots of hooks", _monitors(runtime).objects)
    if isinstance(renderer, CachingRenderer):
        renders = renderer.statistics()
        yield MemoryPartSnapshot("renders", renders.entries, renders.bytes)


def _charts(engine: ChartEngine) -> PoolSnapshot:
    counts = engine.statistics
    return PoolSnapshot(counts.workers, counts.requests, counts.replaced)


def _warm(starts: WarmStarts) -> PoolSnapshot:
    pools = starts.pools()
    return PoolSnapshot(
        workers=sum(pool.snapshot().members for pool in pools),
        requests=starts.warm,
        replaced=sum(pool.restarts for pool in pools),
    )


def _objects(found: EngineStatistics) -> ObjectCounts:
    """Return the counts of objects.

    Only the beginning of the health message is included. The rest names failing objects and may contain secrets; it is shown
    with the package of the objects, where the package's secrets are masked.
    """
    keys, prunes = found.reconciler.keys, found.reconciler.prunes
    return ObjectCounts(
        health=found.apply_health.partition(":")[0],
        objects=found.reconciler.rows,
        pending=keys.pending,
        refreshing=keys.refreshing,
        failing=keys.failing,
        slow=keys.slow,
        pruned=found.pruned,
        prune_errors=prunes.errors,
    )


def _tasks(counts: QueuesStatistics) -> TaskCounts:
    return TaskCounts(
        queues=counts.queues,
        tasks=counts.tasks,
        running=counts.running,
        backing_off=counts.backing_off,
        parked=counts.parked,
        retired=counts.retired,
        dropped=counts.dropped,
        failures=counts.failures,
        bugs=counts.bugs,
    )


def slots_of(counted: Slots) -> tuple[SlotsSnapshot, ...]:
    """Return the limit, the number of used slots and the number of waiting requests: first for all kinds of work except ``api``
    together, then for each kind.
    """
    slots = counted.statistics()
    kinds = tuple(SlotsSnapshot(kind.value, one.limit, one.used, one.waiting) for kind, one in slots.kinds.items())
    waiting = sum(one.waiting for one in kinds if one.kind != Kind.API)
    return SlotsSnapshot("work", slots.work_limit, slots.work_used, waiting), *kinds


def _monitors(runtime: Runtime) -> MonitorCounts:
    """Return the counts of monitors, objects and events, summed over all packages whose hooks are started."""
    started = (instance.hooks.started for instance in runtime.instances.values() if instance.hooks.started is not None)
    found = [monitor.statistics() for hooks in started for monitor in hooks.monitors()]
    return MonitorCounts(
        monitors=len(found),
        listed=sum(one.listed for one in found),
        objects=sum(one.objects for one in found),
        watches=sum(one.watches for one in found),
        waiting=sum(one.inbox + one.gathered for one in found),
        events=sum(one.added + one.modified + one.deleted for one in found),
        dropped=sum(one.dropped for one in found),
    )


def _pool(counts: JqStatistics | CelStatistics) -> PoolSnapshot:
    return PoolSnapshot(counts.workers, counts.requests, counts.replaced)


def _store(store: Store) -> StoreSnapshot | None:
    if not isinstance(store, DiskStore):
        return None
    counts = store.statistics()
    return StoreSnapshot(counts["locked"], counts["temporary"], counts["pinned"])
