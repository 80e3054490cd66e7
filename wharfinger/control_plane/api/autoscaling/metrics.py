"""The validation of a HorizontalPodAutoscaler's metrics: sources, targets, references to other objects."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.resources import container_resource_name_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.formats.quantity import parse_quantity

_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The member that belongs to each type of metric, in the order in which the members are validated."""
_TYPES: Final = tuple(sorted(_SOURCES))
_TARGET_TYPES: Final = frozenset({"Utilization", "Value", "AverageValue"})
_NO_AMOUNT: Final = {
    "object": "must set either a target value or averageValue",
    "external": "must set either a target value for metric or a per-pod target",
}


def reference_errors(reference: JsonObject, path: str, *, check_version: bool, core: bool) -> list[FieldError]:
    """Return the errors of a reference to another object; ``core`` allows the core group."""
    errors: list[FieldError] = []
    for name in ("kind", "name"):
        value = text(reference, name)
        errors += (
            each(f"{path}.{name}", value, segment_name(value, prefix=False)) if value else [required(f"{path}.{name}")]
        )
    if check_version and (problem := api_version_problem(text(reference, "apiVersion"), core=core)):
        errors.append(invalid(f"{path}.apiVersion", text(reference, "apiVersion"), problem))
    return errors


def api_version_problem(api_version: str, *, core: bool) -> str:
    """Return the reason why an apiVersion is invalid, or "". ``core`` allows the core group."""
    if api_version.count("/") > 1:
        return f"unexpected GroupVersion string: {api_version}"
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return "" if core or group else "apiVersion must specify API group"


def has_api_version_problem(described: JsonValue) -> bool:
    """Return whether a ``describedObject`` has an invalid apiVersion."""
    return isinstance(described, dict) and bool(api_version_problem(text(described, "apiVersion"), core=True))


def metric_errors(metric: JsonObject, path: str, *, check_version: bool) -> list[FieldError]:
    """Return the errors of one metric."""
    kind, errors = text(metric, "type"), list[FieldError]()
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    present = [name for name in _SOURCES.values() if isinstance(metric.get(name), dict)]
    if present:
        source = find_object(metric, present[0])
        errors += _source_errors(present[0], source, f"{path}.{present[0]}", check_version=check_version)
    expected = _SOURCES.get(kind)
    if expected is None:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    elif expected not in present:
        errors.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) > 1:
        why = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{name}", why) for name in present if name != expected]
    return errors


def _source_errors(name: str, source: JsonObject, path: str, *, check_version: bool) -> list[FieldError]:
    if name == "object":
        described = find_object(source, "describedObject")
        errors = reference_errors(described, f"{path}.describedObject", check_version=check_version, core=True)
        return errors + _measured_errors(source, path) + _amount_errors(name, source, path)
    if name in {"external", "pods"}:
        return _measured_errors(source, path) + _amount_errors(name, source, path)
    return _resource_errors(source, path, contained=name == "containerResource")


def _measured_errors(source: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a metric's name and target."""
    name = text(source, "metric", "name")
    field = f"{path}.metric.name"
    errors = (
        each(field, name, segment_name(name, prefix=False)) if name else [required(field, "must specify a metric name")]
    )
    return errors + _target_errors(find_object(source, "target"), f"{path}.target")


def _amount_errors(name: str, source: JsonObject, path: str) -> list[FieldError]:
    value, average = find(source, "target", "value"), find(source, "target", "averageValue")
    if name == "pods":
        why = "must specify a positive target averageValue"
        return [required(f"{path}.target.averageValue", why)] if average is None else []
    if value is None and average is None:
        return [required(f"{path}.target.averageValue", _NO_AMOUNT[name])]
    if name == "external" and value is not None and average is not None:
        why = "may not set both a target value for metric and a per-pod target"
        return [forbidden(f"{path}.target.value", why)]
    return []


def _resource_errors(source: JsonObject, path: str, *, contained: bool) -> list[FieldError]:
    name, errors = text(source, "name"), list[FieldError]()
    if not name:
        errors.append(required(f"{path}.name", "must specify a resource name"))
    elif contained:
        errors += container_resource_name_errors(name, f"{path}.name")
    if contained:
        container, field = text(source, "container"), f"{path}.container"
        errors += (
            each(field, container, dns_label_problems(container))
            if container
            else [required(field, "must specify a container")]
        )
    target = find_object(source, "target")
    errors += _target_errors(target, f"{path}.target")
    share, amount = target.get("averageUtilization"), target.get("averageValue")
    if share is None and amount is None:
        why = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.target.averageUtilization", why))
    if share is not None and amount is not None:
        why = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{path}.target.averageValue", why))
    return errors


def _target_errors(target: JsonObject, path: str) -> list[FieldError]:
    kind, errors = text(target, "type"), list[FieldError]()
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in _TARGET_TYPES:
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if (value := target.get(name)) is not None and (parse_quantity(value) or 0) <= 0:
            errors.append(invalid(f"{path}.{name}", value, "must be positive"))
    share = target.get("averageUtilization")
    if isinstance(share, int) and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors
