"""Table cells of core kinds: services and their endpoints, nodes, volumes, quotas, events."""

from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.common.cells import (
    NONE,
    UNSET,
    balanced,
    condition,
    deleted,
    integer,
    said,
    strings,
    with_more,
)
from wharfinger.control_plane.api.common.filling import objects
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import age

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NODE_ROLE: Final = "node-role.kubernetes.io/"


def service_address(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the first cluster address of a Service."""
    addresses = strings(find(obj, "spec", "clusterIPs"))
    return addresses[0] if addresses else NONE


def service_ports(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the ports of a Service: ``80/TCP,443:30443/TCP``."""
    shown = []
    for port in objects(obj, "spec", "ports"):
        node = integer(port, "nodePort")
        shown.append(f"{integer(port, 'port')}{f':{node}' if node else ''}/{said(port, 'protocol')}")
    return ",".join(shown) or NONE


def service_external(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the external addresses of a Service; for an ExternalName service, the external name."""
    ips = strings(find(obj, "spec", "externalIPs"))
    match said(obj, "spec", "type"):
        case "ExternalName":
            return said(obj, "spec", "externalName")
        case "LoadBalancer":
            return ",".join(part for part in (balanced(obj), *ips) if part) or "<pending>"
        case "ClusterIP" | "NodePort":
            return ",".join(ips) or NONE
        case _:
            return "<unknown>"


def endpoint_addresses(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the first addresses of Endpoints: ``10.0.0.1:80,10.0.0.2:80 + 3 more...``."""
    shown = []
    for subset in objects(obj, "subsets"):
        addresses = [said(item, "ip") for item in objects(subset, "addresses")]
        ports = objects(subset, "ports")
        if not ports:
            shown += addresses
        for port in ports:
            shown += [
                f"[{ip}]:{integer(port, 'port')}" if ":" in ip else f"{ip}:{integer(port, 'port')}" for ip in addresses
            ]
    return with_more(shown) if objects(obj, "subsets") else NONE


def slice_ports(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the ports of an EndpointSlice: ``80,443``; a port without a number is shown by its name, or as ``*`` if
    it has no name either."""
    shown = (said(port, "port") or (said(port, "name") if "name" in port else "*") for port in objects(obj, "ports"))
    return with_more(shown) or UNSET


def slice_endpoints(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the addresses of all endpoints of an EndpointSlice."""
    shown = (address for item in objects(obj, "endpoints") for address in strings(item.get("addresses")))
    return with_more(shown) or UNSET


def node_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the state of a Node: ``Ready``, ``NotReady`` or ``Unknown``, and whether scheduling is disabled."""
    ready = condition(obj, "Ready")
    shown = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{shown},SchedulingDisabled" if find(obj, "spec", "unschedulable") is True else shown


def node_roles(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the roles of a Node: the names of its labels after ``node-role.kubernetes.io/``."""
    labels = part(obj, "metadata", "labels") or {}
    roles = {key.removeprefix(_NODE_ROLE) for key in labels if key.startswith(_NODE_ROLE)}
    roles.add(said(labels, "kubernetes.io/role"))
    return ",".join(sorted(roles - {""})) or NONE


def node_address(type_: str, obj: JsonObject) -> str:
    """Return the first address of this type that a Node has."""
    found = (said(item, "address") for item in objects(obj, "status", "addresses") if item.get("type") == type_)
    return next(found, NONE)


def node_kernel(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return kernel and architecture of a Node: ``6.1.0 (amd64)``."""
    kernel = said(obj, "status", "nodeInfo", "kernelVersion", default="<unknown>")
    architecture = said(obj, "status", "nodeInfo", "architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


def volume_phase(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the phase of a volume or claim."""
    return "Terminating" if deleted(obj) else said(obj, "status", "phase")


def volume_class(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the storage class of a volume or claim, from the deprecated annotation or the field."""
    annotations = part(obj, "metadata", "annotations") or {}
    return said(annotations, _BETA_CLASS) if _BETA_CLASS in annotations else said(obj, "spec", "storageClassName")


def volume_claim(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the claim of a volume: ``namespace/claim``."""
    if find(obj, "spec", "claimRef") is None:
        return ""
    return f"{said(obj, 'spec', 'claimRef', 'namespace')}/{said(obj, 'spec', 'claimRef', 'name')}"


def claim_capacity(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the size of the volume to which a claim is bound, "" for an unbound claim."""
    return said(obj, "status", "capacity", "storage", default="0") if said(obj, "spec", "volumeName") else ""


def claim_modes(obj: JsonObject, modes: JsonValue) -> JsonValue:
    """Return ``modes`` if the claim is bound to a volume, else ""."""
    return modes if said(obj, "spec", "volumeName") else ""


def quota(limits: bool, obj: JsonObject) -> str:  # noqa: FBT001
    """Return use and limit of each resource of a quota: ``cpu: 0/2, pods: 1/5``.

    If ``limits`` is true, only the ``limits.*`` resources are shown; otherwise, only all others.
    """
    hard, used = (part(obj, "status", "hard") or {}), (part(obj, "status", "used") or {})
    names = [name for name in sorted(hard) if name.startswith("limits.") is limits]
    return ", ".join(f"{name}: {said(used, name, default='0')}/{said(hard, name)}" for name in names)


# Events, in the forms of core/v1 and of events.k8s.io/v1.


def event_first(obj: JsonObject, now: datetime) -> JsonValue:
    """Return the age of an Event's first occurrence."""
    return age(said(obj, "firstTimestamp") or said(obj, "deprecatedFirstTimestamp") or said(obj, "eventTime"), now)


def event_last(obj: JsonObject, now: datetime) -> JsonValue:
    """Return the age of an Event's last occurrence."""
    if find(obj, "series") is not None:
        return age(said(obj, "series", "lastObservedTime"), now)
    last = said(obj, "lastTimestamp") or said(obj, "deprecatedLastTimestamp")
    return age(last, now) if last else event_first(obj, now)


def event_count(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the number of an Event's occurrences."""
    if find(obj, "series") is not None:
        return integer(obj, "series", "count")
    return integer(obj, "count") or integer(obj, "deprecatedCount") or 1


def event_object(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the object that an Event is about: ``pod/web-1``."""
    about = part(obj, "involvedObject") or part(obj, "regarding") or {}
    kind, name = said(about, "kind").lower(), said(about, "name")
    return f"{kind}/{name}" if name else kind


def event_subobject(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the part of an object that an Event is about: ``spec.containers{web}``."""
    return said(obj, "involvedObject", "fieldPath") or said(obj, "regarding", "fieldPath")


def event_source(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the source of an Event: ``kubelet, node-1``."""
    source = part(obj, "source") or part(obj, "deprecatedSource") or {}
    component = said(source, "component") or said(obj, "reportingComponent") or said(obj, "reportingController")
    instance = said(source, "host") or said(obj, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def event_message(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the message of an Event."""
    return (said(obj, "message") or said(obj, "note")).strip()
