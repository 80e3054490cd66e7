"""The validation of device claims: requests, selectors, constraints and configuration (``spec.devices`` of
resource.k8s.io/v1).
"""

import json
from collections.abc import Mapping
from typing import Final

from wharfinger.control_plane.api.resource.device_names import fully_qualified_name_errors, listed_errors, set_errors
from wharfinger.control_plane.api.resource.device_selectors import COST_LIMIT, selector_checked, selector_cost
from wharfinger.control_plane.api.storage.csi_drivers import driver_name_errors
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required, too_long
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.selectors import key_problems, value_problems

LISTS_LIMIT: Final = 32
"""The maximum number of entries in each list of requests, constraints, configurations, selectors or results."""
ALTERNATIVES_LIMIT: Final = 8
EXPRESSION_BYTES: Final = 10 * 1024
PARAMETERS_BYTES: Final = 10 * 1024
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_OPERATORS: Final = ("Equal", "Exists")
_MODES: Final = ("All", "ExactCount")
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE: Final = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)

RequestNames = Mapping[str, frozenset[str]]
"""The names of a claim's requests, each with the names of its alternatives."""


def request_names(devices: JsonValue) -> RequestNames:
    """Return the names of the device requests to which the other fields of a ResourceClaim may refer."""
    return {
        text(request, "name"): frozenset(text(item, "name") for item in parts(request, "firstAvailable"))
        for request in parts(devices, "requests")
    }


def device_claim_errors(devices: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of ``devices``, the part of a claim at ``path``."""
    names = request_names(devices)
    errors = set_errors(
        parts(devices, "requests"), LISTS_LIMIT, f"{path}.requests", _request_errors,
        lambda item: text(item, "name"), lambda item: text(item, "name"),
    )  # fmt: skip
    errors += listed_errors(
        parts(devices, "constraints"),
        LISTS_LIMIT,
        f"{path}.constraints",
        lambda item, field: _constraint_errors(item, field, names),
    )
    return errors + listed_errors(
        parts(devices, "config"),
        LISTS_LIMIT,
        f"{path}.config",
        lambda item, field: reference_list_errors(item, field, names) + configuration_errors(item, field),
    )


def _request_errors(request: JsonObject, path: str) -> list[FieldError]:
    name = text(request, "name")
    errors = each(f"{path}.name", name, dns_label_problems(name))
    exactly, alternatives = part(request, "exactly"), parts(request, "firstAvailable")
    if exactly is None and not alternatives:
        return [*errors, required(path, _ONE_REQUEST)]
    if exactly is not None and alternatives:
        return [*errors, invalid(path, None, f"{_ONE_REQUEST}, but multiple fields are set")]
    if exactly is not None:
        return errors + _asked_errors(exactly, f"{path}.exactly")
    return errors + set_errors(
        alternatives, ALTERNATIVES_LIMIT, f"{path}.firstAvailable", _alternative_errors,
        lambda item: text(item, "name"), lambda item: text(item, "name"),
    )  # fmt: skip


def _alternative_errors(request: JsonObject, path: str) -> list[FieldError]:
    name = text(request, "name")
    return each(f"{path}.name", name, dns_label_problems(name)) + _asked_errors(request, path)


def _asked_errors(asked: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of what a request asks for: device class, selectors, count and tolerations."""
    field, name = f"{path}.deviceClassName", text(asked, "deviceClassName")
    errors = each(field, name, subdomain_problems(name)) if name else [required(field)]
    errors += selectors_errors(parts(asked, "selectors"), f"{path}.selectors")
    mode, count = text(asked, "allocationMode"), number(asked, "count")
    if mode == "All" and count:
        errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        errors.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    for index, toleration in enumerate(parts(asked, "tolerations")):
        errors += _toleration_errors(toleration, f"{path}.tolerations[{index}]")
    return errors


def selectors_errors(selectors: list[JsonObject], field: str) -> list[FieldError]:
    """Return the errors of device selectors: expressions in CEL."""
    return listed_errors(selectors, LISTS_LIMIT, field, _selector_errors)


def _selector_errors(selector: JsonObject, path: str) -> list[FieldError]:
    if part(selector, "cel") is None:
        return [required(f"{path}.cel")]
    field, expression = f"{path}.cel.expression", text(selector, "cel", "expression")
    if len(expression.encode()) > EXPRESSION_BYTES:
        return [too_long(field, EXPRESSION_BYTES)]
    checked = selector_checked(expression)
    if isinstance(checked, str):
        return [invalid(field, expression, checked)]
    return [forbidden(field, "too complex, exceeds cost limit")] if selector_cost(checked) > COST_LIMIT else []


def _toleration_errors(toleration: JsonObject, path: str) -> list[FieldError]:
    key, operator, value, effect = (text(toleration, name) for name in ("key", "operator", "value", "effect"))
    errors = each(f"{path}.key", key, key_problems(key)) if key else []
    if operator == "Exists":
        errors += [invalid(f"{path}.value", value, "must be empty for operator `Exists`")] if value else []
    elif operator == "Equal":
        errors += each(f"{path}.value", value, value_problems(value))
    elif operator:
        errors.append(not_supported(f"{path}.operator", operator, _OPERATORS))
    else:
        errors.append(required(f"{path}.operator"))
    if effect and effect not in EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, EFFECTS))
    return errors


def _constraint_errors(constraint: JsonObject, path: str, names: RequestNames) -> list[FieldError]:
    errors = reference_list_errors(constraint, path, names)
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field) is not None:
            return errors + fully_qualified_name_errors(text(constraint, field), f"{path}.{field}")
    return [*errors, required(path, _ONE_ATTRIBUTE)]


def reference_list_errors(item: JsonObject, path: str, names: RequestNames) -> list[FieldError]:
    """Return the errors of an item's list ``requests``; its entries must name requests of the claim."""
    return set_errors(
        texts(item, "requests"), LISTS_LIMIT, f"{path}.requests",
        lambda name, field: reference_errors(name, field, names), lambda name: name, lambda name: name,
    )  # fmt: skip


def reference_errors(name: str, field: str, names: RequestNames) -> list[FieldError]:
    """Return the errors of a reference to a request, or to a request and one of its alternatives."""
    segments = name.split("/")
    if len(segments) > 2:
        return [invalid(field, name, _REFERENCE)]
    errors = [error for segment in segments for error in each(field, segment, dns_label_problems(segment))]
    known = names.get(segments[0])
    if known is None or (len(segments) == 2 and segments[1] not in known):
        errors.append(invalid(field, name, _REFERENCE))
    return errors


def configuration_errors(item: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a configuration, which consists of opaque parameters for a driver."""
    opaque = part(item, "opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    errors = driver_name_errors(text(opaque, "driver"), f"{path}.opaque.driver")
    return errors + document_errors(opaque.get("parameters"), f"{path}.opaque.parameters", PARAMETERS_BYTES)


def document_errors(value: JsonValue, field: str, limit: int) -> list[FieldError]:
    """Return the errors of a value that must be a JSON object of at most ``limit`` bytes."""
    if value is None:
        return [required(field)]
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > limit:
        return [too_long(field, limit)]
    return [] if isinstance(value, dict) else [invalid(field, "<value omitted>", "must be a valid JSON object")]
