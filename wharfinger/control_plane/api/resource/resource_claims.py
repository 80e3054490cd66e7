"""The validation of DeviceClasses, ResourceClaims and their templates (resource.k8s.io/v1)."""

import re
from collections.abc import Callable
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.resources import is_extended
from wharfinger.control_plane.api.core.pod_specs.scheduling import node_selector_errors
from wharfinger.control_plane.api.core.pod_specs.volumes import template_metadata_errors
from wharfinger.control_plane.api.policy.disruption_budgets import conditions_errors
from wharfinger.control_plane.api.resource.device_names import (
    binding_errors,
    listed_errors,
    pool_name_errors,
    set_errors,
)
from wharfinger.control_plane.api.resource.device_requests import (
    LISTS_LIMIT,
    RequestNames,
    configuration_errors,
    device_claim_errors,
    document_errors,
    reference_errors,
    reference_list_errors,
    request_names,
    selectors_errors,
)
from wharfinger.control_plane.api.storage.csi_drivers import driver_name_errors
from wharfinger.control_plane.objects.addresses import parse_cidr
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.internal_types import internal_form, same_form
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.metadata import core_meta_errors, meta_update_errors
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import (
    IMMUTABLE,
    each,
    forbidden,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

RESERVED_LIMIT: Final = 256
CONDITIONS_LIMIT: Final = 8
DATA_BYTES: Final = 10 * 1024
ADDRESSES_LIMIT: Final = 16
_NETWORK_BYTES: Final = {"interfaceName": 256, "hardwareAddress": 128}
_SOURCES: Final = ("FromClaim", "FromClass")
_UID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UID_RULE: Final = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
_CIDR_RULE: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_DELETED: Final = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
_DEVICE: Final = ("driver", "pool", "device", "shareID")


def class_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of the spec of a DeviceClass."""
    errors = selectors_errors(parts(one, "spec", "selectors"), "spec.selectors")
    errors += listed_errors(parts(one, "spec", "config"), LISTS_LIMIT, "spec.config", configuration_errors)
    name = find(one, "spec", "extendedResourceName")
    if isinstance(name, str) and not is_extended(name):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors


def claim_errors(claim: JsonObject) -> list[FieldError]:
    """Return the errors of the spec of a ResourceClaim."""
    return device_claim_errors(find(claim, "spec", "devices"), "spec.devices")


def template_errors(template: JsonObject) -> list[FieldError]:
    """Return the errors of the spec of a ResourceClaimTemplate."""
    errors = template_metadata_errors(part(template, "spec", "metadata") or {}, "spec.metadata")
    return errors + device_claim_errors(find(template, "spec", "spec", "devices"), "spec.spec.devices")


def _kept(name: str) -> Callable[[JsonObject, JsonObject], list[FieldError]]:
    """Return a rule that forbids changes of the spec; ``name`` is upstream's name of the spec's type."""

    def errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
        now, then = new.get("spec"), old.get("spec")
        return [] if same_form(name, now, then) else [invalid("spec", internal_form(name, now), IMMUTABLE)]

    return errors


def claim_status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a written status of a ResourceClaim: consumers, allocation, and the status of its devices."""
    reserved, allocation = parts(new, "status", "reservedFor"), part(new, "status", "allocation")
    errors = set_errors(
        reserved, RESERVED_LIMIT, "status.reservedFor", _consumer_errors,
        lambda item: text(item, "uid"), lambda item: text(item, "uid"),
    )  # fmt: skip
    given = {device_identity(item) for item in parts(allocation, "devices", "results")}
    errors += set_errors(
        parts(new, "status", "devices"), -1, "status.devices",
        lambda item, path: _device_errors(item, path, given), device_identity, _shown_identity,
    )  # fmt: skip
    if reserved and allocation is None:
        errors.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif reserved and find(new, "metadata", "deletionTimestamp") is not None:
        known = parts(old, "status", "reservedFor")
        errors += [forbidden("status.reservedFor", _DELETED)] if any(item not in known for item in reserved) else []
    if allocation is None:
        return errors
    before = part(old, "status", "allocation")
    if before is None:
        return errors + _allocation_errors(allocation, request_names(find(new, "spec", "devices")))
    if same_form("resource.AllocationResult", allocation, before):
        return errors
    shown = internal_form("resource.AllocationResult", allocation)
    return [*errors, invalid("status.allocation", shown, IMMUTABLE)]


def device_identity(device: JsonObject) -> tuple[str, ...]:
    """Return the fields that identify an allocated device: driver, pool, device and share."""
    return tuple(text(device, name) for name in _DEVICE)


def _shown_identity(device: JsonObject) -> JsonObject:
    return {name[:1].upper() + name[1:]: text(device, name) for name in _DEVICE}


def _consumer_errors(consumer: JsonObject, path: str) -> list[FieldError]:
    return [required(f"{path}.{name}") for name in ("resource", "name", "uid") if not text(consumer, name)]


def _named_errors(device: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the fields that identify a device."""
    name = text(device, "device")
    errors = driver_name_errors(text(device, "driver"), f"{path}.driver")
    errors += pool_name_errors(text(device, "pool"), f"{path}.pool")
    return errors + each(f"{path}.device", name, dns_label_problems(name))


def _share_errors(device: JsonObject, path: str) -> list[FieldError]:
    share = device.get("shareID")
    if not isinstance(share, str):
        return []
    if why := _uid_problem(share):
        return [invalid(f"{path}.shareID", share, why)]
    return []


def _uid_problem(uid: str) -> str:
    size = len(uid.encode())
    if size == 36:
        if not _UID.fullmatch(uid):
            return "error validating uid: invalid UUID format"
        return "" if uid == uid.lower() else _UID_RULE
    if size == 45 and uid[:9].lower() != "urn:uuid:":
        return f"error validating uid: invalid urn prefix: {quoted(uid[:9])}"
    if size == 38 and (uid[0], uid[-1]) != ("{", "}"):
        return "error validating uid: invalid bracketed UUID format"
    if size not in {32, 38, 45}:
        return f"error validating uid: invalid UUID length: {size}"
    inner = {32: uid, 38: uid[1:-1], 45: uid[9:]}[size]
    sound = re.fullmatch("[0-9a-fA-F]{32}", inner) if size == 32 else _UID.fullmatch(inner)
    return _UID_RULE if sound else "error validating uid: invalid UUID format"


def _device_errors(device: JsonObject, path: str, given: set[tuple[str, ...]]) -> list[FieldError]:
    errors = _named_errors(device, path) + _share_errors(device, path)
    if device_identity(device) not in given:
        errors.append(invalid(path, _shown_identity(device), "must be an allocated device in the claim"))
    conditions = parts(device, "conditions")
    if len(conditions) > CONDITIONS_LIMIT:
        errors.append(too_many(f"{path}.conditions", len(conditions), CONDITIONS_LIMIT))
    errors += conditions_errors(device.get("conditions"), f"{path}.conditions")
    if device.get("data") is not None:
        errors += document_errors(device["data"], f"{path}.data", DATA_BYTES)
    network = part(device, "networkData")
    return errors if network is None else errors + _network_errors(network, f"{path}.networkData")


def _network_errors(network: JsonObject, path: str) -> list[FieldError]:
    errors = [
        too_long(f"{path}.{name}", limit)
        for name, limit in _NETWORK_BYTES.items()
        if len(text(network, name).encode()) > limit
    ]
    return errors + set_errors(
        texts(network, "ips"), ADDRESSES_LIMIT, f"{path}.ips", _address_errors, lambda item: item, lambda item: item
    )


def _address_errors(value: str, field: str) -> list[FieldError]:
    """Return the errors of an interface's address, which includes the length of the network's prefix."""
    parsed = parse_cidr(value)
    if parsed is None:
        return [invalid(field, value, _CIDR_RULE)]
    canonical = f"{parsed[0]}/{parsed[1].prefixlen}"
    return [] if value == canonical else [invalid(field, value, f"must be in canonical form ({quoted(canonical)})")]


def _allocation_errors(allocation: JsonObject, names: RequestNames) -> list[FieldError]:
    """Return the errors of a claim's first allocation."""
    path = "status.allocation"
    errors = listed_errors(
        parts(allocation, "devices", "results"),
        LISTS_LIMIT,
        f"{path}.devices.results",
        lambda item, at: _result_errors(item, at, names),
    )
    errors += listed_errors(
        parts(allocation, "devices", "config"),
        2 * LISTS_LIMIT,
        f"{path}.devices.config",
        lambda item, at: (
            _source_errors(text(item, "source"), f"{at}.source")
            + reference_list_errors(item, at, names)
            + configuration_errors(item, at)
        ),
    )
    selector = part(allocation, "nodeSelector")
    return errors if selector is None else errors + node_selector_errors(selector, f"{path}.nodeSelector")


def _result_errors(result: JsonObject, path: str, names: RequestNames) -> list[FieldError]:
    errors = reference_errors(text(result, "request"), f"{path}.request", names) + _named_errors(result, path)
    waiting, failing = texts(result, "bindingConditions"), texts(result, "bindingFailureConditions")
    return errors + binding_errors(waiting, failing, path) + _share_errors(result, path)


def _source_errors(source: str, field: str) -> list[FieldError]:
    if not source:
        return [required(field)]
    return [] if source in _SOURCES else [not_supported(field, source, _SOURCES)]


_template_kept = _kept("resource.ResourceClaimTemplateSpec")


def _changed_template_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = core_meta_errors(new) + template_errors(new) + meta_update_errors(new, old)
    return errors + _template_kept(new, old)


RESOURCE_CLAIM_RULES: Final[dict[str, Rules]] = {
    "DeviceClass.resource.k8s.io": Rules(create=class_errors, update=lambda new, _old: class_errors(new)),
    "ResourceClaim.resource.k8s.io": Rules(
        create=claim_errors, update=_kept("resource.ResourceClaimSpec"), status=claim_status_errors
    ),
    "ResourceClaimTemplate.resource.k8s.io": Rules(create=template_errors, update=_changed_template_errors),
}
