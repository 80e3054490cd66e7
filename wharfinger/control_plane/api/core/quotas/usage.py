"""The use of a ResourceQuota by objects: pure functions for admission (the use by one object) and for the controller (by all).

A quota names resources in ``hard``. The name of a resource determines which objects use it: ``pods``, ``requests.cpu`` and
similar names belong to pods, ``services.nodeports`` to services, ``requests.storage`` to claims, and
``count/deployments.apps`` to Deployments. The scopes of a quota can restrict it to some pods or claims. Source:
``k8s.io/kubernetes/pkg/quota/v1``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from wharfinger.control_plane.api.core.pod_specs.amounts import container_amounts
from wharfinger.control_plane.api.core.pod_specs.resources import is_native
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import amount, canonical_quantity, format_quantity
from wharfinger.kube.times import parse_time

Amounts: TypeAlias = dict[str, str]
"""A map from resource to quantity."""
Listed: TypeAlias = Callable[[str, str, str], Sequence[JsonObject]]
"""A function that lists objects: (group, plural, namespace) → the objects."""

IGNORED: Final = frozenset({"bindings", "componentstatuses", "events", "events.events.k8s.io"})
_ALIASES: Final = {
    "configmaps": "configmaps",
    "resourcequotas": "resourcequotas",
    "replicationcontrollers": "replicationcontrollers",
    "secrets": "secrets",
}
_POD_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES: Final = frozenset(
    {"pods", "count/pods", *_POD_COMPUTE}
    | {f"{kind}.{name}" for kind in ("requests", "limits") for name in _POD_COMPUTE}
)
_POD_PREFIXES: Final = ("hugepages-", "requests.hugepages-")
_CONSTRAINED: Final = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")
_SERVICE_NAMES: Final = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES: Final = ("persistentvolumeclaims", "requests.storage")
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def matching_resources(resource: str, names: Iterable[str]) -> list[str]:
    """Return the names in a quota's ``hard`` for which objects of ``resource`` (such as ``deployments.apps``) are counted."""
    return sorted({name for name in names if _takes(resource, name)})


def _takes(resource: str, name: str) -> bool:
    match resource:
        case "pods":
            extended = name.startswith("requests.") and not is_native(name)
            return name in _POD_NAMES or name.startswith(_POD_PREFIXES) or extended
        case "services":
            return name in _SERVICE_NAMES
        case "persistentvolumeclaims":
            return name in {"count/persistentvolumeclaims", *_CLAIM_NAMES} or name.endswith(
                tuple(_BY_CLASS + item for item in _CLAIM_NAMES)
            )
        case _:
            return name in {f"count/{resource}", _ALIASES.get(resource)}


def usage(resource: str, obj: JsonObject, now: datetime) -> Amounts:
    """Return how much one object of ``resource`` uses, by the names that resources have in a quota's ``hard``."""
    match resource:
        case "pods":
            return _pod_usage(obj, now)
        case "services":
            return _service_usage(obj)
        case "persistentvolumeclaims":
            return _claim_usage(obj)
        case _:
            return {f"count/{resource}": "1"} | ({alias: "1"} if (alias := _ALIASES.get(resource)) else {})


def _pod_usage(pod: JsonObject, now: datetime) -> Amounts:
    used = {"count/pods": "1"}
    if find(pod, "status", "phase") in {"Failed", "Succeeded"} or _is_gone(pod, now):
        return used
    requests, limits = pod_amounts(pod, "requests"), pod_amounts(pod, "limits")
    used["pods"] = "1"
    for name in _POD_COMPUTE:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, value in requests.items():
        if name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = value
        elif not is_native(name):
            used[f"requests.{name}"] = value
    return used


def _is_gone(pod: JsonObject, now: datetime) -> bool:
    """Return whether a pod is being deleted and its grace period has expired."""
    deleted = parse_time(text(pod, "metadata", "deletionTimestamp"))
    grace = find(pod, "metadata", "deletionGracePeriodSeconds")
    return deleted is not None and isinstance(grace, int) and now > deleted + timedelta(seconds=grace)


