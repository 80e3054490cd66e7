"""Defaults of the core group, beside Pods and workloads."""

import base64
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.cluster.control_plane.defaults.filling import fill, inner, objects
from wharfinger.formats.json_value import JsonObject

NAME_LABEL: Final = "kubernetes.io/metadata.name"


def _service(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        fill(inner(inner(spec, "sessionAffinityConfig"), "clientIP"), timeoutSeconds=10800)
    for port in objects(spec, "ports"):
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port")
    external = spec["type"] in {"NodePort", "LoadBalancer"}
    if external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, externalTrafficPolicy="Cluster")
    if external or spec["type"] == "ClusterIP":
        fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)


def _secret(obj: JsonObject) -> None:
    fill(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict):
        data = inner(obj, "data")
        for name, value in plain.items():
            data[name] = base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def default_claim(obj: JsonObject) -> None:
    """Of a PersistentVolumeClaim, and of the templates of a StatefulSet."""
    fill(inner(obj, "spec"), volumeMode="Filesystem")


def _volume(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        fill(inner(spec, "hostPath"), type="")


def _namespace(obj: JsonObject) -> None:
    metadata = inner(obj, "metadata")
    if metadata.get("name"):
        inner(metadata, "labels")[NAME_LABEL] = metadata["name"]


def _endpoints(obj: JsonObject) -> None:
    for subset in objects(obj, "subsets"):
        for port in objects(subset, "ports"):
            fill(port, protocol="TCP")


CORE_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    ("", "Endpoints"): _endpoints,
    ("", "Namespace"): _namespace,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): default_claim,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
}
