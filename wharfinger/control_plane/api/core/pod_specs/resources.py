"""The validation of resources of containers and pods: requests, limits, and claims of devices."""

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import (
    NEGATIVE,
    absent,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.quantity import parse_quantity
from wharfinger.kube.quantities import amount, canonical_quantity, is_whole, whole
from wharfinger.kube.selectors import key_problems

PAGES: Final = "hugepages-"
_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
STANDARD: Final = _CONTAINER | _COUNTED | {
    "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu", "limits.memory",
    "limits.ephemeral-storage", "storage", "requests.storage",
}  # fmt: skip
POD_LEVEL: Final = ("cpu", "hugepages-", "memory")

NameRule = Callable[[str, str], list[FieldError]]


def is_native(name: str) -> bool:
    """Return whether a resource is defined by Kubernetes: its name has no prefix, or one that ends with ``kubernetes.io``."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource with a valid name."""
    return not is_native(name) and not name.startswith("requests.") and not key_problems(f"requests.{name}")


def overcommits(name: str) -> bool:
    """Return whether limits of a resource may exceed its requests."""
    return is_native(name) and not name.startswith(PAGES)


def resource_name_errors(name: str, path: str) -> list[FieldError]:
    """Return the errors of the name of any resource."""
    if errors := each(path, name, key_problems(name)):
        return errors
    known = name in STANDARD or name.startswith((PAGES, "requests.hugepages-"))
    if "/" not in name and not known:
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name_errors(name: str, path: str) -> list[FieldError]:
    """Return the errors of the name of a container's resource."""
    errors = resource_name_errors(name, path)
    if name.count("/") == 0:
        if name not in _CONTAINER and not name.startswith(PAGES):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def pod_resource_name_errors(name: str, path: str) -> list[FieldError]:
    """Return the errors of the name of a resource of the pod as a whole."""
    if errors := resource_name_errors(name, path):
        return errors
    return [] if name in {"cpu", "memory"} or name.startswith(PAGES) else [not_supported(path, name, POD_LEVEL)]


def quantity_errors(name: str, value: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of an amount: it may not be negative; for countable and extended resources, it must be an integer."""
    errors = [invalid(path, canonical_quantity(value), NEGATIVE)] if amount(value) < 0 else []
    if (name in _COUNTED or is_extended(name)) and not is_whole(value):
        errors.append(invalid(path, canonical_quantity(value), "must be an integer"))
    return errors


def resource_errors(
    resources: JsonValue, path: str, claims: Collection[str], names: NameRule = container_resource_name_errors
) -> list[FieldError]:
    """Return the errors of ``resources`` (limits, requests, claims) at ``path``; ``claims`` contains the pod's claim names."""
    limits, requests = part(resources, "limits") or {}, part(resources, "requests") or {}
    errors: list[FieldError] = []
    for name in sorted(limits):
        at = f"{path}.limits[{name}]"
        errors += names(name, at) + quantity_errors(name, limits[name], at) + _page_errors(name, limits[name], at)
    for name in sorted(requests):
        at = f"{path}.requests[{name}]"
        errors += names(name, at) + quantity_errors(name, requests[name], at)
        errors += _limit_errors(name, requests[name], limits.get(name), path)
        errors += _page_errors(name, requests[name], at)
    together = {*limits, *requests}
    if any(name.startswith(PAGES) for name in together) and not together & {"cpu", "memory"}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors + _claim_errors(parts(resources, "claims"), f"{path}.claims", claims)


def _limit_errors(name: str, value: JsonValue, limit: JsonValue, path: str) -> list[FieldError]:
    if limit is None:
        why = "Limit must be set for non overcommitable resources"
        return [] if overcommits(name) else [required(f"{path}.limits", why)]
    asked, most, shown = amount(value), amount(limit), canonical_quantity(limit)
    if asked != most and not overcommits(name):
        why = f"must be equal to {name} limit of {shown}"
    elif asked > most:
        why = f"must be less than or equal to {name} limit of {shown}"
    else:
        return []
    return [invalid(f"{path}.requests", canonical_quantity(value), why)]


def _page_errors(name: str, value: JsonValue, path: str) -> list[FieldError]:
    if not name.startswith(PAGES):
        return []
    size = parse_quantity(name.removeprefix(PAGES))
    if size is not None and size > 0 and size == Fraction(int(size)) and whole(value) % int(size) == 0:
        return []
    shown = canonical_quantity(value)
    return [invalid(path, shown, f"{shown} is not positive integer multiple of {name}")]


def _claim_errors(claims: list[JsonObject], path: str, known: Collection[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at, name, request = f"{path}[{index}]", text(claim, "name"), text(claim, "request")
        if not name:
            errors.append(required(at))
            continue
        if name in seen:
            errors.append(duplicate(at, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                errors += each(f"{at}.request", request, dns_label_problems(request))
            if key in seen:
                errors.append(duplicate(at, key))
            elif not request:
                errors += [duplicate(at, name)] * sum(taken.partition("/")[0] == name for taken in seen)
            seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(absent(at, name, f"must be one of the names in pod.spec.resourceClaims{listed}"))
    return errors
