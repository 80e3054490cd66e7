"""The daemon's own metrics in Prometheus' format: the counts of `wharfinger statistics`, and the packages.

Each part of the daemon has its own counts; this module only reads all of them at one moment, and formats them. The table
`DAEMON_METRICS` describes the families, and docs/metrics.md has the same list. A binding's numbers are summed over all its
watches. The number of series that depend on installed packages is limited: series beyond MAX_ROWS are summed in one series, so
that totals remain correct.
"""

import resource
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wharfinger.formats.exposition import Description, MetricKind, family_lines, plain_text
from wharfinger.hooks.metrics.run_metrics import LABELS as BINDING
from wharfinger.hooks.metrics.run_metrics import OTHERS, package_labels
from wharfinger.hooks.watching.monitor import Monitor
from wharfinger.pools.pods.pod_pools import PodPools
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.daemon_details import DaemonSnapshot, StatisticsSnapshot, TaskCounts
from wharfinger.runtime.inspection.pod_metrics import POD_METRICS, pod_families
from wharfinger.runtime.inspection.recorder_metrics import RECORDER_METRICS
from wharfinger.runtime.inspection.release_metrics import RELEASE_METRICS, release_families
from wharfinger.runtime.inspection.statistics import statistics
from wharfinger.runtime.inspection.warm_metrics import WARM_METRICS, warm_families
from wharfinger.runtime.inspection.watch_metrics import WATCH_METRICS
from wharfinger.runtime.scheduler.engine_metrics import SCHEDULER_METRICS, scheduler_families
from wharfinger.runtime.status.summary import summarize

WATCH: Final = ("kind", "namespace", "label_selector", "field_selector")
MAX_ROWS: Final = 10_000
"""The limit on the number of series of one family."""

Row = tuple[Sequence[str], float]


class _Family(NamedTuple):
    described: Description
    rows: Sequence[Row]


