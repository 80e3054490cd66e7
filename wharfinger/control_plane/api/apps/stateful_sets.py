"""The validation of StatefulSets."""

from collections.abc import Callable
from typing import Final

from wharfinger.control_plane.api.apps.deployments import always_running_errors, collision_errors, mismatch
from wharfinger.control_plane.api.core.pod_specs.claim_specs import claim_spec_errors
from wharfinger.control_plane.api.core.pod_specs.validation import pod_template_errors
from wharfinger.control_plane.objects.amounts import (
    above_hundred_percent,
    count_of,
    count_or_percent_errors,
    none_negative,
    not_above,
    text,
)
from wharfinger.control_plane.objects.label_selectors import (
    is_empty,
    is_readable,
    labels_errors,
    selector_errors,
    selects,
    shown_selector,
    template_labels,
)
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object

_CHANGEABLE: Final = (
    "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip
_UNCHANGEABLE_RULE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_COUNTS: Final = (
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
    "collisionCount",
)  # fmt: skip
_BOUNDS: Final = (
    *((name, "replicas", "status.replicas") for name in _COUNTS[1:5]),
    ("availableReplicas", "readyReplicas", "status.readyReplicas"),
)


def stateful_set_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a new StatefulSet's spec."""
    return _errors(find_object(obj, "spec"), new=True, template_errors=pod_template_errors)


def stateful_set_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed StatefulSet: most of its spec is immutable.

    The template is not checked if the old spec already had errors.
    """
    spec, before = find_object(new, "spec"), find_object(old, "spec")
    was_wrong = bool(_errors(before, new=False, template_errors=pod_template_errors))
    errors = _errors(spec, new=False, template_errors=_no_errors if was_wrong else pod_template_errors)
    if _fixed(spec) != _fixed(before):
        errors.append(forbidden("spec", _UNCHANGEABLE_RULE))
    return errors


def _no_errors(_template: JsonObject, _path: str) -> list[FieldError]:
    return []


def _fixed(spec: JsonObject) -> JsonObject:
    return {name: value for name, value in spec.items() if name not in _CHANGEABLE and value not in ("", 0)}


def _errors(
    spec: JsonObject, *, new: bool, template_errors: Callable[[JsonObject, str], list[FieldError]]
) -> list[FieldError]:
    errors = _management_errors(text(spec, "podManagementPolicy"))
    errors += _strategy_errors(find_object(spec, "updateStrategy"), "spec.updateStrategy")
    for name in ("whenDeleted", "whenScaled"):
        policy = text(spec, "persistentVolumeClaimRetentionPolicy", name)
        if policy not in {"Retain", "Delete"}:
            field = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            errors.append(not_supported(field, policy, ["Retain", "Delete"]))
    if new:
        errors += _claim_errors(spec)
    errors += none_negative(spec, "spec", ["replicas", "minReadySeconds"])
    errors += none_negative(spec.get("ordinals"), "spec.ordinals", ["start"])
    if new and (service := text(spec, "serviceName")):
        errors += each("spec.serviceName", service, dns_label_problems(service))
    errors += _selector_errors(spec)
    template = find_object(spec, "template")
    if is_readable(spec.get("selector")):
        if not is_empty(spec.get("selector")) and not selects(spec.get("selector"), template_labels(spec)):
            errors.append(mismatch(spec))
        errors += template_errors(_as_started(spec, template), "spec.template")
        errors += labels_errors(template_labels(spec), "spec.template.labels")
    return errors + always_running_errors(template, "StatefulSet")


def _management_errors(policy: str) -> list[FieldError]:
    if policy in {"OrderedReady", "Parallel"}:
        return []
    field = "spec.podManagementPolicy"
    return [invalid(field, policy, "must be 'OrderedReady' or 'Parallel'") if policy else required(field)]


def _strategy_errors(strategy: JsonObject, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    match text(strategy, "type"):
        case "":
            return [required(path)]
        case "OnDelete":
            why = "only allowed for updateStrategy 'RollingUpdate'"
            return [] if rolling is None else [invalid(f"{path}.rollingUpdate", _shown_rolling(rolling), why)]
        case "RollingUpdate":
            return _rolling_errors(rolling, f"{path}.rollingUpdate")
        case other:
            shown: JsonObject = {"Type": other, "RollingUpdate": _shown_rolling(rolling)}
            return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]


def _shown_rolling(rolling: JsonValue) -> JsonValue:
    if not isinstance(rolling, dict):
        return None
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _rolling_errors(rolling: JsonValue, path: str) -> list[FieldError]:
    errors = none_negative(rolling, path, ["partition"])
    absent, field = find(rolling, "maxUnavailable"), f"{path}.maxUnavailable"
    if absent is not None:
        errors += count_or_percent_errors(absent, field)
        errors += [invalid(field, absent, "cannot be 0")] if count_of(absent) == 0 else []
        errors += above_hundred_percent(absent, field)
    return errors


def _claim_errors(spec: JsonObject) -> list[FieldError]:
    claims = spec.get("volumeClaimTemplates")
    return [
        error
        for index, claim in enumerate(claims if isinstance(claims, list) else [])
        for error in claim_spec_errors(find_object(claim, "spec"), f"spec.volumeClaimTemplates[{index}].spec")
    ]


def _selector_errors(spec: JsonObject) -> list[FieldError]:
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        return [required("spec.selector")]
    errors = selector_errors(selector, "spec.selector")
    if is_empty(selector):
        errors.append(invalid("spec.selector", {}, "empty selector is invalid for statefulset"))
    return errors if is_readable(selector) else [*errors, invalid("spec.selector", shown_selector(selector), "")]


def _as_started(spec: JsonObject, template: JsonObject) -> JsonObject:
    """Return the template from which Pods are made: without ``hostname`` and ``subdomain``, which the controller sets, but with
    volumes for the claims.
    """
    pod = {
        name: value for name, value in find_object(template, "spec").items() if name not in {"hostname", "subdomain"}
    }
    claims = spec.get("volumeClaimTemplates")
    names = [text(claim, "metadata", "name") for claim in (claims if isinstance(claims, list) else [])]
    if names:
        volumes = pod.get("volumes")
        own = [item for item in (volumes if isinstance(volumes, list) else []) if text(item, "name") not in names]
        made: list[JsonValue] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)
        ]
        pod["volumes"] = [*made, *own]
    return {**template, "spec": pod}


def stateful_set_status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of the new status of a StatefulSet."""
    status = find_object(new, "status")
    errors = none_negative(status, "status", _COUNTS) + not_above(status, "status", _BOUNDS)
    return errors + collision_errors(new, old)
