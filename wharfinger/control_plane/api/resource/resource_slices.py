"""The validation of ResourceSlices: the devices that exist, their nodes, and their properties (resource.k8s.io/v1)."""

import re
from collections.abc import Callable
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.scheduling import node_selector_errors
from wharfinger.control_plane.api.resource.device_capacities import capacity_errors
from wharfinger.control_plane.api.resource.device_names import (
    KEY_LIMIT,
    binding_errors,
    listed_errors,
    pool_name_errors,
    qualified_name_errors,
    set_errors,
    shortened,
)
from wharfinger.control_plane.api.resource.device_requests import EFFECTS
from wharfinger.control_plane.api.storage.csi_drivers import driver_name_errors
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, texts
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    each,
    immutable,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.selectors import key_problems, value_problems

DEVICES_LIMIT: Final = 128
ADVANCED_LIMIT: Final = 64
"""The maximum number of devices if any of them has taints or uses counters."""
SETS_LIMIT: Final = 8
COUNTERS_LIMIT: Final = 32
CONSUMED_LIMIT: Final = 2
PROPERTIES_LIMIT: Final = 32
VALUES_LIMIT: Final = 48
VALUE_BYTES: Final = 64
TAINTS_LIMIT: Final = 16
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE: Final = f"exactly one of {', '.join(f'`{name}`' for name in _PLACES)} is required"
_ONE_DEVICE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
_NO_DEVICE_PLACE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_ATTRIBUTE: Final = ("int", "bool", "string", "version")
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
)


