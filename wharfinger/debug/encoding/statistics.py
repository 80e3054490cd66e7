"""The counters of a daemon as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shape; ``filters``, ``rules``, ``store`` and ``objects`` may be missing::

    {queues: {queues, tasks, running, backing_off, parked, retired, dropped, failures, bugs},
     slots: {<kind>: {limit, used, waiting}}, trying_crds: [<package>], schedules: {crontabs, ticks, next_due?},
     monitors: {monitors, listed, objects, watches, waiting, events, dropped},
     filters: {workers, requests, replaced}, rules: {...}, store: {locked, temporary, pinned},
     objects: {health, objects, pending, refreshing, failing, slow, pruned, prune_errors}}
"""

from dataclasses import asdict
from typing import TypeVar

import msgspec

from wharfinger.debug.fields import find_texts, read_time, time_text
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find, find_int, find_object
from wharfinger.runtime.inspector import (
    MonitorCounts,
    ObjectCounts,
    PoolSnapshot,
    SchedulesSnapshot,
    SlotsSnapshot,
    StatisticsSnapshot,
    StoreSnapshot,
    TaskCounts,
)

_Counts = TypeVar("_Counts", TaskCounts, MonitorCounts, PoolSnapshot, StoreSnapshot, ObjectCounts)


def statistics_to_json(statistics: StatisticsSnapshot) -> JsonObject:
    """Return the counters as JSON."""
    due = statistics.schedules.next_due
    schedules: JsonObject = {"crontabs": statistics.schedules.crontabs, "ticks": statistics.schedules.ticks}
    if due is not None:
        schedules["next_due"] = time_text(due)
    result: JsonObject = {
        "queues": asdict(statistics.tasks),
        "slots": {
            each.kind: {"limit": each.limit, "used": each.used, "waiting": each.waiting} for each in statistics.slots
        },
        "trying_crds": list(statistics.trying_crds),
        "schedules": schedules,
        "monitors": asdict(statistics.monitors),
    }
    for key, counts in (
        ("filters", statistics.filters),
        ("rules", statistics.rules),
        ("store", statistics.store),
        ("objects", statistics.objects),
    ):
        if counts is not None:
            result[key] = asdict(counts)
    return result


def statistics_from_json(value: JsonValue) -> StatisticsSnapshot:
    """Read the counters from JSON. Raises ShapeError."""
    return StatisticsSnapshot(
        tasks=_counts(value, "queues", TaskCounts),
        slots=tuple(
            SlotsSnapshot(kind, find_int(each, "limit"), find_int(each, "used"), find_int(each, "waiting"))
            for kind, each in find_object(value, "slots").items()
        ),
        trying_crds=find_texts(value, "trying_crds"),
        schedules=_schedules(find_object(value, "schedules")),
        monitors=_counts(value, "monitors", MonitorCounts),
        filters=_counts(value, "filters", PoolSnapshot) if find(value, "filters") is not None else None,
        rules=_counts(value, "rules", PoolSnapshot) if find(value, "rules") is not None else None,
        store=_counts(value, "store", StoreSnapshot) if find(value, "store") is not None else None,
        objects=_counts(value, "objects", ObjectCounts) if find(value, "objects") is not None else None,
    )


def _schedules(value: JsonObject) -> SchedulesSnapshot:
    due = None if find(value, "next_due") is None else read_time(value, "next_due")
    return SchedulesSnapshot(find_int(value, "crontabs"), find_int(value, "ticks"), due)


def _counts(value: JsonValue, key: str, kind: type[_Counts]) -> _Counts:
    """Read the counters under ``key``: numbers and strings, all of which must be present. Raises ShapeError."""
    try:
        return msgspec.convert(find_object(value, key), kind)
    except msgspec.ValidationError as error:
        raise ShapeError(f"{key}: {error}") from error
