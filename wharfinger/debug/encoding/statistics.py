"""The counters of a daemon as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shape; ``filters``, ``rules``, ``store``, ``objects``, ``warm``, ``charts`` and ``renderer`` may be missing::

    {queues: {queues, tasks, running, backing_off, parked, retired, dropped, failures, bugs},
     slots: {<kind>: {limit, used, waiting}}, trying_crds: [<package>], schedules: {crontabs, ticks, next_due?},
     monitors: {monitors, listed, objects, watches, waiting, events, dropped},
     filters: {workers, requests, replaced}, rules: {...}, warm: {...}, charts: {...}, renderer,
     store: {locked, temporary, pinned},
     objects: {health, objects, pending, refreshing, failing, slow, pruned, prune_errors}}
"""

from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.runtime.daemon_details import SlotsSnapshot, StatisticsSnapshot, TaskCounts


def statistics_to_json(statistics: StatisticsSnapshot) -> JsonObject:
    """Return the counters as JSON."""
    slots: JsonObject = {each.kind: record_to_json(each, without={"kind"}) for each in statistics.slots}
    rest = record_to_json(statistics, without={"tasks", "slots"})
    return {"queues": record_to_json(statistics.tasks), "slots": slots, **rest}


def statistics_from_json(value: JsonValue) -> StatisticsSnapshot:
    """Read the counters from JSON. Raises ShapeError."""
    slots = find_object(value, "slots").items()
    own: dict[str, object] = {
        "tasks": record_from_json(find_object(value, "queues"), TaskCounts, "queues"),
        "slots": tuple(record_from_json(each, SlotsSnapshot, "slots", {"kind": kind}) for kind, each in slots),
    }
    return record_from_json(value, StatisticsSnapshot, "statistics", own)
