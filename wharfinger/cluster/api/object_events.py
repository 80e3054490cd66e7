"""The newest Event about an object, or about Pods made for it: ``FailedScheduling: 0/3 nodes are available``.

The reason why an object does not become ready is seldom in the object. The scheduler, a volume's provisioner or a kubelet
reports the reason in an Event; for a workload, in an Event about its Pods. An Event that was written by the newer API
(events.k8s.io) is listed by the older API too, with its time in other fields, so one list of ``v1`` Events contains all of them.

An Event about a Pod does not name the Pod's workload. So, for a workload, all warnings in its namespace are listed. A warning
counts if it is about the workload, or about an object whose name has the form that the workload's controller gives to Pods,
ReplicaSets or claims. If no warning counts, or if the object is no workload, the Events about the object itself are listed. The
caller sets the deadline.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.raw_object import RawObject
from wharfinger.cluster.api.watch_stream import MAX_LINE_BYTES
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find_str
from wharfinger.kube.names import GENERATED
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.times import parse_time

MAX_EVENTS: Final = 2_000
"""The number of Events after which reading stops, since a namespace may have many more."""
MAX_CHARS: Final = 300
CLUSTER_NAMESPACE: Final = "default"
"""The namespace of events about objects that have no namespace."""

_SAFE: Final = f"[{GENERATED}]"
_CHILDREN: Final = {
    "Deployment.apps": ("ReplicaSet", "Pod"),
    "ReplicaSet.apps": ("Pod",),
    "StatefulSet.apps": ("Pod", "PersistentVolumeClaim"),
    "DaemonSet.apps": ("Pod",),
    "Job.batch": ("Pod",),
    "ReplicationController": ("Pod",),
}
_NAMES: Final = {
    ("Deployment.apps", "ReplicaSet"): rf"%s-{_SAFE}{{6,10}}",
    ("Deployment.apps", "Pod"): rf"%s-{_SAFE}{{6,10}}-{_SAFE}{{5}}",
    ("StatefulSet.apps", "Pod"): r"%s-[0-9]+",
    ("StatefulSet.apps", "PersistentVolumeClaim"): r".+-%s-[0-9]+",
    ("Job.batch", "Pod"): rf"%s(-[0-9]+)?-{_SAFE}{{5}}",
}
_TIMES: Final = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("eventTime",),
    ("firstTimestamp",),
    ("metadata", "creationTimestamp"),
)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


async def last_event(client: ClusterClient, key: ObjectKey, uid: str = "") -> str:
    """Return the newest event as ``Reason: message``; "" if there is no event. Raises ClusterError.

    ``uid``: the UID of the object, so that events about an earlier object with the same name do not count.
    """
    events = await client.resource_type("v1", "Event")
    namespace = key.namespace or CLUSTER_NAMESPACE
    told: list[JsonObject] = []
    if key.resource.group_kind in _CHILDREN:
        async with client.raw_list(events, namespace, field_selector="type=Warning") as pages:
            seen = 0
            async for page in pages:
                seen += len(page.items)
                told += [event for event in _read(page.items) if _is_about(event, key, uid)]
                if seen >= MAX_EVENTS:
                    break
    if not told:
        terms = [f"involvedObject.kind={key.resource.kind}", f"involvedObject.name={key.name}"]
        terms += [f"involvedObject.uid={uid}"] if uid else []
        async with client.raw_list(events, namespace, field_selector=",".join(terms)) as pages:
            async for page in pages:
                told += _read(page.items)
                if len(told) >= MAX_EVENTS:
                    break
    return _text(max(told, key=_time)) if told else ""


async def list_events(client: ClusterClient, namespace: str, terms: Mapping[str, str]) -> tuple[JsonObject, ...]:
    """Return the Events whose fields have the values in ``terms``, oldest first, at most about MAX_EVENTS; the namespace ""
    stands for all namespaces.

    Events that cannot be read are left out. Raises ClusterError.
    """
    events = await client.resource_type("v1", "Event")
    found: list[JsonObject] = []
    selector = ",".join(f"{field}={value}" for field, value in terms.items())
    async with client.raw_list(events, namespace, field_selector=selector) as pages:
        async for page in pages:
            found += _read(page.items)
            if len(found) >= MAX_EVENTS:
                break
    return tuple(sorted(found, key=_time))


def event_time(event: JsonObject) -> datetime | None:
    """Return the time at which an Event happened last; None if the Event has no time."""
    moment = _time(event)
    return None if moment == _NEVER else moment


def _read(items: tuple[RawObject, ...]) -> Iterator[JsonObject]:
    """Decode the Events, and yield those that are valid."""
    for item in items:
        try:
            event = as_object(decode_json(item.text, max_bytes=MAX_LINE_BYTES, what="an event"), "an event")
            _time(event), _text(event), find_str(event, "involvedObject", "kind")
        except FormatError:
            continue
        yield event


def _is_about(event: JsonObject, key: ObjectKey, uid: str) -> bool:
    kind, name = (find_str(event, "involvedObject", member) for member in ("kind", "name"))
    if kind == key.resource.kind and name == key.name:
        return not uid or find_str(event, "involvedObject", "uid") == uid
    if kind not in _CHILDREN[key.resource.group_kind]:
        return False
    pattern = _NAMES.get((key.resource.group_kind, kind), rf"%s-{_SAFE}{{5}}")
    return re.fullmatch(pattern % re.escape(key.name), name) is not None


def _time(event: JsonObject) -> datetime:
    """Return the time at which the event happened last; the minimum time if the event has no time."""
    found = (parse_time(find_str(event, *path)) for path in _TIMES)
    return next((moment for moment in found if moment is not None), _NEVER)


def _text(event: JsonObject) -> str:
    reason, message = find_str(event, "reason"), " ".join(find_str(event, "message").split())
    text = ": ".join(part for part in (reason, message) if part)
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
