"""The validation of PriorityClasses (scheduling.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import flag
from wharfinger.control_plane.wire.field_errors import forbidden, immutable, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

HIGHEST: Final = 1_000_000_000
"""The highest value that a PriorityClass of a user may have."""
SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_POLICIES: Final = ("PreemptLowerPriority", "Never")


def priority_class_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of a PriorityClass."""
    errors: list[FieldError] = []
    name, value = text(one, "metadata", "name"), number(one, "value")
    if name.startswith("system-"):
        if problem := _system_problem(name, value, globally=flag(one, "globalDefault")):
            why = f"priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            errors.append(forbidden("metadata.name", why))
    elif value > HIGHEST:
        errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST}"))
    policy = text(one, "preemptionPolicy")
    if not policy:
        errors.append(required("preemptionPolicy"))
    elif policy not in _POLICIES:
        errors.append(not_supported("preemptionPolicy", policy, _POLICIES))
    return errors


def _system_problem(name: str, value: int, *, globally: bool) -> str:
    known = SYSTEM.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if globally else ""


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = (
        [] if number(new, "value") == number(old, "value") else [forbidden("value", "may not be changed in an update.")]
    )
    return errors + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


PRIORITY_RULES: Final[dict[str, Rules]] = {
    "PriorityClass.scheduling.k8s.io": Rules(create=priority_class_errors, update=_update_errors),
}
