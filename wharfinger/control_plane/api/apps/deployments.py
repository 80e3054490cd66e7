"""The validation of kinds that run a number of identical Pods: Deployments, ReplicaSets, ReplicationControllers."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.validation import pod_template_errors
from wharfinger.control_plane.objects.amounts import (
    above_hundred_percent,
    count_of,
    count_or_percent_errors,
    none_negative,
    not_above,
    number,
    optional_number,
    text,
)
from wharfinger.control_plane.objects.label_selectors import (
    MISMATCH,
    is_empty,
    is_readable,
    labels_of,
    selector_errors,
    selects,
    shown_labels,
    shown_selector,
    template_labels,
)
from wharfinger.control_plane.wire.field_errors import NEGATIVE, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.kube.go_texts import read_number

IMMUTABLE: Final = "field is immutable"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
"""The annotation that holds a former field of the spec: the revision to which a Deployment is to be rolled back."""
_STRATEGIES: Final = ("Recreate", "RollingUpdate")


def deployment_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a Deployment's spec."""
    spec = find_object(obj, "spec")
    errors = none_negative(spec, "spec", ["replicas"])
    errors += _selected_template_errors(spec)
    errors += _strategy_errors(find_object(spec, "strategy"), "spec.strategy")
    errors += none_negative(spec, "spec", ["minReadySeconds", "revisionHistoryLimit"])
    errors += _rollback_errors(obj)
    errors += none_negative(spec, "spec", ["progressDeadlineSeconds"])
    deadline = optional_number(spec, "progressDeadlineSeconds")
    if deadline is not None and deadline <= number(spec, "minReadySeconds"):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _rollback_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of the revision in the deprecated rollback annotation."""
    revision = text(obj, "metadata", "annotations", ROLLBACK_TO)
    number_asked, problem = read_number(revision, signed=True)
    if problem or not revision.startswith("-"):
        return []
    return [invalid("spec.rollback.version", number_asked, NEGATIVE)]


def replica_set_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a ReplicaSet's spec."""
    spec = find_object(obj, "spec")
    return none_negative(spec, "spec", ["replicas", "minReadySeconds"]) + _selected_template_errors(spec)


def _selected_template_errors(spec: JsonObject) -> list[FieldError]:
    """Return the errors of the selector and the template; the selector has to match the template's labels."""
    selector, errors = spec.get("selector"), list[FieldError]()
    if not isinstance(selector, dict):
        errors.append(required("spec.selector"))
    else:
        errors += selector_errors(selector, "spec.selector")
        if is_empty(selector):
            errors.append(invalid("spec.selector", {}, "empty selector is invalid for deployment"))
    if not is_readable(selector):
        return [*errors, invalid("spec.selector", shown_selector(selector), "invalid label selector")]
    if not is_empty(selector) and not selects(selector, template_labels(spec)):
        errors.append(mismatch(spec))
    return errors + _template_errors(find_object(spec, "template"), "ReplicaSet")


def mismatch(spec: JsonObject) -> FieldError:
    """Return the error for a selector that does not match the labels of its own template."""
    return invalid(
        "spec.template.metadata.labels", shown_labels(find(spec, "template", "metadata", "labels")), MISMATCH
    )


def _template_errors(template: JsonObject, called: str) -> list[FieldError]:
    return pod_template_errors(template, "spec.template") + always_running_errors(template, called)


def always_running_errors(template: JsonObject, called: str) -> list[FieldError]:
    """Return the errors of fields that the templates of permanently running Pods may not have.

    ``called`` is the kind's name in the error message.
    """
    path, errors = "spec.template.spec", list[FieldError]()
    if (policy := text(template, "spec", "restartPolicy")) != "Always":
        errors.append(not_supported(f"{path}.restartPolicy", policy, ["Always"]))
    if find(template, "spec", "activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {called} is not Supported"
        errors.append(forbidden(f"{path}.activeDeadlineSeconds", why))
    return errors


def _strategy_errors(strategy: JsonObject, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    match text(strategy, "type"):
        case "Recreate":
            why = "may not be specified when strategy `type` is 'Recreate'"
            return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", why)]
        case "RollingUpdate":
            return _rolling_errors(rolling, f"{path}.rollingUpdate")
        case other:
            shown: JsonObject = {"Type": other, "RollingUpdate": _shown_rolling(rolling)}
            return [not_supported(path, shown, _STRATEGIES)]


def _shown_rolling(rolling: JsonValue) -> JsonValue:
    if not isinstance(rolling, dict):
        return None
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def _rolling_errors(rolling: JsonValue, path: str) -> list[FieldError]:
    absent, surge = find(rolling, "maxUnavailable"), find(rolling, "maxSurge")
    errors = count_or_percent_errors(absent, f"{path}.maxUnavailable")
    errors += count_or_percent_errors(surge, f"{path}.maxSurge")
    if count_of(absent) == 0 and count_of(surge) == 0:
        errors.append(invalid(f"{path}.maxUnavailable", absent or 0, "may not be 0 when `maxSurge` is 0"))
    return errors + above_hundred_percent(absent, f"{path}.maxUnavailable")


def replication_controller_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a ReplicationController's spec; its selector is a map of labels."""
    spec = find_object(obj, "spec")
    errors = none_negative(spec, "spec", ["minReadySeconds"])
    selector, labels = labels_of(spec.get("selector")), template_labels(spec)
    if not selector:
        errors.append(required("spec.selector"))
    errors += none_negative(spec, "spec", ["replicas"])
    template = spec.get("template")
    if not isinstance(template, dict):
        return [*errors, required("spec.template")]
    if any(labels.get(key) != value for key, value in selector.items()):
        errors.append(mismatch(spec))
    return errors + _template_errors(template, "ReplicationController")


def selector_immutable(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error if an update changes the selector."""
    selector = find(new, "spec", "selector")
    if shown_selector(selector) == shown_selector(find(old, "spec", "selector")):
        return []
    return [invalid("spec.selector", shown_selector(selector), IMMUTABLE)]


_DEPLOYMENT_COUNTS: Final = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    "terminatingReplicas", "collisionCount",
)  # fmt: skip
_REPLICA_COUNTS: Final = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
)
_AVAILABLE: Final = ("availableReplicas", "readyReplicas", "readyReplicas")


def deployment_status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of the new status of a Deployment."""
    status = find_object(new, "status")
    errors = none_negative(status, "status", _DEPLOYMENT_COUNTS)
    errors += not_above(
        status, "status", [*_within("updatedReplicas", "readyReplicas", "availableReplicas"), _AVAILABLE]
    )
    return errors + collision_errors(new, old)


def collision_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error if an update decreases or removes the count of collisions."""
    before, now = optional_number(old, "status", "collisionCount"), number(new, "status", "collisionCount")
    gone = before is not None and (find(new, "status", "collisionCount") is None or now < before)
    return [invalid("status.collisionCount", now, "cannot be decremented")] if gone else []


def replica_set_status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    """Return the errors of the new status of a ReplicaSet or a ReplicationController."""
    status = find_object(new, "status")
    errors = none_negative(status, "status", (*_REPLICA_COUNTS, "terminatingReplicas"))
    within = _within("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    return errors + not_above(status, "status", [*within, _AVAILABLE])


def _within(*names: str) -> list[tuple[str, str, str]]:
    """Return arguments with which :func:`not_above` refuses each of these counts if it is above the number of replicas."""
    return [(name, "replicas", "status.replicas") for name in names]
