"""The counters of a daemon as text, in small tables.

Pure. The first table has the current state and the totals since the start, the second the limits on work, the third the workers,
if there are any.
"""

from collections.abc import Iterator

from wharfinger.formats.listing import counted
from wharfinger.formats.text_table import layout
from wharfinger.kube.times import format_exact_time
from wharfinger.runtime.daemon_details import StatisticsSnapshot, StoreSnapshot


def statistics_lines(statistics: StatisticsSnapshot) -> list[str]:
    """Return the lines of all tables, with an empty line between tables."""
    limits = [(each.kind, str(each.limit), str(each.used), str(each.waiting)) for each in statistics.slots]
    pools = (
        ("jq", statistics.filters),
        ("rules", statistics.rules),
        ("charts", statistics.charts),
        ("python hooks", statistics.warm),
    )
    workers = [
        (name, str(pool.workers), str(pool.requests), str(pool.replaced)) for name, pool in pools if pool is not None
    ]
    return [
        *layout(("WHAT", "NOW", "SINCE THE START"), list(_rows(statistics)), None),
        "",
        *layout(("LIMIT", "SLOTS", "IN USE", "WAITING"), limits, None),
        *(["", *layout(("WORKERS", "ALIVE", "REQUESTS", "REPLACED"), workers, None)] if workers else []),
    ]


def _rows(statistics: StatisticsSnapshot) -> Iterator[tuple[str, str, str]]:
    tasks, monitors, schedules = statistics.tasks, statistics.monitors, statistics.schedules
    now = f"{tasks.running} running, {tasks.backing_off} backing off, {tasks.parked} parked"
    past = f"{tasks.retired} done, {tasks.dropped} dropped, {tasks.failures} failed, {tasks.bugs} bugs"
    yield "tasks", f"{tasks.tasks} in {tasks.queues} queues: {now}", past
    now = f"{monitors.watches} watches, {monitors.objects} objects, {monitors.waiting} changes waiting"
    past = f"{monitors.events} events, {monitors.dropped} changes dropped"
    yield "monitors", f"{monitors.monitors}, {monitors.listed} of them listed: {now}", past
    due = "" if schedules.next_due is None else f", next at {format_exact_time(schedules.next_due)}"
    yield (
        "schedules",
        f"{counted(schedules.crontabs, 'crontab')}{due}",
        counted(schedules.ticks, "tick"),
    )
    yield (
        "definitions",
        f"waiting for: {', '.join(statistics.trying_crds)}" if statistics.trying_crds else "none awaited",
        "",
    )
    if (objects := statistics.objects) is not None:
        now = f"{objects.pending} pending, {objects.refreshing} refreshing, {objects.failing} failing, {objects.slow} slow"
        past = f"{objects.pruned} pruned, {objects.prune_errors} prunes failed"
        yield "objects", f"{objects.health}: {now}", past
    if statistics.renderer:
        yield "charts", f"rendered by {statistics.renderer}", ""
    if statistics.store is not None:
        yield "store", _store(statistics.store), ""


def _store(store: StoreSnapshot) -> str:
    pinned = f"{store.pinned} packages not deployed yet"
    return f"{store.locked} locks held, {store.temporary} temporary files, {pinned}"
