"""The validation of changes of an existing Pod: only images, deadlines, tolerations, scheduling gates, ephemeral containers
and resources may change.

Every other change is refused. The error shows the difference between the two specs, in the form of kube-apiserver's
internal types.
"""

from collections.abc import Mapping
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.annotations import APPARMOR, MIRROR, annotation_errors
from wharfinger.control_plane.api.core.pod_specs.containers import image_space_errors
from wharfinger.control_plane.api.core.pod_specs.scheduling import REQUIRED, toleration_errors
from wharfinger.control_plane.api.core.pods.quality_of_service import quality_class
from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_difference, internal_form, same_form
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map
from wharfinger.control_plane.objects.names import MAX_INT32, between
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, quoted, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

_CHANGEABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ADDITIONS: Final = "only additions are allowed (no mutations or deletions)"


def annotation_change_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error for each change of an annotation that may not change, followed by the errors of all annotations."""
    after, before = (text_map(pod, "metadata", "annotations") for pod in (new, old))
    path = "metadata.annotations"
    errors: list[FieldError] = []
    for key, value in sorted(before.items()):
        if after.get(key) == value:
            continue
        if key.startswith(APPARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in sorted(after.keys() - before.keys()):
        if key.startswith(APPARMOR):
            errors.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return errors + annotation_errors(new.get("metadata"), part(new, "spec") or {}, path)


def spec_change_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of the changes between two specs of one Pod."""
    spec, before = part(new, "spec") or {}, part(old, "spec") or {}
    errors: list[FieldError] = []
    for name in ("containers", "initContainers"):
        now = parts(spec, name)
        if len(now) != len(parts(before, name)):
            return [*errors, forbidden(f"spec.{name}", "pod updates may not add or remove containers")]
        for index, container in enumerate(now):
            at = f"spec.{name}[{index}]"
            errors += [] if text(container, "image") else [required(f"{at}.image")]
            errors += image_space_errors(container, at)
    found, stop = _deadline_errors(spec, before)
    errors += found
    if stop:
        return errors
    errors += _toleration_change_errors(spec, before)
    errors += _gate_change_errors(spec, before)
    masked = _masked(spec, before)
    if parts(before, "schedulingGates"):
        errors += _node_change_errors(masked, before)
        masked = _with_nodes_of(before, masked)
    if same_spec(masked, before):
        return errors
    difference = internal_difference("core.PodSpec", before, masked)
    return [*errors, forbidden("spec", f"pod updates may not change fields other than {_CHANGEABLE}\n{difference}")]


def same_spec(new: JsonObject, old: JsonObject) -> bool:
    """Return whether two pod specs are equal, where an empty value counts as an absent one."""
    return same_form("core.PodSpec", new, old)


def _deadline_errors(spec: JsonObject, before: JsonObject) -> tuple[list[FieldError], bool]:
    """Return the errors of a changed deadline, and whether upstream then skips all further checks."""
    now, then = (optional_number(each_, "activeDeadlineSeconds") for each_ in (spec, before))
    path = "spec.activeDeadlineSeconds"
    if now is None:
        why = "must not update from a positive integer to nil value"
        return ([] if then is None else [invalid(path, None, why)]), False
    if not 0 <= now <= MAX_INT32:
        return [invalid(path, now, between(0, MAX_INT32))], True
    if then is not None and then < now:
        return [invalid(path, now, "must be less than or equal to previous value")], True
    return [], False


def _toleration_change_errors(spec: JsonObject, before: JsonObject) -> list[FieldError]:
    now = [_without(toleration, "tolerationSeconds") for toleration in parts(spec, "tolerations")]
    for toleration in parts(before, "tolerations"):
        if _without(toleration, "tolerationSeconds") not in now:
            why = "existing toleration can not be modified except its tolerationSeconds"
            return [forbidden("spec.tolerations", why)]
    return toleration_errors(spec.get("tolerations"), "spec.tolerations")


def _without(obj: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in obj.items() if key != name}


