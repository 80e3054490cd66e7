"""The details of a package as JSON, and back: its objects, Events, log, hook snapshots, and what the next apply would change; and
the trio tasks of the daemon.

Shapes; a key with ``?`` may be missing. Except in ``snapshots``, each item is a record
(:mod:`wharfinger.debug.encoding.records`)::

    resources: {resources: [{package, kind, api_version, namespace, name, health, message?, apply?, error?, drift?,
                labels?: [...]}]}
    events:    {events: [{type, reason, subject, message, count?, first?, last?, by?}]}
    log:       {package, lines: [{number, time, level, message, hook?}], dropped?, run?}
    diff:      {package, changes?: [{object, change, by, fields?: [{pointer, before?, after?}], note?}], unchanged?,
                notes?: [...], problem?}
    snapshots: {<hook>: {<binding>: [{object?, filterResult?}]}}
    tasks:     {tasks: [{name, depth, package?, cause?, at?}]}
"""

from collections.abc import Iterable

from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_list
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    HookSnapshotsSnapshot,
    ResourceSnapshot,
)


def resources_to_json(resources: Iterable[ResourceSnapshot]) -> JsonObject:
    """Return objects of packages as JSON."""
    return {"resources": [record_to_json(each) for each in resources]}


def resources_from_json(value: JsonValue) -> tuple[ResourceSnapshot, ...]:
    """Read objects of packages. Raises ShapeError."""
    return tuple(record_from_json(item, ResourceSnapshot, "resources") for item in find_list(value, "resources"))


def events_to_json(events: Iterable[ClusterEventSnapshot]) -> JsonObject:
    """Return Events as JSON."""
    return {"events": [record_to_json(each) for each in events]}


def events_from_json(value: JsonValue) -> tuple[ClusterEventSnapshot, ...]:
    """Read Events. Raises ShapeError."""
    return tuple(record_from_json(item, ClusterEventSnapshot, "events") for item in find_list(value, "events"))


def snapshots_to_json(snapshots: Iterable[HookSnapshotsSnapshot]) -> JsonObject:
    """Return the snapshots of hooks as JSON, by hook."""
    return {each.hook: each.bindings for each in snapshots}


def snapshots_from_json(value: JsonValue) -> tuple[HookSnapshotsSnapshot, ...]:
    """Read the snapshots of hooks, sorted by hook. Raises ShapeError."""
    found = as_object(value, "snapshots")
    return tuple(HookSnapshotsSnapshot(hook, as_object(found[hook], hook)) for hook in sorted(found))


def tasks_to_json(tasks: Iterable[DaemonTaskSnapshot]) -> JsonObject:
    """Return the tasks of a daemon as JSON."""
    return {"tasks": [record_to_json(each) for each in tasks]}


def tasks_from_json(value: JsonValue) -> tuple[DaemonTaskSnapshot, ...]:
    """Read the tasks of a daemon. Raises ShapeError."""
    return tuple(record_from_json(item, DaemonTaskSnapshot, "tasks") for item in find_list(value, "tasks"))
