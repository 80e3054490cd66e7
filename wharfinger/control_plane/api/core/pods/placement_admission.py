"""The admission plugins that prepare Pods for the scheduler: priorities, tolerations for failing nodes, overhead of
runtime classes.
"""

from typing import Final

from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.objects.amounts import number, optional_number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.quantities import amount

SCHEDULING: Final = "scheduling.k8s.io"
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that exist in every cluster, with their values."""
_LOWER: Final = "PreemptLowerPriority"
_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300


def _class_of(admission: Admission, name: str) -> JsonObject:
    found = admission.view.object(SCHEDULING, "priorityclasses", "", name)
    if found is None and name in SYSTEM_CLASSES:
        return {"value": SYSTEM_CLASSES[name], "preemptionPolicy": _LOWER}
    if found is None:
        why = f"no PriorityClass with name {name} was found"
        raise status.forbidden(admission.kind, admission.name, why)
    return found


def _default_class(admission: Admission) -> JsonObject | None:
    classes = admission.view.objects(SCHEDULING, "priorityclasses")
    found = [item for item in classes if item.get("globalDefault") is True]
    return min(found, key=lambda item: number(item, "value")) if found else None


def give_priority(admission: Admission, pod: JsonObject) -> JsonObject:
    """Return a Pod with the priority of its class. Raises StatusError (403)."""
    if admission.subresource:
        return pod
    if admission.operation is Operation.UPDATE:
        return _with_kept_priority(admission, pod)
    spec = dict(part(pod, "spec") or {})
    name = text(spec, "priorityClassName")
    found = _class_of(admission, name) if name else _default_class(admission)
    if found is None:
        found = {"value": 0, "preemptionPolicy": _LOWER}
    elif not name:
        spec["priorityClassName"] = text(found, "metadata", "name")
    priority, given = number(found, "value"), optional_number(spec, "priority")
    if given is not None and given != priority:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {priority} from the given PriorityClass name"
        )
        raise status.forbidden(admission.kind, admission.name, why)
    spec["priority"] = priority
    policy, wanted = text(found, "preemptionPolicy"), spec.get("preemptionPolicy")
    if policy:
        if wanted is not None and wanted != policy:
            why = (
                f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; priority admission "
                f"controller computed {policy} from the given PriorityClass name"
            )
            raise status.forbidden(admission.kind, admission.name, why)
        spec["preemptionPolicy"] = policy
    return {**pod, "spec": spec}


def _with_kept_priority(admission: Admission, pod: JsonObject) -> JsonObject:
    """Return an updated Pod in which an omitted priority or preemption policy has its old value."""
    spec, before = part(pod, "spec") or {}, part(admission.old, "spec") or {}
    names = ("priority", "preemptionPolicy")
    kept = {name: before[name] for name in names if spec.get(name) is None and before.get(name) is not None}
    return {**pod, "spec": {**spec, **kept}} if kept else pod


def check_default_class(admission: Admission) -> None:
    """Refuse a second default PriorityClass. Raises StatusError (403)."""
    if admission.subresource or admission.obj is None or admission.obj.get("globalDefault") is not True:
        return
    found = _default_class(admission)
    name = "" if found is None else text(found, "metadata", "name")
    if name and (admission.operation is Operation.CREATE or name != admission.name):
        why = f"PriorityClass {name} is already marked as default. Only one default can exist"
        raise status.forbidden(admission.kind, admission.name, why)


def give_tolerations(admission: Admission, pod: JsonObject) -> JsonObject:
    """Return a Pod that tolerates failing nodes for five minutes, unless it has tolerations for them."""
    if admission.subresource:
        return pod
    spec = part(pod, "spec") or {}
    given = parts(spec, "tolerations")
    added: list[JsonValue] = [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for taint in _TAINTS
        if not any(_tolerates(toleration, taint) for toleration in given)
    ]
    if not added:
        return pod
    tolerations: list[JsonValue] = [*given, *added]
    return {**pod, "spec": {**spec, "tolerations": tolerations}}


def _tolerates(toleration: JsonObject, taint: str) -> bool:
    return text(toleration, "key") in {"", taint} and text(toleration, "effect") in {"", "NoExecute"}


def give_overhead(admission: Admission, pod: JsonObject) -> JsonObject:
    """Return a Pod with the overhead and the scheduling constraints of its runtime class. Raises StatusError (403)."""
    if admission.operation is not Operation.CREATE or admission.subresource:
        return pod
    runtime = _runtime(admission, pod)
    spec = dict(part(pod, "spec") or {})
    if (overhead := part(runtime, "overhead")) is not None:
        fixed = part(overhead, "podFixed") or {}
        if spec.get("overhead") and not _same_amounts(fixed, part(spec, "overhead") or {}):
            _refuse(admission, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        if fixed:
            spec["overhead"] = dict(fixed)
    if (scheduling := part(runtime, "scheduling")) is not None:
        selector = text_map(spec, "nodeSelector")
        for key, value in sorted(text_map(scheduling, "nodeSelector").items()):
            own = selector.get(key, value)
            if own != value:
                shown = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
                _refuse(admission, f"conflict: {shown}")
            selector[key] = value
        if selector:
            spec["nodeSelector"] = dict(selector)
        tolerations = parts(spec, "tolerations")
        merged: list[JsonValue] = [*tolerations]
        merged += [item for item in parts(scheduling, "tolerations") if item not in tolerations]
        if merged:
            spec["tolerations"] = merged
    return {**pod, "spec": spec}


def check_overhead(admission: Admission) -> None:
    """Refuse a Pod whose overhead differs from the overhead of its runtime class. Raises StatusError (403)."""
    if admission.operation is not Operation.CREATE or admission.subresource or admission.obj is None:
        return
    declared = part(_runtime(admission, admission.obj), "overhead")
    own = part(admission.obj, "spec", "overhead")
    if declared is None and own is not None:
        _refuse(admission, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if declared is not None and not _same_amounts(part(declared, "podFixed") or {}, own or {}):
        _refuse(admission, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _runtime(admission: Admission, pod: JsonObject) -> JsonObject | None:
    name = (part(pod, "spec") or {}).get("runtimeClassName")
    if not isinstance(name, str):
        return None
    found = admission.view.object("node.k8s.io", "runtimeclasses", "", name)
    if found is None:
        _refuse(admission, f"pod rejected: RuntimeClass {quoted(name)} not found")
    return found


def _refuse(admission: Admission, why: str) -> None:
    raise status.forbidden(admission.kind, admission.name, why)


def _same_amounts(one: JsonObject, other: JsonObject) -> bool:
    return one.keys() == other.keys() and all(amount(one[name]) == amount(other[name]) for name in one)
