"""The metrics of releases: the table of wanted objects and its reconciler, drift, health, and cached renders."""

from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.cluster.releases.options import EngineStatistics
from wharfinger.formats.exposition import Description, MetricKind
from wharfinger.packages.rendering.render_cache import CacheStatistics, CachingRenderer
from wharfinger.runtime.package.instance import Tools

Rows = Sequence[tuple[Sequence[str], float]]


def _gauge(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_{name}", MetricKind.GAUGE, what, labels)


def _counter(name: str, what: str, *labels: str) -> Description:
    return Description(f"wharfinger_{name}", MetricKind.COUNTER, what, labels)


OBJECTS: Final = _gauge(
    "release_objects",
    "Number of objects of releases, by state: pending (not tried yet since the last change), refreshing (being applied "
    "again), failing (the last attempt failed), or done.",
    "state",
)
OPERATIONS: Final = _counter(
    "apply_operations_total",
    "Number of operations of the reconciler: apply (an object), delete (an object), or prune (all applied objects that their "
    "releases no longer contain).",
    "operation",
)
ERRORS: Final = _counter(
    "apply_errors_total", "Number of operations of the reconciler that failed, and will be retried.", "operation"
)
SECONDS: Final = _counter(
    "apply_seconds_total", "Total duration of the reconciler's operations, in seconds.", "operation"
)
HEALTHY: Final = _gauge("apply_healthy", "1 while all operations on objects and all prunes succeed, otherwise 0.")
PRUNED: Final = _counter(
    "pruned_objects_total",
    "Number of objects that were pruned (deleted because their release no longer contains them). Deletions by upgrades are not "
    "counted.",
)
SLOW: Final = _gauge(
    "apply_slow_operations",
    "Number of operations that hang now, plus the number of retries that are running for slow releases. A release is slow "
    "after one of its operations has hung, until an operation of it succeeds in time.",
)
DRIFTED: Final = _gauge("drifted_objects", "Number of objects that now differ from their applied state.")
FIGHTS: Final = _gauge("drift_fights", "Number of objects that another manager changes again after each correction.")
CORRECTIONS: Final = _counter(
    "drift_corrections_total",
    "Number of times that an object was applied again because another manager had changed it.",
)
SUSPICIONS: Final = _counter(
    "drift_suspicions_total",
    "Number of changes that looked like drift. Before such a change counts as drift, the daemon reads the object again from "
    "the API server.",
)
KINDS: Final = _gauge(
    "live_kinds", "Number of kinds whose objects the daemon watches, because a release contains such objects."
)
BLIND: Final = _gauge(
    "live_kinds_failing", "Number of kinds whose objects the daemon should watch, but cannot watch now."
)
RENDERS: Final = _counter(
    "renders_total",
    "Number of renders, by source of the result: memory or disk (cached), helm (rendered, then cached), or "
    "uncached (rendered, but not cached).",
    "source",
)

RELEASE_METRICS: Final = (
    *(OBJECTS, OPERATIONS, ERRORS, SECONDS, HEALTHY, PRUNED, SLOW),
    *(DRIFTED, FIGHTS, CORRECTIONS, SUSPICIONS, KINDS, BLIND, RENDERS),
)


def release_families(tools: Tools) -> Iterator[tuple[Description, Rows]]:
    """Yield all families with their present series."""
    yield from _engine(tools.releases.statistics())
    renderer = tools.renderer
    yield RENDERS, _renders(renderer.statistics()) if isinstance(renderer, CachingRenderer) else []


def _engine(found: EngineStatistics) -> Iterator[tuple[Description, Rows]]:
    reconciler, keys, drift, live = found.reconciler, found.reconciler.keys, found.drift, found.live
    states = {"pending": keys.pending, "refreshing": keys.refreshing, "failing": keys.failing}
    done = keys.rows - sum(states.values())
    yield OBJECTS, [((state,), number) for state, number in {**states, "done": max(0, done)}.items()]
    each = {"apply": reconciler.updates, "delete": reconciler.deletions, "prune": reconciler.prunes}
    yield OPERATIONS, [((name,), one.count) for name, one in each.items()]
    yield ERRORS, [((name,), one.errors) for name, one in each.items()]
    yield SECONDS, [((name,), one.seconds) for name, one in each.items()]
    yield HEALTHY, [((), 1 if found.apply_health.startswith("OK") else 0)]
    yield PRUNED, [((), found.pruned)]
    yield SLOW, [((), keys.slow)]
    yield DRIFTED, [((), drift.open)]
    yield FIGHTS, [((), drift.fights)]
    yield CORRECTIONS, [((), drift.corrections)]
    yield SUSPICIONS, [((), drift.suspicions)]
    yield KINDS, [((), len(live.objects))]
    yield BLIND, [((), len(live.failing))]


def _renders(found: CacheStatistics) -> Rows:
    sources = {"memory": found.hits, "disk": found.disk_hits, "helm": found.misses, "uncached": found.uncached}
    return [((source,), number) for source, number in sources.items()]