def _gauge(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_{name}", MetricKind.GAUGE, what, labels)


def _counter(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_{name}", MetricKind.COUNTER, what, labels)


BUILD: Final = _gauge("build_info", "Always 1. The label version contains the version of the daemon.", "version")
STARTED: Final = _gauge("start_time_seconds", "Time at which the daemon started, in seconds since 1970.")
READY: Final = _gauge("ready", "1 while the daemon is ready, otherwise 0.")
LEADS: Final = _gauge("leads", "1 while the daemon holds the Lease that only the daemon at work holds, otherwise 0.")
CPU: Final = _counter(
    "process_cpu_seconds_total", "Processor time that the daemon has used, without its child processes, in seconds."
)
MEMORY: Final = _gauge(
    "process_resident_memory_bytes", "Resident memory of the daemon, without its child processes, in bytes."
)
FILES: Final = _gauge("process_open_fds", "Number of files and sockets that the daemon has open.")
PACKAGES: Final = _gauge("packages", "Number of packages, by the kind and the state of each package.", "kind", "state")
INFO: Final = _gauge(
    "package_info",
    "Always 1. Each package has one series, whose labels contain the wanted version and the state of the package.",
    *("module", "namespace", "kind", "package", "version", "state"),
)
LENGTH: Final = _gauge(
    "tasks_queue_length", "Number of tasks in the queue of a package. Empty queues have no series.", "queue"
)
TASKS: Final = _gauge(
    "tasks",
    "Number of tasks, by state: running, backing_off (waiting for a retry), parked, or waiting (behind another task).",
    "state",
)
RETIRED: Final = _counter("tasks_retired_total", "Number of tasks that succeeded.")
DROPPED: Final = _counter(
    "tasks_dropped_total",
    "Number of tasks that were dropped, for example because their package was removed, or because the same work was waiting "
    "already.",
)
FAILURES: Final = _counter("task_failures_total", "Number of failed task runs.")
BUGS: Final = _counter("task_bugs_total", "Number of task runs that failed because of a bug in the daemon.")
LIMIT: Final = _gauge(
    "slots_limit",
    "Number of all slots, by the kind of work: downloads, renders, hooks, loads, work (these four together), or api "
    "(requests to the API server).",
    "kind",
)
USED: Final = _gauge("slots_used", "Number of slots in use, by the kind of work.", "kind")
WAITING: Final = _gauge("slots_waiting", "Number of requests for a slot that wait, by the kind of work.", "kind")
CRONTABS: Final = _gauge("schedule_crontabs", "Number of distinct crontabs in the configurations of hooks.")
TICKS: Final = _counter("schedule_ticks_total", "Number of times that a crontab was due.")
OBJECTS: Final = _gauge(
    "kube_snapshot_objects",
    "Number of objects in the snapshot of a binding, over all watches of the binding.",
    *BINDING,
)
EVENTS: Final = _counter(
    "kube_events_total", "Number of events of a binding since the hooks of the package were started.", *BINDING
)
LOST: Final = _counter(
    "kube_events_dropped_total",
    "Number of changes of watched objects that were dropped, because the filter of the binding failed.",
    *BINDING,
)
SUBSCRIBERS: Final = _gauge("kube_watch_subscribers", "Number of kubernetes bindings that share a watch.", *WATCH)
WATCH_ERRORS: Final = _counter("kube_watch_errors_total", "Number of failed list requests and watch requests.", *WATCH)
WORKERS: Final = _gauge(
    "pool_workers",
    "Number of live worker processes of a pool: jq (for jq filters), cel (for CEL rules) or charts (for renders).",
    "pool",
)
REQUESTS: Final = _counter("pool_requests_total", "Number of requests to the worker processes of a pool.", "pool")
REPLACED: Final = _counter(
    "pool_replaced_total", "Number of worker processes of a pool that hung or died, and were replaced.", "pool"
)
STORE: Final = _gauge(
    "store_entries",
    "Number of entries in the package store on disk, by state: locked (digests that tasks use), temporary (files that are "
    "being written), or pinned (downloads that are not deployed yet).",
    "state",
)

DAEMON_METRICS: Final = (
    *(BUILD, STARTED, READY, LEADS, CPU, MEMORY, FILES),
    *(PACKAGES, INFO, LENGTH, TASKS, RETIRED, DROPPED, FAILURES, BUGS),
    *(LIMIT, USED, WAITING, CRONTABS, TICKS, OBJECTS, EVENTS, LOST, SUBSCRIBERS, WATCH_ERRORS),
    *(WORKERS, REQUESTS, REPLACED, STORE),
    *RELEASE_METRICS,
    *SCHEDULER_METRICS,
    *WARM_METRICS,
    *POD_METRICS,
    *RECORDER_METRICS,
    *WATCH_METRICS,
)


def daemon_lines(
    daemon: DaemonSnapshot,
    runtime: Runtime | None,
    pods: PodPools | None = None,
    recorded: Iterable[tuple[Description, Sequence[Row]]] = (),
) -> Iterator[str]:
    """Yield all present metrics as text. Before the runtime has started, these are only the metrics of the process and of
    ``pods``, and the families ``recorded``.

    All numbers are read before the first line is yielded, so the caller may pause between two lines.
    """
    families = [*_process(daemon)]
    if runtime is not None:
        families += [*_packages(runtime), *_counted(statistics(runtime)), *_bindings(runtime), *_watches(runtime)]
        families += [_Family(described, rows) for described, rows in release_families(runtime.tools)]
        families += [_Family(described, rows) for described, rows in scheduler_families(runtime.scheduler.counts())]
        warm, programs = runtime.tools.warm, runtime.tools.persistent
        if warm is not None and programs is not None:
            families += [_Family(described, rows) for described, rows in warm_families(warm, programs)]
    if pods is not None:
        families += [_Family(described, rows) for described, rows in pod_families(pods)]
    families += [_Family(described, rows) for described, rows in recorded]
    for family in families:
        yield from family_lines(family.described, family.rows)


def summed(rows: Iterable[Row], others: Sequence[str], most: int = MAX_ROWS) -> list[Row]:
    """Sum the series with equal labels; series beyond ``most`` are summed in one series with the labels ``others``."""
    sums: dict[Sequence[str], float] = {}
    for labels, number in rows:
        own = tuple(map(plain_text, labels))
        key = own if own in sums or len(sums) < most else others
        sums[key] = sums.get(key, 0) + number
    return list(sums.items())


def _process(daemon: DaemonSnapshot) -> Iterator[_Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    yield _Family(BUILD, [((daemon.version,), 1)])
    yield _one(STARTED, daemon.started.timestamp())
    yield _one(READY, int(daemon.ready))
    yield _one(LEADS, int(daemon.leader.leads))
    yield _one(CPU, used.ru_utime + used.ru_stime)
    yield _one(MEMORY, pages * resource.getpagesize())
    yield _one(FILES, sum(1 for _ in Path("/proc/self/fd").iterdir()))


def _packages(runtime: Runtime) -> Iterator[_Family]:
    found = [
        (instance, summarize(instance.status)[0], package_labels(instance.id.name))
        for instance in runtime.instances.values()
    ]
    yield _Family(PACKAGES, summed((((each.id.kind, state), 1) for each, state, _ in found), ("", OTHERS)))
    info = (
        ((*name, each.id.kind, each.desired.package, each.desired.version, state), 1) for each, state, name in found
    )
    yield _Family(INFO, summed(info, (OTHERS, "", "", "", "", "")))
    queues = ((name, len(runtime.queues.dump_one(name).tasks)) for name in runtime.queues.names())
    yield _Family(LENGTH, summed((((name,), length) for name, length in queues), (OTHERS,)))


def _counted(found: StatisticsSnapshot) -> Iterator[_Family]:
    yield from _tasks(found.tasks)
    yield _Family(LIMIT, [((each.kind,), each.limit) for each in found.slots])
    yield _Family(USED, [((each.kind,), each.used) for each in found.slots])
    yield _Family(WAITING, [((each.kind,), each.waiting) for each in found.slots])
    yield _one(CRONTABS, found.schedules.crontabs)
    yield _one(TICKS, found.schedules.ticks)
    named = (("jq", found.filters), ("cel", found.rules), ("charts", found.charts))
    pools = [((name,), pool) for name, pool in named if pool is not None]
    yield _Family(WORKERS, [(name, pool.workers) for name, pool in pools])
    yield _Family(REQUESTS, [(name, pool.requests) for name, pool in pools])
    yield _Family(REPLACED, [(name, pool.replaced) for name, pool in pools])
    if found.store is not None:
        states = {"locked": found.store.locked, "temporary": found.store.temporary, "pinned": found.store.pinned}
        yield _Family(STORE, [((state,), number) for state, number in states.items()])


def _tasks(tasks: TaskCounts) -> Iterator[_Family]:
    heads = {"running": tasks.running, "backing_off": tasks.backing_off, "parked": tasks.parked}
    states = {**heads, "waiting": tasks.tasks - sum(heads.values())}
    yield _Family(TASKS, [((state,), number) for state, number in states.items()])
    yield _one(RETIRED, tasks.retired)
    yield _one(DROPPED, tasks.dropped)
    yield _one(FAILURES, tasks.failures)
    yield _one(BUGS, tasks.bugs)


def _bindings(runtime: Runtime) -> Iterator[_Family]:
    started = [(name, each.hooks.started) for name, each in runtime.instances.items() if each.hooks.started is not None]
    monitors = [(_binding(name, one), one.statistics()) for name, hooks in started for one in hooks.monitors()]
    others = ("", "", OTHERS, "", "")
    yield _Family(OBJECTS, summed(((labels, one.objects) for labels, one in monitors), others))
    told = ((labels, one.added + one.modified + one.deleted) for labels, one in monitors)
    yield _Family(EVENTS, summed(told, others))
    yield _Family(LOST, summed(((labels, one.dropped) for labels, one in monitors), others))


def _watches(runtime: Runtime) -> Iterator[_Family]:
    found = [
        ((str(one.resource.group_kind), one.namespace, one.label_selector, one.field_selector), one)
        for one in runtime.tools.hook_services.watches()
    ]
    others = (OTHERS, "", "", "")
    yield _Family(SUBSCRIBERS, summed(((labels, one.subscribers) for labels, one in found), others))
    yield _Family(WATCH_ERRORS, summed(((labels, one.failures) for labels, one in found), others))


def _binding(package: str, monitor: Monitor) -> tuple[str, ...]:
    return (*package_labels(package), monitor.hook, monitor.binding.name, monitor.binding.queue)


def _one(described: Description, number: float) -> _Family:
    return _Family(described, [((), number)])