def slice_errors(one: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Return the errors of the spec of a ResourceSlice; ``old`` is its previous state."""
    spec = part(one, "spec") or {}
    errors = driver_name_errors(text(spec, "driver"), "spec.driver") + _pool_errors(spec)
    for path in () if old is None else (("pool", "name"), ("driver",), ("nodeName",)):
        errors += immutable(f"spec.{'.'.join(path)}", find(spec, *path), find(old, "spec", *path))
    errors += _place_errors(spec)
    counters, devices = parts(spec, "sharedCounters"), parts(spec, "devices")
    if counters and devices:
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    before = {text(device, "name"): device.get("taints") for device in reversed(parts(old, "spec", "devices"))}
    errors += set_errors(
        devices, ADVANCED_LIMIT if advanced else DEVICES_LIMIT, "spec.devices",
        lambda device, path: _device_errors(device, path, before, placed=flag(spec, "perDeviceNodeSelection")),
        lambda device: text(device, "name"), lambda device: text(device, "name"),
    )  # fmt: skip
    return errors + set_errors(
        counters, SETS_LIMIT, "spec.sharedCounters", lambda item, path: _counters_errors(item, path, "name"),
        lambda item: text(item, "name"), lambda item: text(item, "name"),
    )  # fmt: skip


def _pool_errors(spec: JsonObject) -> list[FieldError]:
    errors = pool_name_errors(text(spec, "pool", "name"), "spec.pool.name")
    count, generation = number(spec, "pool", "resourceSliceCount"), number(spec, "pool", "generation")
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return errors


def _place_errors(spec: JsonObject) -> list[FieldError]:
    """Return the errors of the fields that define which nodes can access the devices."""
    given, errors = _given_places(spec, "spec", "must be either unset or set to a non-empty string")
    terms = parts(spec, "nodeSelector", "nodeSelectorTerms")
    if "`nodeSelector`" in given and len(terms) != 1:
        shown: list[JsonValue] = [internal_form("core.NodeSelectorTerm", term) for term in terms]
        at = len(errors) - sum(error.field in {"spec.allNodes", "spec.perDeviceNodeSelection"} for error in errors)
        said = find(spec, "nodeSelector", "nodeSelectorTerms") is not None
        why = "must have exactly one node selector term"
        errors.insert(at, invalid("spec.nodeSelector.nodeSelectorTerms", shown if said else None, why))
    if not given:
        return [*errors, required("spec", _ONE_PLACE)]
    if len(given) > 1:
        shown_places = f"{{{', '.join(given)}}}"
        return [*errors, invalid("spec", shown_places, f"{_ONE_PLACE}, but multiple fields are set")]
    return errors


def _given_places(holder: JsonObject, path: str, empty: str) -> tuple[list[str], list[FieldError]]:
    """Return the fields of ``holder`` that define the nodes of its devices, and the errors of these fields."""
    given: list[str] = []
    errors: list[FieldError] = []
    name = holder.get("nodeName")
    if isinstance(name, str):
        given += ["`nodeName`"] if name else []
        field = f"{path}.nodeName"
        errors += each(field, name, subdomain_problems(name)) if name else [invalid(field, name, empty)]
    selector = part(holder, "nodeSelector")
    if selector is not None:
        given.append("`nodeSelector`")
        errors += node_selector_errors(selector, f"{path}.nodeSelector")
    for switch in ("allNodes", "perDeviceNodeSelection"):
        if holder.get(switch) is True:
            given.append(f"`{switch}`")
        elif holder.get(switch) is False:
            errors.append(invalid(f"{path}.{switch}", False, "must be either unset or set to true"))  # noqa: FBT003
    return given, errors


def _device_errors(device: JsonObject, path: str, before: dict[str, JsonValue], *, placed: bool) -> list[FieldError]:
    """Return the errors of one device.

    ``before`` contains the old taints by device. If ``placed`` is true, each device must define which nodes can access it.
    """
    name = text(device, "name")
    errors = each(f"{path}.name", name, dns_label_problems(name))
    attributes, capacities = part(device, "attributes") or {}, part(device, "capacity") or {}
    if (count := len(attributes) + len(capacities)) > PROPERTIES_LIMIT:
        why = f"the total number of attributes and capacities must not exceed {PROPERTIES_LIMIT}"
        errors.append(invalid(path, count, why))
    if len(attributes) > VALUES_LIMIT:
        why = f"the total number of attribute values must not exceed {VALUES_LIMIT}"
        errors.append(invalid(path, len(attributes), why))
    shared = flag(device, "allowMultipleAllocations")
    errors += _map_errors(attributes, f"{path}.attributes", _attribute_errors)
    errors += _map_errors(capacities, f"{path}.capacity", lambda item, at: capacity_errors(item, at, shared=shared))
    if name not in before or (before[name] or []) != (device.get("taints") or []):
        errors += listed_errors(parts(device, "taints"), TAINTS_LIMIT, f"{path}.taints", _taint_errors)
    errors += set_errors(
        parts(device, "consumesCounters"), CONSUMED_LIMIT, f"{path}.consumesCounters",
        lambda item, at: _counters_errors(item, at, "counterSet"),
        lambda item: text(item, "counterSet"), lambda item: text(item, "counterSet"),
    )  # fmt: skip
    errors += _device_place_errors(device, path, placed=placed)
    return errors + binding_errors(texts(device, "bindingConditions"), texts(device, "bindingFailureConditions"), path)


def _device_place_errors(device: JsonObject, path: str, *, placed: bool) -> list[FieldError]:
    if not placed:
        said = any(device.get(name) is not None for name in _PLACES[:3])
        return [invalid(path, None, _NO_DEVICE_PLACE)] if said else []
    given, errors = _given_places(device, path, "must not be empty")
    if not given:
        return [*errors, required(path, _ONE_DEVICE_PLACE)]
    return errors if len(given) == 1 else [*errors, invalid(path, f"{{{', '.join(given)}}}", _ONE_DEVICE_PLACE)]


def _map_errors(
    items: JsonObject, path: str, errors_of: Callable[[JsonObject, str], list[FieldError]]
) -> list[FieldError]:
    """Return the errors of a map whose keys are qualified names."""
    errors: list[FieldError] = []
    for key, item in items.items():
        errors += qualified_name_errors(key, path)
        errors += errors_of(item if isinstance(item, dict) else {}, f"{path}[{shortened(key, KEY_LIMIT)}]")
    return errors


def _attribute_errors(attribute: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of an attribute, whose value has one of four types."""
    errors: list[FieldError] = []
    for name in ("string", "version"):
        value = attribute.get(name)
        if not isinstance(value, str):
            continue
        if name == "version" and not _VERSION.fullmatch(value):
            errors.append(invalid(f"{path}.{name}", value, "must be a string compatible with semver.org spec 2.0.0"))
        if len(value.encode()) > VALUE_BYTES:
            errors.append(too_long(f"{path}.{name}", VALUE_BYTES))
    count = sum(attribute.get(name) is not None for name in _ATTRIBUTE)
    if count != 1:
        shown = internal_form("resource.DeviceAttribute", attribute) if count else ""
        errors.append(invalid(path, shown, "exactly one value must be specified"))
    return errors


def _taint_errors(taint: JsonObject, path: str) -> list[FieldError]:
    key, value, effect = (text(taint, name) for name in ("key", "value", "effect"))
    errors = each(f"{path}.key", key, key_problems(key))
    errors += each(f"{path}.value", value, value_problems(value)) if value else []
    if not effect:
        return [*errors, required(f"{path}.effect")]
    return errors if effect in EFFECTS else [*errors, not_supported(f"{path}.effect", effect, EFFECTS)]


def _counters_errors(item: JsonObject, path: str, named: str) -> list[FieldError]:
    """Return the errors of a set of counters, or of a device's use of such a set.

    ``named`` is the member that contains the name of the set.
    """
    name, field = text(item, named), f"{path}.counters"
    errors = each(f"{path}.{named}", name, dns_label_problems(name)) if name else [required(f"{path}.{named}")]
    counters = part(item, "counters") or {}
    if not counters:
        return [*errors, required(field)]
    if len(counters) > COUNTERS_LIMIT:
        return [*errors, too_many(field, len(counters), COUNTERS_LIMIT)]
    return errors + [error for key in counters for error in each(field, key, dns_label_problems(key))]


def _warnings(new: JsonObject, _old: JsonObject | None) -> list[str]:
    driver = text(new, "spec", "driver")
    if driver == driver.lower():
        return []
    return [f"spec.driver: driver names should be lowercase; {quoted(driver)} contains uppercase characters"]


RESOURCE_SLICE_RULES: Final[dict[str, Rules]] = {
    "ResourceSlice.resource.k8s.io": Rules(create=slice_errors, update=slice_errors, warnings=_warnings),
}
