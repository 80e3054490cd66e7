"""The validation of DaemonSets."""

from typing import Final

from wharfinger.control_plane.api.apps.deployments import (
    always_running_errors,
    collision_errors,
    mismatch,
    selector_immutable,
)
from wharfinger.control_plane.api.core.pod_specs.validation import pod_template_errors
from wharfinger.control_plane.objects.amounts import (
    above_hundred_percent,
    count_of,
    count_or_percent_errors,
    none_negative,
    text,
)
from wharfinger.control_plane.objects.label_selectors import (
    has_invalid_value,
    is_empty,
    is_readable,
    selector_errors,
    selects,
    template_labels,
)
from wharfinger.control_plane.wire.field_errors import invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object

_STRATEGIES: Final = ("RollingUpdate", "OnDelete")
_COUNTS: Final = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip


def daemon_set_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a DaemonSet's spec."""
    return _errors(obj, any_value=False)


def daemon_set_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed DaemonSet; if the old selector had invalid label values, the new one may have them,
    too.
    """
    return selector_immutable(new, old) + _errors(new, any_value=has_invalid_value(find(old, "spec", "selector")))


def _errors(obj: JsonObject, *, any_value: bool) -> list[FieldError]:
    spec = find_object(obj, "spec")
    selector, template = spec.get("selector"), find_object(spec, "template")
    errors = selector_errors(selector, "spec.selector", any_value=any_value)
    if is_readable(selector) and not selects(selector, template_labels(spec)):
        errors.append(mismatch(spec))
    if is_empty(selector):
        errors.append(invalid("spec.selector", {}, "empty selector is invalid for daemonset"))
    errors += pod_template_errors(template, "spec.template") + always_running_errors(template, "DaemonSet")
    errors += none_negative(spec, "spec", ["minReadySeconds"])
    errors += _strategy_errors(find_object(spec, "updateStrategy"), "spec.updateStrategy")
    return errors + none_negative(spec, "spec", ["revisionHistoryLimit"])


def _strategy_errors(strategy: JsonObject, path: str) -> list[FieldError]:
    rolling, kind = strategy.get("rollingUpdate"), text(strategy, "type")
    if kind == "OnDelete":
        return []
    if kind == "RollingUpdate":
        if rolling is None:
            return [required(f"{path}.rollingUpdate")]
        return _rolling_errors(rolling, f"{path}.rollingUpdate")
    shown: JsonValue = None
    if isinstance(rolling, dict):
        shown = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
    return [not_supported(path, {"Type": kind, "RollingUpdate": shown}, _STRATEGIES)]


def _rolling_errors(rolling: JsonValue, path: str) -> list[FieldError]:
    absent, surge = (0 if (found := find(rolling, name)) is None else found for name in ("maxUnavailable", "maxSurge"))
    pairs = ((absent, f"{path}.maxUnavailable"), (surge, f"{path}.maxSurge"))
    errors = [error for pair in pairs for error in count_or_percent_errors(*pair)]
    errors += [error for pair in pairs for error in above_hundred_percent(*pair)]
    if count_of(absent) and count_of(surge):
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not count_of(absent) and not count_of(surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def daemon_set_status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of the new status of a DaemonSet."""
    return none_negative(find_object(new, "status"), "status", _COUNTS) + collision_errors(new, old)