def pod_amounts(pod: JsonObject, kind: str) -> Amounts:
    """Return ``requests`` or ``limits`` of a pod as a whole.

    The pod's own amounts replace the sums of its containers; the overhead is added.
    """
    spec = part(pod, "spec") or {}
    total = container_amounts(spec, kind)
    found = {name: total.text(name) for name in total.numbers}
    own = part(spec, "resources", kind) or {}
    found |= {name: str(canonical_quantity(value)) for name, value in own.items()}
    for name, value in (part(spec, "overhead") or {}).items():
        if kind == "requests" or name in found:
            found[name] = plus(found.get(name, "0"), value)
    return found


def _service_usage(service: JsonObject) -> Amounts:
    kind, ports = text(service, "spec", "type"), parts(service, "spec", "ports")
    exposed = 0
    if kind in {"NodePort", "LoadBalancer"}:
        exposed = len(ports)
        if kind == "LoadBalancer" and find(service, "spec", "allocateLoadBalancerNodePorts") is False:
            exposed = sum(1 for port in ports if number(port, "nodePort"))
    balanced = "1" if kind == "LoadBalancer" else "0"
    return {
        "count/services": "1",
        "services": "1",
        "services.loadbalancers": balanced,
        "services.nodeports": str(canonical_quantity(exposed)),
    }


def _claim_usage(claim: JsonObject) -> Amounts:
    used = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1"}
    annotation = find(claim, "metadata", "annotations", _CLASS_ANNOTATION)
    name = annotation if isinstance(annotation, str) else text(claim, "spec", "storageClassName")
    asked = find(claim, "spec", "resources", "requests", "storage")
    if name:
        used[f"{name}{_BY_CLASS}persistentvolumeclaims"] = "1"
    if asked is not None:
        allocated = find(claim, "status", "allocatedResources", "storage")
        largest = allocated if allocated is not None and amount(allocated) > amount(asked) else asked
        size = _rounded(largest)
        used["requests.storage"] = size
        if name:
            used[f"{name}{_BY_CLASS}requests.storage"] = size
    return used


def _rounded(value: JsonValue) -> str:
    exact = amount(value)
    whole = math.ceil(exact)
    return str(canonical_quantity(value)) if whole == exact else format_quantity(amount(whole), value)


def in_scope(quota: JsonObject, resource: str, obj: JsonObject) -> bool:
    """Return whether all scopes of a quota match an object."""
    scopes: list[JsonObject] = [{"scopeName": name, "operator": "Exists"} for name in texts(quota, "spec", "scopes")]
    scopes += parts(quota, "spec", "scopeSelector", "matchExpressions")
    return all(_holds(scope, resource, obj) for scope in scopes)


