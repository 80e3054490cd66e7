"""Kubernetes Events as snapshots: the Events about a package's resource, or all Events that daemons wrote.

They are read from the API server, which keeps an Event for a limited time (usually an hour). So Events of earlier daemons are
included. The Events about a package also include those that other programs wrote. At most about 2000 Events are read.
"""

from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.object_events import CLUSTER_NAMESPACE, event_time, list_events
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.kube.times import parse_time
from wharfinger.runtime.cluster_events.recorder import REPORTER
from wharfinger.runtime.package_details import ClusterEventSnapshot
from wharfinger.runtime.resources.identity import PackageId
from wharfinger.runtime.resources.resources import resource_key

_MICRO_TIMES: Final = (("firstTimestamp",), ("eventTime",), ("metadata", "creationTimestamp"))


async def package_events(client: ClusterClient, package: PackageId) -> tuple[ClusterEventSnapshot, ...]:
    """Return the Events about the resource of a package, oldest first. Raises ClusterError."""
    key = resource_key(package)
    terms = {"involvedObject.kind": key.resource.kind, "involvedObject.name": key.name}
    found = await list_events(client, key.namespace or CLUSTER_NAMESPACE, terms)
    return tuple(_snapshot(event) for event in found)


async def daemon_events(client: ClusterClient) -> tuple[ClusterEventSnapshot, ...]:
    """Return the Events that daemons have written in this cluster, oldest first. Raises ClusterError."""
    found = await list_events(client, "", {"reportingComponent": REPORTER})
    return tuple(_snapshot(event) for event in found)


def _snapshot(event: JsonObject) -> ClusterEventSnapshot:
    kind, namespace, name = (find_str(event, "involvedObject", member) for member in ("kind", "namespace", "name"))
    counts = (find_int(event, "series", "count"), find_int(event, "count"), 1)
    first = (parse_time(find_str(event, *path)) for path in _MICRO_TIMES)
    return ClusterEventSnapshot(
        type=find_str(event, "type"),
        reason=find_str(event, "reason"),
        subject=f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}",
        message=" ".join(find_str(event, "message").split()),
        count=next(count for count in counts if count),
        first=next((moment for moment in first if moment is not None), None),
        last=event_time(event),
        by=find_str(event, "reportingComponent") or find_str(event, "source", "component"),
    )
