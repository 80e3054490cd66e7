"""The defaults of a Pod and of pod templates, which every workload carries (Kubernetes 1.36, after the recordings)."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.formats.json_value import JsonObject, JsonValue, find

_TAGGED: Final = re.compile(r":([\w][\w.-]{0,127})$")
_FILE_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def default_pod(pod: JsonObject) -> None:
    """Fill in the defaults of a Pod, in place."""
    default_pod_template(pod)
    spec = pod["spec"]
    if not isinstance(spec, dict):
        return
    spec.setdefault("enableServiceLinks", True)
    for name in _CONTAINER_LISTS:
        for container in _objects(spec.get(name)):
            limits = find(container, "resources", "limits")
            resources = container.get("resources")
            if isinstance(limits, dict) and isinstance(resources, dict):
                requests = resources.get("requests")
                resources["requests"] = limits | (requests if isinstance(requests, dict) else {})


def default_pod_template(template: JsonObject) -> None:
    """Fill in the defaults of ``template`` (an object with metadata and spec), in place."""
    template.setdefault("metadata", {})
    spec = template.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    _fill(spec, restartPolicy="Always", terminationGracePeriodSeconds=30, dnsPolicy="ClusterFirst")
    _fill(spec, securityContext={}, schedulerName="default-scheduler")
    for volume in _objects(spec.get("volumes")):
        _default_volume(volume)
    for name in _CONTAINER_LISTS:
        for container in _objects(spec.get(name)):
            _default_container(container, on_host=spec.get("hostNetwork") is True)


def _default_container(container: JsonObject, *, on_host: bool) -> None:
    _fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    _fill(container, imagePullPolicy=_pull_policy(container.get("image")), resources={})
    for port in _objects(container.get("ports")):
        _fill(port, protocol="TCP")
        if on_host:
            _fill(port, hostPort=port.get("containerPort"))
    for variable in _objects(container.get("env")):
        _default_field_ref(variable.get("valueFrom"))
    for name in _PROBES:
        probe = container.get(name)
        if isinstance(probe, dict):
            _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _default_handler(probe)
    for name in ("postStart", "preStop"):
        handler = find(container, "lifecycle", name)
        if isinstance(handler, dict):
            _default_handler(handler)


def _default_handler(handler: JsonObject) -> None:
    request = handler.get("httpGet")
    if isinstance(request, dict):
        _fill(request, path="/", scheme="HTTP")
    call = handler.get("grpc")
    if isinstance(call, dict):
        _fill(call, service="")


def _default_volume(volume: JsonObject) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(name)
        if isinstance(source, dict):
            _fill(source, defaultMode=_FILE_MODE)
    for item in _objects(find(volume, "downwardAPI", "items")):
        _default_field_ref(item)
    for source in _objects(find(volume, "projected", "sources")):
        token = source.get("serviceAccountToken")
        if isinstance(token, dict):
            _fill(token, expirationSeconds=3600)
        for item in _objects(find(source, "downwardAPI", "items")):
            _default_field_ref(item)
    host_path = volume.get("hostPath")
    if isinstance(host_path, dict):
        _fill(host_path, type="")
    claim = find(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if isinstance(claim, dict):
        _fill(claim, volumeMode="Filesystem")


def _default_field_ref(holder: JsonValue) -> None:
    reference = find(holder, "fieldRef")
    if isinstance(reference, dict):
        _fill(reference, apiVersion="v1")


def _pull_policy(image: JsonValue) -> str:
    """``Always`` for an image without tag and digest or with the tag ``latest``, else ``IfNotPresent``."""
    if not isinstance(image, str) or "@" in image:
        return "IfNotPresent"
    tag = _TAGGED.search(image)
    return "Always" if tag is None or tag[1] == "latest" else "IfNotPresent"


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _fill(obj: JsonObject, **values: JsonValue) -> None:
    """Put in what is missing or an empty string."""
    for name, value in values.items():
        if obj.get(name) in (None, ""):
            obj[name] = value


POD_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {("", "Pod"): default_pod}
