"""The validation of Nodes."""

import re
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.resources import quantity_errors
from wharfinger.control_plane.objects.addresses import cidr_warnings, legacy_cidr_errors, parse_cidr
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts, repeated, texts
from wharfinger.control_plane.objects.metadata import core_meta_errors, meta_update_errors
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    each,
    forbidden,
    internal_error,
    invalid,
    not_supported,
    quoted,
    required,
    shown,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.selectors import key_problems, value_problems

SIMULATED_NODE: Final = "simulated"
"""The name of the simulated node, on which Pods run if there are no Node objects."""
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_CIDR_KEPT: Final = 'node updates may not change podCIDR except from "" to valid'


def _node_errors(node: JsonObject) -> list[FieldError]:
    errors = _taint_errors(node)
    errors += _amount_errors(node)
    capacity = find(node, "status", "nodeInfo", "swap", "capacity")
    if isinstance(capacity, int) and capacity <= 0:
        errors.append(invalid("metadata.nodeSwapStatus.capacity", capacity, "must be greater than zero"))
    errors += _feature_errors(node)
    ranges = texts(node, "spec", "podCIDRs")
    for index, value in enumerate(ranges):
        errors += legacy_cidr_errors(f"spec.podCIDRs[{index}]", value)
    return errors + (_family_errors(ranges) if len(ranges) > 1 else [])


def _family_errors(ranges: list[str]) -> list[FieldError]:
    """Return an error for two or more ranges, unless they are exactly one IPv4 range and one IPv6 range."""
    field, why = "spec.podCIDRs", "may specify no more than one CIDR for each IP family"
    shown: list[JsonValue] = [*ranges]
    parsed = [parse_cidr(value) for value in ranges]
    if None in parsed:
        at = parsed.index(None)
        said = f"invalid CIDR[{at}]: <nil> (invalid CIDR address: {ranges[at]})"
        failed = internal_error(field, f"invalid PodCIDRs. failed to check with dual stack with error:{said}")
        return [failed, invalid(field, shown, why)]
    families = {found[0].version for found in parsed if found is not None}
    return [invalid(field, shown, why)] if len(ranges) > 2 or len(families) < 2 else []


def _taint_errors(node: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(parts(node, "spec", "taints")):
        field = f"metadata.taints[{index}]"
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        errors += each(f"{field}.key", key, key_problems(key))
        if problems := value_problems(value):
            errors.append(invalid(f"{field}.value", value, ";".join(problems)))
        if not effect:
            errors.append(required(f"{field}.effect"))
        elif effect not in EFFECTS:
            errors.append(not_supported(f"{field}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            form: JsonObject = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            said = f"Duplicate value: {shown(form)}: taints must be unique by key and effect pair"
            errors.append(FieldError(field, "FieldValueDuplicate", said))
        seen.add((key, effect))
    return errors


def _amount_errors(node: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("capacity", "allocatable"):
        for resource, value in (part(node, "status", name) or {}).items():
            errors += quantity_errors(resource, value, f"status.{name}.{resource}")
    return errors


def _feature_errors(node: JsonObject) -> list[FieldError]:
    field = "status.declaredFeatures"
    names = texts(node, "status", "declaredFeatures")
    errors: list[FieldError] = []
    for index, name in enumerate(names):
        if len(name) > 253:
            why = "must be no more than 253 characters"
            errors.append(invalid(f"{field}[{index}]", name, f"invalid feature name {quoted(name)}: {why}"))
        elif not _FEATURE.fullmatch(name):
            why = (
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
                "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            )
            errors.append(invalid(f"{field}[{index}]", name, f"invalid feature name {quoted(name)}: {why}"))
        following = names[index + 1] if index + 1 < len(names) else None
        if following == name:
            errors.append(duplicate(f"{field}[{index + 1}]", name))
        elif following is not None and name > following:
            errors.append(invalid(f"{field}[{index + 1}]", following, "list must be sorted alphabetically"))
    return errors


def _change_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors that Kubernetes' ``ValidateNodeUpdate`` finds, in updates of the Node and of its status."""
    errors = meta_update_errors(new, old) + _amount_errors(new) + _feature_errors(new)
    addresses = [(text(item, "type"), text(item, "address")) for item in parts(new, "status", "addresses")]
    for index in sorted(repeated(addresses)):
        kind, address = addresses[index]
        errors.append(duplicate(f"status.addresses[{index}]", {"Type": kind, "Address": address}))
    before, after = texts(old, "spec", "podCIDRs"), texts(new, "spec", "podCIDRs")
    if before and len(before) != len(after):
        errors.append(forbidden("spec.podCIDRs", _CIDR_KEPT))
    elif before:
        errors += [
            forbidden("spec.podCIDRs", _CIDR_KEPT) for pair in zip(before, after, strict=True) if pair[0] != pair[1]
        ]
    provider = text(old, "spec", "providerID")
    if provider and text(new, "spec", "providerID") != provider:
        why = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", why))
    errors += _taint_errors(new)
    if text(new, "spec", "externalID") != text(old, "spec", "externalID"):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return core_meta_errors(new, namespaced=False) + _node_errors(new) + _change_errors(new, old)


def _warnings(node: JsonObject, _old: JsonObject | None) -> list[str]:
    warnings = []
    if text(node, "spec", "externalID"):
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for index, value in enumerate(texts(node, "spec", "podCIDRs")):
        warnings += cidr_warnings(f"spec.podCIDRs[{index}]", value)
    return warnings


NODE_RULES: Final = Rules(create=_node_errors, update=_update_errors, status=_change_errors, warnings=_warnings)
