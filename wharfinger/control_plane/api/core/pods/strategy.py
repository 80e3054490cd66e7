"""The strategy of Pods: their first status, the fields that the server drops, and the fields that a write may change."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.annotations import APPARMOR
from wharfinger.control_plane.api.core.pod_specs.security import apparmor_errors
from wharfinger.control_plane.api.core.pod_specs.warnings import apparmor_field
from wharfinger.control_plane.api.core.pod_specs.windows import CONTAINER_LISTS
from wharfinger.control_plane.api.core.pods.quality_of_service import quality_class
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map, texts
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.times import format_time

_GATED: Final[JsonObject] = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_TERMS: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
_DISABLED_PROJECTIONS: Final = ("clusterTrustBundle", "podCertificate")
"""The types of sources that kube-apiserver drops from projected volumes, because their features are off by default."""


def _created(pod: JsonObject, view: ClusterView) -> JsonObject:
    spec = without_disabled(part(pod, "spec") or {})
    status: JsonObject = {"phase": "Pending", "qosClass": quality_class(spec)}
    if parts(spec, "schedulingGates"):
        status["conditions"] = [{**_GATED, "lastTransitionTime": format_time(view.now())}]
    labels = text_map(pod, "metadata", "labels")
    spec = _with_selected_labels(spec, labels)
    if text(spec, "os", "name") != "windows":
        spec = _with_apparmor_fields(spec, text_map(pod, "metadata", "annotations"))
    return {**pod, "spec": spec, "status": status}


def without_disabled(spec: JsonObject) -> JsonObject:
    """Return a pod spec without the fields of features that are off by default; the spec itself if it has no such fields."""
    changes: JsonObject = {}
    volumes = spec.get("volumes")
    if isinstance(volumes, list) and any(_has_disabled(volume) for volume in volumes):
        changes["volumes"] = [_volume_without_disabled(volume) for volume in parts(spec, "volumes")]
    for name in CONTAINER_LISTS:
        if any("stopSignal" in (part(container, "lifecycle") or {}) for container in parts(spec, name)):
            containers: list[JsonValue] = [_without_stop_signal(container) for container in parts(spec, name)]
            changes[name] = containers
    if not changes and "schedulingGroup" not in spec:
        return spec
    kept = {name: value for name, value in spec.items() if name != "schedulingGroup"}
    return {**kept, **changes}


def _has_disabled(volume: JsonValue) -> bool:
    return any(source.keys() & set(_DISABLED_PROJECTIONS) for source in parts(volume, "projected", "sources"))


def _volume_without_disabled(volume: JsonObject) -> JsonObject:
    projected = part(volume, "projected")
    if projected is None:
        return volume
    sources: list[JsonValue] = [
        {name: value for name, value in source.items() if name not in _DISABLED_PROJECTIONS}
        for source in parts(projected, "sources")
    ]
    return {**volume, "projected": {**projected, "sources": sources}}


def _without_stop_signal(container: JsonObject) -> JsonObject:
    lifecycle = part(container, "lifecycle")
    if lifecycle is None or "stopSignal" not in lifecycle:
        return container
    kept = {name: value for name, value in lifecycle.items() if name != "stopSignal"}
    if kept:
        return {**container, "lifecycle": kept}
    return {name: value for name, value in container.items() if name != "lifecycle"}


def _with_selected_labels(spec: JsonObject, labels: dict[str, str]) -> JsonObject:
    """Return the spec with the selector terms for ``matchLabelKeys`` and ``mismatchLabelKeys`` (KEP-3633)."""
    changes: JsonObject = {}
    affinity = part(spec, "affinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        held = part(affinity, kind)
        if affinity is not None and held is not None:
            affinity = {**affinity, kind: _terms_with_labels(held, labels)}
            changes["affinity"] = affinity
    constraints = parts(spec, "topologySpreadConstraints")
    if constraints:
        merged: list[JsonValue] = [_term_with_labels(constraint, labels) for constraint in constraints]
        changes["topologySpreadConstraints"] = merged
    return {**spec, **changes}


def _terms_with_labels(affinity: JsonObject, labels: dict[str, str]) -> JsonObject:
    required, preferred = _TERMS
    changed = dict(affinity)
    if required in affinity:
        changed[required] = [_term_with_labels(term, labels) for term in parts(affinity, required)]
    if preferred in affinity:
        changed[preferred] = [
            {**term, "podAffinityTerm": _term_with_labels(part(term, "podAffinityTerm") or {}, labels)}
            for term in parts(affinity, preferred)
        ]
    return changed


def _term_with_labels(term: JsonObject, labels: dict[str, str]) -> JsonObject:
    selector = part(term, "labelSelector")
    if selector is None:
        return term
    wanted = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")]
    added: list[JsonValue] = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in wanted
        for key in texts(term, name)
        if key in labels
    ]
    if not added:
        return term
    return {**term, "labelSelector": {**selector, "matchExpressions": [*parts(selector, "matchExpressions"), *added]}}


def _with_apparmor_fields(spec: JsonObject, annotations: dict[str, str]) -> JsonObject:
    """Return the spec with the AppArmor profiles of deprecated annotations copied to fields (KEP-24)."""
    if not any(key.startswith(APPARMOR) for key in annotations):
        return spec
    whole = part(spec, "securityContext", "appArmorProfile")
    changes: JsonObject = {}
    for name in CONTAINER_LISTS:
        containers: list[JsonValue] = []
        for container in parts(spec, name):
            context = part(container, "securityContext") or {}
            said = annotations.get(APPARMOR + text(container, "name"))
            profile = None if said is None or context.get("appArmorProfile") else apparmor_field(said)
            if profile is None or profile == whole or apparmor_errors({"appArmorProfile": profile}, ""):
                containers.append(container)
            else:
                containers.append({**container, "securityContext": {**context, "appArmorProfile": profile}})
        if containers:
            changes[name] = containers
    return {**spec, **changes}


def _updated(new: JsonObject, _old: JsonObject, _view: ClusterView) -> JsonObject:
    return {**new, "spec": without_disabled(part(new, "spec") or {})}


def _status(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    """Return the Pod with the status to store: an omitted QoS class or observed generation keeps its old value."""
    status, before = dict(part(new, "status") or {}), part(old, "status") or {}
    if not text(status, "qosClass") and "qosClass" in before:
        status["qosClass"] = before["qosClass"]
    if not number(status, "observedGeneration") and number(before, "observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    seen: dict[str, list[int]] = {}
    for condition in parts(before, "conditions"):
        seen.setdefault(text(condition, "type"), []).append(number(condition, "observedGeneration"))
    conditions: list[JsonValue] = []
    for condition in parts(status, "conditions"):
        known = seen.get(text(condition, "type")) or [0]
        generation = known.pop(0)
        kept = generation and not number(condition, "observedGeneration")
        conditions.append({**condition, "observedGeneration": generation} if kept else condition)
    if conditions:
        status["conditions"] = conditions
    return {**new, "status": status}


def _ephemeral(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    """Return the old Pod with only its ephemeral containers and its managed fields changed."""
    spec = dict(part(old, "spec") or {})
    containers = parts(new, "spec", "ephemeralContainers")
    spec.pop("ephemeralContainers", None)
    if containers:
        spec["ephemeralContainers"] = [*containers]
    return {**new, "metadata": _kept_metadata(new, old), "spec": without_disabled(spec)}


def _kept_metadata(new: JsonObject, old: JsonObject) -> JsonObject:
    """Return the old metadata with the new managed fields.

    A write of a subresource cannot change metadata, but its field manager becomes an owner of the metadata that it tried to
    change.
    """
    reached = {name: value for name, value in (part(new, "metadata") or {}).items() if name == "managedFields"}
    return {**(part(old, "metadata") or {}), **reached}


def _resized(new: JsonObject, old: JsonObject, _view: ClusterView) -> JsonObject:
    """Return the old Pod with only its resources and resize policies changed.

    If containers were added, removed or renamed, the new containers are kept, so that validation refuses them.
    """
    spec, before = part(new, "spec") or {}, part(old, "spec") or {}
    lists = ("containers", "initContainers")
    if any(len(parts(spec, name)) != len(parts(before, name)) for name in lists):
        return new
    kept = dict(before)
    kept.pop("resources", None)
    if "resources" in spec:
        kept["resources"] = spec["resources"]
    for name in lists:
        pairs = list(zip(parts(spec, name), parts(before, name), strict=True))
        if any(text(now, "name") != text(then, "name") for now, then in pairs):
            kept[name] = spec.get(name)
        elif pairs:
            kept[name] = [_with_resources_of(now, then) for now, then in pairs]
    return {**new, "metadata": _kept_metadata(new, old), "spec": kept}


def _with_resources_of(now: JsonObject, then: JsonObject) -> JsonObject:
    members = ("resources", "resizePolicy")
    kept = {name: value for name, value in then.items() if name not in members}
    return {**kept, **{name: now[name] for name in members if name in now}}


POD_STRATEGIES: Final[dict[str, Strategy]] = {
    "Pod": Strategy(
        create=_created,
        update=_updated,
        status=_status,
        subresources={"ephemeralcontainers": _ephemeral, "resize": _resized},
    )
}
