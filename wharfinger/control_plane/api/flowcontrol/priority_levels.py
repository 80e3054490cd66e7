"""The validation of PriorityLevelConfigurations (flowcontrol.apiserver.k8s.io/v1)."""

import math
from typing import Final

from wharfinger.control_plane.api.flowcontrol.flow_schemas import MANDATORY, condition_errors
from wharfinger.control_plane.objects.amounts import number, optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

TYPES: Final = ("Exempt", "Limited")
RESPONSES: Final = ("Queue", "Reject")
QUEUES_LIMIT: Final = 10**7
HASH_BITS: Final = 60
ZERO_SHARES: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


def priority_level_errors(level: JsonObject) -> list[FieldError]:
    """Return the errors of a PriorityLevelConfiguration."""
    errors: list[FieldError] = []
    if find(level, "metadata", "annotations", ZERO_SHARES) is not None:
        errors.append(forbidden("metadata.annotations", f"annotation '{ZERO_SHARES}' is forbidden"))
    spec = part(level, "spec") or {}
    kind, exempt, limited = text(spec, "type"), part(spec, "exempt"), part(spec, "limited")
    if (text(level, "metadata", "name") == "exempt") != (kind == "Exempt"):
        errors.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        errors += _shares_errors(exempt or {}, "spec.exempt") + _lending_errors(exempt or {}, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            errors.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            errors += _limited_errors(limited, "spec.limited")
    else:
        errors.append(not_supported("spec.type", kind, TYPES))
    return errors + condition_errors(level)


def _shares_errors(settings: JsonObject, path: str) -> list[FieldError]:
    shares = number(settings, "nominalConcurrencyShares")
    why = "must be a non-negative integer"
    return [invalid(f"{path}.nominalConcurrencyShares", shares, why)] if shares < 0 else []


def _lending_errors(settings: JsonObject, path: str) -> list[FieldError]:
    percent = optional_number(settings, "lendablePercent")
    if percent is None or 0 <= percent <= 100:
        return []
    return [invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive")]


def _limited_errors(limited: JsonObject, path: str) -> list[FieldError]:
    errors = _shares_errors(limited, path)
    errors += _response_errors(part(limited, "limitResponse") or {}, f"{path}.limitResponse")
    errors += _lending_errors(limited, path)
    borrowed = optional_number(limited, "borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        why = "if specified, must be a non-negative integer"
        errors.append(invalid(f"{path}.borrowingLimitPercent", borrowed, why))
    return errors


def _response_errors(response: JsonObject, path: str) -> list[FieldError]:
    kind, queuing, field = text(response, "type"), part(response, "queuing"), f"{path}.queuing"
    if kind not in RESPONSES:
        return [not_supported(f"{path}.type", kind, RESPONSES)]
    if kind == "Reject":
        why = "must be nil if limited.limitResponse.type is not Limited"
        return [] if queuing is None else [forbidden(field, why)]
    if queuing is None:
        return [required(field, "must not be empty if limited.limitResponse.type is Limited")]
    return _queuing_errors(queuing, field)


def _queuing_errors(queuing: JsonObject, path: str) -> list[FieldError]:
    length, queues, hand = (number(queuing, name) for name in ("queueLengthLimit", "queues", "handSize"))
    errors = [] if length > 0 else [invalid(f"{path}.queueLengthLimit", length, "must be positive")]
    if queues <= 0:
        errors.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > QUEUES_LIMIT:
        errors.append(invalid(f"{path}.queues", queues, f"must not be greater than {QUEUES_LIMIT}"))
    if hand <= 0:
        errors.append(invalid(f"{path}.handSize", hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > HASH_BITS:
        why = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        errors.append(invalid(f"{path}.handSize", hand, why))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors, name = priority_level_errors(new), text(new, "metadata", "name")
    if name in MANDATORY and _fixed(new, name) != _fixed(old, name):
        shown = internal_form("flowcontrol.PriorityLevelConfigurationSpec", find(new, "spec"))
        but = " except the 'spec.exempt' field" if name == "exempt" else ""
        errors.append(invalid("spec", shown, f"spec of '{name}'{but} must equal the fixed value"))
    return errors


def _fixed(level: JsonObject, name: str) -> JsonObject:
    spec = part(level, "spec") or {}
    return {key: value for key, value in spec.items() if key != "exempt" or name != "exempt"}


PRIORITY_LEVEL_RULES: Final[dict[str, Rules]] = {
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": Rules(
        create=priority_level_errors, update=_update_errors, status=lambda new, _old: condition_errors(new)
    ),
}
