"""The defaults of Pods and of the pod templates of workloads (``pkg/apis/core/v1/defaults.go``, v1.36)."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.api.common.filling import fill, objects
from wharfinger.control_plane.api.core.pod_specs.amounts import container_amounts
from wharfinger.formats.json.value import JsonObject, JsonValue, find

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_IMAGE: Final = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_DIGESTS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_BARE_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")
_IMAGE_LENGTH: Final = 1000
_NAME_LENGTH: Final = 255
_FILE_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PAGES: Final = "hugepages-"
_POD_LEVEL: Final = ("cpu", "memory")


def default_pod(pod: JsonObject) -> None:
    """Fill in the defaults of a Pod, in place."""
    default_pod_template(pod)
    spec = pod["spec"]
    if not isinstance(spec, dict):
        return
    spec.setdefault("enableServiceLinks", True)
    for name in ("initContainers", "containers"):
        for container in objects(spec.get(name)):
            limits = find(container, "resources", "limits")
            resources = container.get("resources")
            if isinstance(limits, dict) and isinstance(resources, dict):
                requests = resources.get("requests")
                resources["requests"] = limits | (requests if isinstance(requests, dict) else {})
            for port in objects(container.get("ports")) if spec.get("hostNetwork") is True else ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort")
    _default_pod_resources(spec)
    if isinstance(seconds := spec.get("terminationGracePeriodSeconds"), int) and seconds < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _default_addresses(pod.get("status"))


def _default_pod_resources(spec: JsonObject) -> None:
    """Set the missing resources of the pod as a whole, from its limits and the resources of its containers (KEP-2837)."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return
    limits, requests = _map(resources.get("limits")), _map(resources.get("requests"))
    if limits or requests:
        most = container_amounts(spec, "limits")
        pages = {name: most.text(name) for name in most.numbers if name.startswith(_PAGES)}
        limits |= {name: text for name, text in pages.items() if name not in limits and name not in requests}
        if limits:
            resources["limits"] = limits
    if limits:
        asked = container_amounts(spec, "requests")
        requests |= {name: asked.text(name) for name in asked.numbers if name in _POD_LEVEL and name not in requests}
        kept = [name for name in limits if name in _POD_LEVEL or name.startswith(_PAGES)]
        requests |= {name: limits[name] for name in kept if name not in requests}
        if requests:
            resources["requests"] = requests


def _default_addresses(status: JsonValue) -> None:
    """Set ``podIP`` to the first of ``podIPs`` or vice versa; if they differ, ``podIP`` takes precedence."""
    if not isinstance(status, dict):
        return
    address, first = status.get("podIP"), find(status, "podIPs", 0, "ip")
    if address and address != first:
        status["podIPs"] = [{"ip": address}]
    elif first and not address:
        status["podIP"] = first


def default_pod_template(template: JsonObject) -> None:
    """Fill in the defaults of ``template`` (an object with metadata and spec), in place."""
    template.setdefault("metadata", {})
    spec = template.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    fill(spec, restartPolicy="Always", terminationGracePeriodSeconds=30, dnsPolicy="ClusterFirst")
    fill(spec, securityContext={}, schedulerName="default-scheduler")
    for volume in objects(spec.get("volumes")):
        _default_volume(volume)
    for name in _CONTAINER_LISTS:
        for container in objects(spec.get(name)):
            _default_container(container)


def _default_container(container: JsonObject) -> None:
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    fill(container, imagePullPolicy=_pull_policy(container.get("image")), resources={})
    for port in objects(container.get("ports")):
        fill(port, protocol="TCP")
    for variable in objects(container.get("env")):
        _default_field_ref(variable.get("valueFrom"))
        key = find(variable, "valueFrom", "fileKeyRef")
        if isinstance(key, dict):
            key.setdefault("optional", False)
    for name in _PROBES:
        probe = container.get(name)
        if isinstance(probe, dict):
            _fill_counts(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _default_handler(probe)
    for name in ("postStart", "preStop"):
        handler = find(container, "lifecycle", name)
        if isinstance(handler, dict):
            _default_handler(handler)


def _default_handler(handler: JsonObject) -> None:
    request = handler.get("httpGet")
    if isinstance(request, dict):
        fill(request, path="/", scheme="HTTP")
    call = handler.get("grpc")
    if isinstance(call, dict):
        fill(call, service="")


def _default_volume(volume: JsonObject) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(name)
        if isinstance(source, dict):
            fill(source, defaultMode=_FILE_MODE)
    for item in objects(find(volume, "downwardAPI", "items")):
        _default_field_ref(item)
    for source in objects(find(volume, "projected", "sources")):
        token = source.get("serviceAccountToken")
        if isinstance(token, dict):
            fill(token, expirationSeconds=3600)
        for item in objects(find(source, "downwardAPI", "items")):
            _default_field_ref(item)
    for name, defaults in _VOLUME_DEFAULTS.items():
        source = volume.get(name)
        if isinstance(source, dict):
            fill(source, **defaults)
    image = volume.get("image")
    if isinstance(image, dict):
        fill(image, pullPolicy=_pull_policy(image.get("reference")))
    claim = find(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if isinstance(claim, dict):
        fill(claim, volumeMode="Filesystem")


_VOLUME_DEFAULTS: Final[Mapping[str, JsonObject]] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""The defaults of volume sources that depend on no other field."""


def _default_field_ref(holder: JsonValue) -> None:
    reference = find(holder, "fieldRef")
    if isinstance(reference, dict):
        fill(reference, apiVersion="v1")


def _pull_policy(image: JsonValue) -> str:
    """Return ``Always`` for an image with the tag ``latest``, or with neither tag nor digest, else ``IfNotPresent``.

    A text that is not an image reference gives ``IfNotPresent``.
    """
    if not isinstance(image, str) or len(image) > _IMAGE_LENGTH or _BARE_IDENTIFIER.fullmatch(image):
        return "IfNotPresent"
    found = _IMAGE.fullmatch(image)
    if found is None or len(_path_of(found["name"])) > _NAME_LENGTH:
        return "IfNotPresent"
    if found["digest"]:
        algorithm, _, digits = found["digest"].partition(":")
        if _DIGESTS.get(algorithm) != len(digits) or digits != digits.lower():
            return "IfNotPresent"
    return "Always" if (found["tag"] or ("" if found["digest"] else "latest")) == "latest" else "IfNotPresent"


def _path_of(name: str) -> str:
    """Return the path of an image in its registry.

    An image without a registry is in Docker Hub, where ``library/`` is added to a path without a slash.
    """
    first, slash, rest = name.partition("/")
    if slash and (first != first.lower() or first == "localhost" or not {".", ":"}.isdisjoint(first)):
        hub, path = first in {"docker.io", "index.docker.io"}, rest
    else:
        hub, path = True, name
    return f"library/{path}" if hub and "/" not in path else path


def _map(value: JsonValue) -> JsonObject:
    return dict(value) if isinstance(value, dict) else {}


def _fill_counts(obj: JsonObject, **values: JsonValue) -> None:
    """Set each of these fields to the given value if the field is missing or zero."""
    for name, value in values.items():
        if obj.get(name) in (None, 0):
            obj[name] = value


POD_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {("", "Pod"): default_pod}