def _gate_change_errors(spec: JsonObject, before: JsonObject) -> list[FieldError]:
    known = {text(gate, "name") for gate in parts(before, "schedulingGates")}
    names = [text(gate, "name") for gate in parts(spec, "schedulingGates")]
    added = {name: index for index, name in enumerate(names) if name not in known}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{name}'",
        )
        for name, index in added.items()
    ]


def _masked(spec: JsonObject, before: JsonObject) -> JsonObject:
    """Return the new spec with the old values of the fields that may change."""
    masked = dict(spec)
    for name in ("containers", "initContainers"):
        pairs = zip(parts(spec, name), parts(before, name), strict=True)
        containers: list[JsonValue] = [{**now, "image": text(then, "image")} for now, then in pairs]
        if containers:
            masked[name] = containers
    grace, then = (optional_number(each_, "terminationGracePeriodSeconds") for each_ in (spec, before))
    kept = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if grace == 1 and then is not None and then < 0:
        kept.append("terminationGracePeriodSeconds")
    for name in kept:
        masked.pop(name, None)
    return masked | {name: before[name] for name in kept if name in before}


def _node_change_errors(spec: JsonObject, before: JsonObject) -> list[FieldError]:
    """Return the errors of the node selector and node affinity of a Pod with scheduling gates: they may only be extended."""
    errors: list[FieldError] = []
    now, then = text_map(spec, "nodeSelector"), text_map(before, "nodeSelector")
    if any(now.get(key) != value for key, value in then.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", dict(sorted(now.items())) or None, why))
    terms = parts(before, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    wanted = parts(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if terms and len(terms) != len(wanted):
        said = find(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms") is not None
        shown: list[JsonValue] = [internal_form("core.NodeSelectorTerm", term) for term in wanted]
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*errors, invalid(path, shown if said else None, why)]
    for index, term in enumerate(terms):
        if not _only_adds(wanted[index], term):
            form = internal_form("core.NodeSelectorTerm", wanted[index])
            errors.append(invalid(f"{path}[{index}]", form, _ADDITIONS))
    return errors


def _only_adds(new: JsonObject, old: JsonObject) -> bool:
    lists = ("matchExpressions", "matchFields")
    if not any(parts(old, name) for name in lists):
        return not any(parts(new, name) for name in lists)
    return all(parts(new, name)[: len(parts(old, name))] == parts(old, name) for name in lists)


def _with_nodes_of(before: JsonObject, spec: JsonObject) -> JsonObject:
    affinity, then = part(spec, "affinity"), part(before, "affinity")
    nodes = None if then is None else then.get("nodeAffinity")
    changed = {**(affinity or {}), "nodeAffinity": nodes}
    kept: JsonValue = changed if then is not None or any(value is not None for value in changed.values()) else None
    return {**spec, "nodeSelector": before.get("nodeSelector"), "affinity": kept}


def ephemeral_change_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error for each ephemeral container that was removed or changed."""
    now = {text(item, "name"): item for item in parts(new, "spec", "ephemeralContainers")}
    errors: list[FieldError] = []
    for container in parts(old, "spec", "ephemeralContainers"):
        name = text(container, "name")
        if name not in now:
            why = f"existing ephemeral containers {quoted(name)} may not be removed\n"
            errors.append(forbidden("spec.ephemeralContainers", why))
        elif _form(now[name]) != _form(container):
            difference = internal_difference("core.EphemeralContainer", container, now[name])
            why = f"existing ephemeral containers {quoted(name)} may not be changed\n{difference}"
            errors.append(forbidden("spec.ephemeralContainers", why))
    return errors


def _form(container: JsonObject) -> Mapping[str, JsonValue]:
    return internal_form("core.EphemeralContainer", container)


def is_mirror(pod: JsonObject) -> bool:
    """Return whether a Pod is a mirror Pod, which represents a static Pod (one that a kubelet runs from a file)."""
    return MIRROR in text_map(pod, "metadata", "annotations")


def quality_change_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error if a resize changes the quality of service class of a Pod."""
    before = text(old, "status", "qosClass") or quality_class(part(old, "spec") or {})
    if before == quality_class(part(new, "spec") or {}):
        return []
    why = "Pod QOS Class may not change as a result of resizing"
    return [invalid("spec", text(new, "status", "qosClass"), why)]
