"""The default values of fields, for the kinds of the core group except Pods and workloads."""

import base64
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.api.common.filling import fill, inner, objects
from wharfinger.formats.json.value import JsonObject, find

NAME_LABEL: Final = "kubernetes.io/metadata.name"
_AFFINITY_SECONDS: Final = 10_800


def _service(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if (
        spec["sessionAffinity"] == "ClientIP"
        and find(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") is None
    ):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    for port in objects(spec, "ports"):
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port") or 0
    external = spec["type"] in {"NodePort", "LoadBalancer"}
    if external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, externalTrafficPolicy="Cluster")
    if (external or spec["type"] == "ClusterIP") and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
        for point in objects(obj, "status", "loadBalancer", "ingress"):
            if point.get("ip") and point.get("ipMode") is None:
                point["ipMode"] = "VIP"


def _secret(obj: JsonObject) -> None:
    fill(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict):
        data = inner(obj, "data")
        for name, value in plain.items():
            data[name] = base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def default_claim(obj: JsonObject) -> None:
    """Set the defaults of a PersistentVolumeClaim, or of a claim template of a StatefulSet."""
    spec = inner(obj, "spec")
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


def _claim(obj: JsonObject) -> None:
    default_claim(obj)
    _pending(obj)


def _pending(obj: JsonObject) -> None:
    """Set an empty phase to ``Pending``, except in a new object (without a UID), which has no status yet."""
    if find(obj, "metadata", "uid"):
        fill(inner(obj, "status"), phase="Pending")


_SOURCES: Final[Mapping[str, JsonObject]] = {
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _volume(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, persistentVolumeReclaimPolicy="Retain")
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    for name, defaults in _SOURCES.items():
        source = spec.get(name)
        if isinstance(source, dict):
            fill(source, **defaults)
    _pending(obj)


def _node(obj: JsonObject) -> None:
    """Set the defaults of a Node; if ``podCIDR`` and ``podCIDRs`` differ, ``podCIDR`` takes precedence."""
    spec = inner(obj, "spec")
    single, several = spec.get("podCIDR"), spec.get("podCIDRs")
    first = several[0] if isinstance(several, list) and several else ""
    if single and single != first:
        spec["podCIDRs"] = [single]
    elif first:
        spec["podCIDR"] = first
    status = inner(obj, "status")
    capacity = status.get("capacity")
    if isinstance(capacity, dict) and not status.get("allocatable"):
        status["allocatable"] = dict(capacity)


def _limit_range(obj: JsonObject) -> None:
    for item in objects(obj, "spec", "limits"):
        if item.get("type") != "Container":
            continue
        most, default, request, least = (
            dict(found) if isinstance(found := item.get(name), dict) else {}
            for name in ("max", "default", "defaultRequest", "min")
        )
        default = {**default, **{name: value for name, value in most.items() if name not in default}}
        request = {**request, **{name: value for name, value in default.items() if name not in request}}
        request = {**request, **{name: value for name, value in least.items() if name not in request}}
        for name, found in (("default", default), ("defaultRequest", request)):
            if found:
                item[name] = found


def _namespace(obj: JsonObject) -> None:
    """Add the label with the namespace's name.

    If the name is generated, the label is added only when the object has a UID, so that no field manager owns the label.
    """
    metadata = inner(obj, "metadata")
    if metadata.get("name") and not (metadata.get("generateName") and not metadata.get("uid")):
        inner(metadata, "labels")[NAME_LABEL] = metadata["name"]


def _endpoints(obj: JsonObject) -> None:
    for subset in objects(obj, "subsets"):
        for port in objects(subset, "ports"):
            fill(port, protocol="TCP")


CORE_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    ("", "Endpoints"): _endpoints,
    ("", "LimitRange"): _limit_range,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
}
