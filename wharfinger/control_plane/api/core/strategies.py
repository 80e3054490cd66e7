"""The strategies of the kinds of the core group, except Pods and workloads."""

from typing import Final

from wharfinger.control_plane.api.core.defaults import NAME_LABEL
from wharfinger.control_plane.api.core.services.strategy import SERVICE_STRATEGY
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, texts
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import format_time

KUBERNETES: Final = "kubernetes"
"""The finalizer that every new namespace gets in its spec."""
_SNAPSHOTS: Final = "snapshot.storage.k8s.io"


def _namespace(obj: JsonObject, _view: ClusterView) -> JsonObject:
    finalizers: list[JsonValue] = [*texts(obj, "spec", "finalizers")]
    if KUBERNETES not in finalizers:
        finalizers.append(KUBERNETES)
    return _named({**obj, "spec": {**(part(obj, "spec") or {}), "finalizers": finalizers}})


def _named(obj: JsonObject) -> JsonObject:
    """Return the namespace with the label that holds its name."""
    metadata = part(obj, "metadata") or {}
    labels: JsonObject = {**(part(metadata, "labels") or {}), NAME_LABEL: metadata.get("name")}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _kept_namespace(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    """Keep the old spec: it contains only finalizers, which only the subresource ``finalize`` may change."""
    return {**_named(new), "spec": dict(part(old, "spec") or {})}


def _namespace_status(new: JsonObject, _old: JsonObject, _view: ClusterView) -> JsonObject:
    """Set the phase of a Namespace to ``Active`` if it has none."""
    status = part(new, "status") or {}
    return new if status.get("phase") else {**new, "status": {**status, "phase": "Active"}}


def _node(obj: JsonObject) -> JsonObject:
    """Drop the fields of dynamic kubelet configuration, which no longer exists."""
    spec, status = part(obj, "spec") or {}, part(obj, "status") or {}
    if "configSource" in spec:
        obj = {**obj, "spec": {name: value for name, value in spec.items() if name != "configSource"}}
    if "config" in status:
        obj = {**obj, "status": {name: value for name, value in status.items() if name != "config"}}
    return obj


def _node_status(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    return new if find(old, "status", "config") is not None else {**_node(new), "spec": new.get("spec")}


def _account(obj: JsonObject) -> JsonObject:
    """Return a ServiceAccount in which each entry of ``secrets`` has only its name."""
    secrets = obj.get("secrets")
    if not isinstance(secrets, list):
        return obj
    named: list[JsonValue] = [{"name": name} if (name := text(secret, "name")) else {} for secret in secrets]
    return {**obj, "secrets": named}


def _limit_range(obj: JsonObject) -> JsonObject:
    """Replace an empty list of limits by null, as it is stored upstream."""
    return obj if find(obj, "spec", "limits") != [] else {**obj, "spec": {"limits": None}}


def _named_limit_range(obj: JsonObject, view: ClusterView) -> JsonObject:
    """Generate the name of a LimitRange without a name."""
    if text(obj, "metadata", "name"):
        return _limit_range(obj)
    return _limit_range({**obj, "metadata": {**(part(obj, "metadata") or {}), "name": view.new_uid()}})


def _volume(obj: JsonObject, view: ClusterView) -> JsonObject:
    return {**obj, "status": {"phase": "Pending", "lastPhaseTransitionTime": format_time(view.now())}}


def _volume_status(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
    """Set the time of the last phase change, unless the client sets it."""
    status = part(new, "status") or {}
    given, before = status.get("lastPhaseTransitionTime"), find(old, "status", "lastPhaseTransitionTime")
    if find(old, "status", "phase") == status.get("phase"):
        changed = before if given is None else given
    else:
        changed = format_time(view.now()) if given in (None, before) else given
    return new if changed is None else {**new, "status": {**status, "lastPhaseTransitionTime": changed}}


def with_data_sources(claim: JsonObject) -> JsonObject:
    """Copy ``dataSource`` to ``dataSourceRef`` or vice versa, if only one of the two fields is set."""
    spec = part(claim, "spec") or {}
    source, reference = part(spec, "dataSource"), part(spec, "dataSourceRef")
    if source is not None and reference is None:
        return {**claim, "spec": {**spec, "dataSourceRef": dict(source)}}
    if reference is not None and source is None and not text(reference, "namespace"):
        return {**claim, "spec": {**spec, "dataSource": {k: v for k, v in reference.items() if k != "namespace"}}}
    return claim


def _claim(obj: JsonObject, old: JsonObject | None) -> JsonObject:
    spec = dict(part(obj, "spec") or {})
    before = (part(old, "spec") or {}) if old is not None else {}
    if text(spec, "dataSourceRef", "namespace") and "dataSourceRef" not in before:
        spec.pop("dataSourceRef", None)
    source = part(spec, "dataSource")
    if source is not None and "dataSourceRef" not in spec and not {"dataSource", "dataSourceRef"} & set(before):
        known = (text(source, "apiGroup"), text(source, "kind"))
        if known not in {("", "PersistentVolumeClaim"), (_SNAPSHOTS, "VolumeSnapshot")}:
            del spec["dataSource"]
    return with_data_sources({**obj, "spec": spec})


CORE_STRATEGIES: Final[dict[str, Strategy]] = {
    "LimitRange": Strategy(create=_named_limit_range, update=lambda new, _old, _view: _limit_range(new)),
    "Namespace": Strategy(
        create=_namespace,
        update=_kept_namespace,
        status=_namespace_status,
        subresources={"finalize": lambda new, _old, _view: new},
    ),
    "Node": Strategy(
        create=lambda obj, _view: _node(obj), update=lambda new, _old, _view: _node(new), status=_node_status
    ),
    "PersistentVolume": Strategy(create=_volume, status=_volume_status),
    "PersistentVolumeClaim": Strategy(
        create=lambda obj, _view: _claim(obj, None), update=lambda new, old, _view: _claim(new, old)
    ),
    "Service": SERVICE_STRATEGY,
    "ServiceAccount": Strategy(create=lambda obj, _view: _account(obj), update=lambda new, _old, _view: _account(new)),
}
