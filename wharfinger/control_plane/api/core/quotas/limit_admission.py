"""The LimitRanger plugin: it sets default resources of containers, and refuses Pods and claims whose resources are outside the
bounds of a LimitRange of the namespace.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Final, TypeAlias

from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin
from wharfinger.control_plane.api.core.quotas.usage import pod_amounts
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import amount, canonical_quantity

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_LISTS: Final = (("containers", "container"), ("initContainers", "init container"))
_MAX_MILLI: Final = (2**63 - 1) // 1000

Check: TypeAlias = Callable[[str, str, JsonValue, JsonObject, JsonObject], str]
"""A check of one bound. It gets the type of the limit, the resource, the bound, the requests and the limits, and returns the
error message, or "" if the bound is kept.
"""


def _ranges(admission: Admission) -> list[JsonObject]:
    """Return the LimitRanges that apply to a write."""
    concerned = admission.kind.group_kind == "PersistentVolumeClaim" and not admission.subresource
    if admission.kind.group_kind == "Pod":
        created = admission.operation is Operation.CREATE and not admission.subresource
        concerned = created or (admission.operation is Operation.UPDATE and admission.subresource == "resize")
    if not concerned or find(admission.old, "metadata", "deletionTimestamp") is not None:
        return []
    return list(admission.view.objects("", "limitranges", admission.namespace))


def fill_limits(admission: Admission, obj: JsonObject) -> JsonObject:
    """Return a Pod whose containers have the defaults of the namespace's LimitRanges."""
    if admission.kind.group_kind != "Pod":
        return obj
    for limit_range in _ranges(admission):
        obj = _filled(obj, limit_range)
    return obj


def _filled(pod: JsonObject, limit_range: JsonObject) -> JsonObject:
    requests, limits = JsonObject(), JsonObject()
    for item in parts(limit_range, "spec", "limits"):
        if text(item, "type") == "Container":
            requests |= part(item, "defaultRequest") or {}
            limits |= part(item, "default") or {}
    said: list[str] = []
    spec = dict(part(pod, "spec") or {})
    for name, called in _LISTS:
        containers = parts(spec, name)
        if containers:
            spec[name] = [_container(container, requests, limits, called, said) for container in containers]
    if not said:
        return {**pod, "spec": spec}
    metadata = part(pod, "metadata") or {}
    annotations = {**(part(metadata, "annotations") or {}), ANNOTATION: f"LimitRanger plugin set: {'; '.join(said)}"}
    return {**pod, "spec": spec, "metadata": {**metadata, "annotations": annotations}}


def _container(
    container: JsonObject, requests: JsonObject, limits: JsonObject, called: str, said: list[str]
) -> JsonObject:
    resources = dict(part(container, "resources") or {})
    for name, what, defaults in (("requests", "request", requests), ("limits", "limit", limits)):
        own = part(resources, name) or {}
        missing = {key: value for key, value in defaults.items() if key not in own}
        if missing:
            resources[name] = {**own, **missing}
            said.append(f"{', '.join(sorted(missing))} {what} for {called} {text(container, 'name')}")
    return {**container, "resources": resources}


def check_limits(admission: Admission) -> None:
    """Refuse resources outside the bounds of a LimitRange. Raises StatusError (403)."""
    for limit_range in _ranges(admission):
        said: list[str] = []
        for item in parts(limit_range, "spec", "limits"):
            said += _problems(admission, item)
        if said:
            raise status.forbidden(admission.kind, admission.name, status.aggregated(said))


def _problems(admission: Admission, item: JsonObject) -> list[str]:
    obj, kind = admission.obj or {}, text(item, "type")
    if admission.kind.group_kind == "PersistentVolumeClaim":
        if kind != "PersistentVolumeClaim":
            return []
        requests = part(obj, "spec", "resources", "requests") or {}
        return _bound_problems(item, kind, requests, {}, (("min", _below), ("max", _request_above)))
    checks: tuple[tuple[str, Check], ...] = (("min", _below), ("max", _above), ("maxLimitRequestRatio", _out_of_ratio))
    if kind == "Pod":
        requests, limits = (dict[str, JsonValue](pod_amounts(obj, name)) for name in ("requests", "limits"))
        return _bound_problems(item, kind, requests, limits, checks)
    said: list[str] = []
    for name, _ in _LISTS if kind == "Container" else ():
        for container in parts(obj, "spec", name):
            requests, limits = (part(container, "resources", which) or {} for which in ("requests", "limits"))
            said += _bound_problems(item, kind, requests, limits, checks)
    return said


def _bound_problems(
    item: JsonObject, kind: str, requests: JsonObject, limits: JsonObject, checks: Iterable[tuple[str, Check]]
) -> list[str]:
    return [
        problem
        for member, check in checks
        for name, bound in (part(item, member) or {}).items()
        if (problem := check(kind, name, bound, requests, limits))
    ]


def _values(*quantities: JsonValue) -> list[int]:
    """Return quantities as integers, rounded up: in thousandths if all of these fit into 64 bits, otherwise in whole units."""
    exact = [amount(quantity) for quantity in quantities]
    if all(math.ceil(value) <= _MAX_MILLI for value in exact):
        return [math.ceil(value * 1000) for value in exact]
    return [math.ceil(value) for value in exact]


def _below(kind: str, name: str, bound: JsonValue, requests: JsonObject, limits: JsonObject) -> str:
    request, limit, least = _values(requests.get(name), limits.get(name), bound)
    said = f"minimum {name} usage per {kind} is {canonical_quantity(bound)}"
    if name not in requests:
        return f"{said}.  No request is specified"
    if request < least:
        return f"{said}, but request is {requests[name]}"
    return f"{said}, but limit is {limits[name]}" if name in limits and limit < least else ""


def _request_above(kind: str, name: str, bound: JsonValue, requests: JsonObject, _limits: JsonObject) -> str:
    request, most = _values(requests.get(name), bound)
    said = f"maximum {name} usage per {kind} is {canonical_quantity(bound)}"
    if name not in requests:
        return f"{said}.  No request is specified"
    return f"{said}, but request is {requests[name]}" if request > most else ""


def _above(kind: str, name: str, bound: JsonValue, requests: JsonObject, limits: JsonObject) -> str:
    request, limit, most = _values(requests.get(name), limits.get(name), bound)
    said = f"maximum {name} usage per {kind} is {canonical_quantity(bound)}"
    if name not in limits:
        return f"{said}.  No limit is specified"
    if limit > most:
        return f"{said}, but limit is {limits[name]}"
    return f"{said}, but request is {requests[name]}" if name in requests and request > most else ""


def _out_of_ratio(kind: str, name: str, bound: JsonValue, requests: JsonObject, limits: JsonObject) -> str:
    request, limit, _ = _values(requests.get(name), limits.get(name), bound)
    said = f"{name} max limit to request ratio per {kind} is {canonical_quantity(bound)}"
    if name not in requests or not request:
        return f"{said}, but no request is specified or request is 0"
    if name not in limits or not limit:
        return f"{said}, but no limit is specified or limit is 0"
    ratio = Fraction(limit, request)
    return f"{said}, but provided ratio is {float(ratio):f}" if ratio > amount(bound) else ""


LIMIT_PLUGIN: Final = Plugin(
    "LimitRanger",
    frozenset({Operation.CREATE, Operation.UPDATE}),
    frozenset({"Pod", "PersistentVolumeClaim"}),
    mutate=fill_limits,
    check=check_limits,
)
