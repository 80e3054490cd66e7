"""The validation of PodDisruptionBudgets, and of conditions of type ``metav1.Condition``."""

import re
from typing import Final

from wharfinger.control_plane.objects.amounts import (
    above_hundred_percent,
    count_or_percent_errors,
    none_negative,
    number,
    text,
)
from wharfinger.control_plane.objects.label_selectors import selector_errors, shown_selector
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.objects.names import rule
from wharfinger.control_plane.wire.field_errors import duplicate, each, invalid, not_supported, required, too_long
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.kube.selectors import key_problems

_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RULE: Final = rule(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or "
    "'_,:', and must end with an alphanumeric character or '_'",
    _REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB",
)  # fmt: skip
_MAX_REASON: Final = 1024
_MAX_MESSAGE: Final = 32 * 1024


def budget_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a PodDisruptionBudget's spec."""
    return _errors(obj, any_value=False)


def budget_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed budget; invalid label values are allowed if the old selector was invalid."""
    return _errors(new, any_value=bool(selector_errors(find(old, "spec", "selector"), "")))


def _errors(obj: JsonObject, *, any_value: bool) -> list[FieldError]:
    spec, errors = find_object(obj, "spec"), list[FieldError]()
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        errors.append(invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set"))
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            errors += count_or_percent_errors(value, f"spec.{name}") + above_hundred_percent(value, f"spec.{name}")
    errors += selector_errors(spec.get("selector"), "spec.selector", any_value=any_value)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return errors


def _shown(spec: JsonObject) -> JsonObject:
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown_selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


def budget_status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    """Return the errors of a written status of a PodDisruptionBudget."""
    errors = conditions_errors(find(new, "status", "conditions"), "status.conditions")
    return errors + none_negative(new.get("status"), "status", _COUNTS)


def conditions_errors(conditions: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of conditions at ``path``."""
    seen, errors = set[str](), list[FieldError]()
    for index, condition in enumerate(parts({"": conditions}, "")):
        here, kind = f"{path}[{index}]", text(condition, "type")
        if kind in seen:
            errors.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        errors += _condition_errors(condition, here)
    return errors


def _condition_errors(condition: JsonObject, path: str) -> list[FieldError]:
    kind, status, reason = (text(condition, name) for name in ("type", "status", "reason"))
    errors = each(f"{path}.type", kind, key_problems(kind))
    if status not in _STATUSES:
        errors.append(not_supported(f"{path}.status", status, _STATUSES))
    if (generation := number(condition, "observedGeneration")) < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime"))
    if not reason:
        errors.append(required(f"{path}.reason"))
    else:
        errors += [] if re.fullmatch(_REASON, reason) else [invalid(f"{path}.reason", reason, _REASON_RULE)]
        errors += [too_long(f"{path}.reason", _MAX_REASON)] if len(reason.encode()) > _MAX_REASON else []
    if len(text(condition, "message").encode()) > _MAX_MESSAGE:
        errors.append(too_long(f"{path}.message", _MAX_MESSAGE))
    return errors
