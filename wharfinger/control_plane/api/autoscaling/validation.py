"""The validation of HorizontalPodAutoscalers, in the form of autoscaling/v2 (the stored form)."""

from typing import Final

from wharfinger.control_plane.api.autoscaling.metrics import has_api_version_problem, metric_errors, reference_errors
from wharfinger.control_plane.objects.amounts import none_negative, number, optional_number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire.field_errors import NEGATIVE, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.formats.quantity import parse_quantity

_MAX_PERIOD: Final = 1800
_MAX_WINDOW: Final = 3600
_SELECTIONS: Final = ("Disabled", "Max", "Min")
_POLICIES: Final = ("Percent", "Pods")
_FROM_ZERO: Final = frozenset({"Object", "External"})


def autoscaler_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a new autoscaler's spec."""
    core = find(obj, "spec", "scaleTargetRef", "kind") == "ReplicationController"
    return _errors(obj, least=1, check_target=True, core=core, check_described=True)


def autoscaler_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed autoscaler; an old minimum of zero and old wrong apiVersions may be kept."""
    target, before = find_object(new, "spec", "scaleTargetRef"), find_object(old, "spec", "scaleTargetRef")
    same = all(target.get(name) == before.get(name) for name in ("apiVersion", "kind"))
    described = [find(metric, "object", "describedObject") for metric in parts(old, "spec", "metrics")]
    return _errors(
        new,
        least=0 if optional_number(old, "spec", "minReplicas") == 0 else 1,
        check_target=not same,
        core=target.get("kind") == "ReplicationController",
        check_described=not any(map(has_api_version_problem, described)),
    )


def _errors(obj: JsonObject, *, least: int, check_target: bool, core: bool, check_described: bool) -> list[FieldError]:
    spec = find_object(obj, "spec")
    lowest, highest = optional_number(spec, "minReplicas"), number(spec, "maxReplicas")
    errors: list[FieldError] = []
    if lowest is not None and lowest < least:
        errors.append(invalid("spec.minReplicas", lowest, f"must be greater than or equal to {least}"))
    if highest == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif highest < 0:
        errors.append(invalid("spec.maxReplicas", highest, "must be greater than or equal to 1"))
    if lowest is not None and highest < lowest:
        errors.append(invalid("spec.maxReplicas", highest, "must be greater than or equal to `minReplicas`"))
    target = find_object(spec, "scaleTargetRef")
    errors += reference_errors(target, "spec.scaleTargetRef", check_version=check_target, core=core)
    metrics = parts(spec, "metrics")
    for index, metric in enumerate(metrics):
        errors += metric_errors(metric, f"spec.metrics[{index}]", check_version=check_described)
    if lowest == 0 and not any(metric.get("type") in _FROM_ZERO for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", why))
    for name in ("scaleUp", "scaleDown"):
        errors += _rules_errors(part(spec, "behavior", name), f"spec.behavior.{name}")
    return errors


def _rules_errors(rules: JsonObject | None, path: str) -> list[FieldError]:
    if rules is None:
        return []
    errors: list[FieldError] = []
    window, selection = optional_number(rules, "stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > _MAX_WINDOW:
        why = f"must be less than or equal to {_MAX_WINDOW}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    if selection is not None and selection not in _SELECTIONS:
        errors.append(not_supported(f"{path}.selectPolicy", selection, _SELECTIONS))
    policies = parts(rules, "policies")
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        errors += _policy_errors(policy, f"{path}.policies[{index}]")
    return errors + _tolerance_errors(rules.get("tolerance"), f"{path}.tolerance")


def _policy_errors(policy: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (kind := text(policy, "type")) not in _POLICIES:
        errors.append(not_supported(f"{path}.type", kind, _POLICIES))
    value, period = number(policy, "value"), number(policy, "periodSeconds")
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > _MAX_PERIOD:
        errors.append(invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_MAX_PERIOD}"))
    return errors


def _tolerance_errors(tolerance: JsonValue, path: str) -> list[FieldError]:
    amount = parse_quantity(tolerance)
    if amount is None or amount >= 0:
        return []
    return [invalid(path, tolerance, NEGATIVE)]


def autoscaler_status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    """Return the errors of the new status of an autoscaler."""
    return none_negative(new.get("status"), "status", ("currentReplicas", "desiredReplicas"))