def _holds(scope: JsonObject, resource: str, obj: JsonObject) -> bool:
    name = text(scope, "scopeName")
    if resource == "persistentvolumeclaims":
        return name == "VolumeAttributesClass" and _selects(scope, _attribute_classes(obj))
    if resource != "pods":
        return False
    deadline = find(obj, "spec", "activeDeadlineSeconds")
    match name:
        case "Terminating" | "NotTerminating":
            return (isinstance(deadline, int) and deadline >= 0) is (name == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return _is_best_effort(obj) is (name == "BestEffort")
        case "PriorityClass":
            priority = text(obj, "spec", "priorityClassName")
            return _selects(scope, [priority] if priority else [])
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(obj)
        case _:
            return False


def _selects(scope: JsonObject, names: list[str]) -> bool:
    """Return whether the operator and the values of a scope match the class names of an object."""
    operator, values = text(scope, "operator"), set(texts(scope, "values"))
    match operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
        case "NotIn":
            return not names or any(name not in values for name in names)
        case _:
            return False


def _attribute_classes(claim: JsonObject) -> list[str]:
    found = (
        text(claim, "spec", "volumeAttributesClassName"),
        text(claim, "status", "currentVolumeAttributesClassName"),
        text(claim, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    )
    return [name for name in found if name]


def _is_best_effort(pod: JsonObject) -> bool:
    known = text(pod, "status", "qosClass")
    if known:
        return known == "BestEffort"
    holders = [part(pod, "spec") or {}, *parts(pod, "spec", "containers"), *parts(pod, "spec", "initContainers")]
    return not any(
        amount(find(holder, "resources", kind, name)) > 0
        for holder in holders
        for kind in ("requests", "limits")
        for name in ("cpu", "memory")
    )


def _crosses_namespaces(pod: JsonObject) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        path = ("spec", "affinity", kind)
        terms = parts(pod, *path, "requiredDuringSchedulingIgnoredDuringExecution")
        weighted = parts(pod, *path, "preferredDuringSchedulingIgnoredDuringExecution")
        terms += [part(item, "podAffinityTerm") or {} for item in weighted]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def unspecified(pod: JsonObject, restricted: Iterable[str]) -> str:
    """Return the restricted resources that containers do not specify, each with the names of these containers.

    The form is ``limits.cpu for: a,b; …``; "" if there are none.
    """
    if part(pod, "spec", "resources") and any(part(pod, "spec", "resources", kind) for kind in ("requests", "limits")):
        return ""
    asked = [name for name in _CONSTRAINED if name in set(restricted)]
    containers = [*parts(pod, "spec", "containers"), *parts(pod, "spec", "initContainers")]
    said = []
    for name in asked:
        kind, _, resource = name.rpartition(".")
        silent = {
            text(container, "name")
            for container in containers
            if resource not in (part(container, "resources", kind or "requests") or {})
        }
        if silent:
            said.append(f"{name} for: {','.join(sorted(silent))}")
    return "; ".join(said)


def plus(one: JsonValue, other: JsonValue) -> str:
    """Return the sum of two quantities, in the format of the first (of the second if the first is zero)."""
    return format_quantity(amount(one) + amount(other), one if amount(one) else other)


def added(used: Mapping[str, JsonValue], more: Mapping[str, JsonValue]) -> Amounts:
    """Return the sums of two maps of amounts."""
    total = {name: str(canonical_quantity(value)) for name, value in used.items()}
    for name, value in more.items():
        total[name] = plus(total[name], value) if name in total else str(canonical_quantity(value))
    return total


def increase(new: Mapping[str, JsonValue], old: Mapping[str, JsonValue]) -> Amounts:
    """Return the increase from the old amounts to the new ones; a decrease counts as zero."""
    found = {}
    for name in {**new, **old}:
        now, before = new.get(name, "0"), old.get(name, "0")
        more = amount(now) - amount(before)
        found[name] = format_quantity(more, now) if more > 0 else "0"
    return found


def calculated(quota: JsonObject, listed: Listed, resources: Iterable[tuple[str, str]], now: datetime) -> Amounts:
    """Return the amounts that the objects in the quota's namespace use, for each name in the quota's ``hard``. A name is left
    out if no kind in ``resources`` counts towards it.

    ``resources`` are the (group, plural) pairs of the served namespaced kinds.
    """
    hard = list(part(quota, "spec", "hard") or {})
    namespace = text(quota, "metadata", "namespace")
    used: Amounts = {}
    for group, plural in resources:
        resource = f"{plural}.{group}" if group else plural
        matched = [] if resource in IGNORED else matching_resources(resource, hard)
        if not matched:
            continue
        total: Amounts = dict.fromkeys(matched, "0")
        for obj in listed(group, plural, namespace):
            if in_scope(quota, resource, obj):
                taken = usage(resource, obj, now)
                total = added(total, {name: value for name, value in taken.items() if name in total})
        used |= total
    return dict(sorted(used.items()))
