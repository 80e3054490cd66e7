"""The validation of Jobs, and of the Jobs that CronJobs create: counts, modes, selectors and templates."""

import re
from collections.abc import Callable
from typing import Final

from wharfinger.control_plane.api.apps.deployments import IMMUTABLE, mismatch, selector_immutable
from wharfinger.control_plane.api.batch.job_policies import failure_policy_errors, success_policy_errors
from wharfinger.control_plane.api.core.pod_specs.validation import pod_template_errors
from wharfinger.control_plane.objects.amounts import none_negative, optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.label_selectors import (
    has_invalid_value,
    is_readable,
    selector_errors,
    selects,
    shown_selector,
    template_labels,
)
from wharfinger.control_plane.objects.metadata import core_meta_errors, meta_update_errors
from wharfinger.control_plane.objects.names import dns_label_problems, rule, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, invalid, not_supported, required, too_long
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object

NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
MAX_PARALLELISM: Final = 100_000
MAX_COMPLETIONS: Final = 100_000
MAX_AT_HIGH_COMPLETIONS: Final = 10_000
_MANAGED_BY_LENGTH: Final = 63
_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES: Final = ("NonIndexed", "Indexed")
_RUN_ONCE: Final = ("OnFailure", "Never")


def job_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a new Job; the server has already generated its selector and labels."""
    return _job_errors(obj, prefixed=True, any_value=False)


def _job_errors(obj: JsonObject, *, prefixed: bool, any_value: bool) -> list[FieldError]:
    errors = _generated_errors(obj, prefixed=prefixed) + _selected_spec_errors(obj, any_value=any_value)
    spec = find_object(obj, "spec")
    completions = optional_number(spec, "completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = text(obj, "metadata", "name")
        host = f"{name}-{completions - 1}"
        if dns_label_problems(host):
            why = f"will not able to create pod with invalid DNS label: {host}"
            errors.append(invalid("metadata.name", name, why))
    return errors


def _generated_errors(obj: JsonObject, *, prefixed: bool) -> list[FieldError]:
    """Return an error for each generated label that is missing or has another value, and for a selector that is not generated."""
    spec = find_object(obj, "spec")
    if spec.get("manualSelector") is True or not isinstance(spec.get("selector"), dict):
        return []
    name, uid = text(obj, "metadata", "name"), text(obj, "metadata", "uid")
    order = [(UID_LABELS[0], uid), (NAME_LABELS[0], name)]
    order += [(UID_LABELS[1], uid), (NAME_LABELS[1], name)] if prefixed else []
    labels = template_labels(spec)
    errors = [error for key, value in order for error in _label_errors(labels, key, value)]
    selector = spec.get("selector")
    if is_readable(selector) and not selects(selector, dict(order)):
        errors.append(invalid("spec.selector", shown_selector(selector), "`selector` not auto-generated"))
    return errors


def _label_errors(labels: dict[str, str], key: str, value: str) -> list[FieldError]:
    path = "spec.template.metadata.labels"
    if key not in labels:
        return [required(f"{path}[{key}]", f"must be '{value}'")]
    if labels[key] != value:
        return [invalid(f"{path}[{key}]", dict(sorted(labels.items())), f"must be '{value}'")]
    return []


def _selected_spec_errors(obj: JsonObject, *, any_value: bool) -> list[FieldError]:
    spec = find_object(obj, "spec")
    errors, selector = job_spec_errors(spec, "spec"), spec.get("selector")
    if not isinstance(selector, dict):
        errors.append(required("spec.selector"))
    errors += selector_errors(selector, "spec.selector", any_value=any_value)
    if is_readable(selector) and not selects(selector, template_labels(spec)):
        errors.append(mismatch(spec))
    return errors


def job_spec_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a Job's spec except its selector; ``path`` is the path of the spec (``spec``)."""
    errors = none_negative(spec, path, _COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    errors += _managed_by_errors(spec.get("managedBy"), f"{path}.managedBy") + _mode_errors(spec, path)
    if isinstance(spec.get("podFailurePolicy"), dict):
        errors += failure_policy_errors(spec, f"{path}.podFailurePolicy")
    if isinstance(policy := spec.get("successPolicy"), dict):
        if spec.get("completionMode") != "Indexed":
            shown = internal_form("batch.SuccessPolicy", policy)
            errors.append(invalid(f"{path}.successPolicy", shown, "requires indexed completion mode"))
        else:
            errors += success_policy_errors(spec, f"{path}.successPolicy")
    errors += _replacement_errors(spec, f"{path}.podReplacementPolicy")
    errors += pod_template_errors(find_object(spec, "template"), f"{path}.template")
    return errors + _restart_errors(spec, f"{path}.template.spec.restartPolicy")


def _managed_by_errors(value: JsonValue, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return []
    errors = _domain_path_errors(value, path)
    return [*errors, too_long(path, _MANAGED_BY_LENGTH)] if len(value.encode()) > _MANAGED_BY_LENGTH else errors


def _domain_path_errors(value: str, path: str) -> list[FieldError]:
    """Return the errors of a path that begins with a domain, such as ``acme.io/foo``."""
    if not value:
        return [required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = each(path, host, subdomain_problems(host))
    return errors if re.fullmatch(_PATH, rest) else [*errors, invalid(path, rest, rule("Invalid path", _PATH))]


def _mode_errors(spec: JsonObject, path: str) -> list[FieldError]:
    mode, errors = text(spec, "completionMode"), list[FieldError]()
    if spec.get("completionMode") is not None and mode not in _MODES:
        errors.append(not_supported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        errors += _indexed_errors(spec, path)
    if spec.get("completionMode") is None or mode == "NonIndexed":
        errors += [
            invalid(f"{path}.{name}", value, "requires indexed completion mode")
            for name in ("backoffLimitPerIndex", "maxFailedIndexes")
            if (value := spec.get(name)) is not None
        ]
    return errors


def _indexed_errors(spec: JsonObject, path: str) -> list[FieldError]:
    completions, parallelism = optional_number(spec, "completions"), optional_number(spec, "parallelism")
    failed, errors = optional_number(spec, "maxFailedIndexes"), list[FieldError]()
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > MAX_PARALLELISM:
        why = f"must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, why))
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > MAX_COMPLETIONS:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MAX_COMPLETIONS}"))
    if completions is None or completions <= MAX_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return errors
    if failed is None:
        why = f"must be specified when completions is above {MAX_COMPLETIONS}"
        errors.append(required(f"{path}.maxFailedIndexes", why))
    why = (
        f"must be less than or equal to {MAX_AT_HIGH_COMPLETIONS} when completions are above {MAX_COMPLETIONS} and used "
        "with backoff limit per index"
    )
    return errors + [
        invalid(f"{path}.{name}", value, why)
        for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed))
        if value is not None and value > MAX_AT_HIGH_COMPLETIONS
    ]


def _replacement_errors(spec: JsonObject, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    allowed = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
    return [] if policy in allowed else [not_supported(path, policy, allowed)]


def _restart_errors(spec: JsonObject, path: str) -> list[FieldError]:
    policy = text(spec, "template", "spec", "restartPolicy")
    if policy in {"Always", ""}:
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in _RUN_ONCE:
        return [not_supported(path, policy, _RUN_ONCE)]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def job_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of an updated Job: every error that a new Job could have, and an error for each changed immutable
    field.
    """
    spec, before = find_object(new, "spec"), find_object(old, "spec")
    prefixed = {NAME_LABELS[1], UID_LABELS[1]} <= template_labels(before).keys()
    any_value = has_invalid_value(before.get("selector"))
    errors = core_meta_errors(new) + _job_errors(new, prefixed=prefixed, any_value=any_value)
    errors += meta_update_errors(new, old) + _selected_spec_errors(new, any_value=any_value)
    errors += _completions_errors(spec, before) + selector_immutable(new, old) + _template_errors(spec, old)
    for name, shown in _FIXED.items():
        if spec.get(name) != before.get(name):
            errors.append(invalid(f"spec.{name}", shown(spec.get(name)), IMMUTABLE))
    return errors


def _plain(value: JsonValue) -> JsonValue:
    return value


def _shown_as(name: str) -> Callable[[JsonValue], JsonValue]:
    return lambda value: None if value is None else internal_form(name, value)


_FIXED: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    "completionMode": _plain,
    "podFailurePolicy": _shown_as("batch.PodFailurePolicy"),
    "backoffLimitPerIndex": _plain,
    "managedBy": _plain,
    "successPolicy": _shown_as("batch.SuccessPolicy"),
}


def _completions_errors(spec: JsonObject, before: JsonObject) -> list[FieldError]:
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return []
    if spec.get("completionMode") != "Indexed":
        return [invalid("spec.completions", completions, IMMUTABLE)]
    if completions is None or completions == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _template_errors(spec: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed template. Templates are immutable, except for the scheduling directives and the
    resources of a suspended Job without active Pods.
    """
    template, before = find_object(spec, "template"), find_object(old, "spec", "template")
    suspended = find(old, "spec", "suspend") is True
    conditions = find_list(old, "status", "conditions")
    idle = (
        suspended
        and any(find(item, "type") == "Suspended" and find(item, "status") == "True" for item in conditions)
        and not optional_number(old, "status", "active")
    )
    if idle:
        before = _with_resources(_with_directives(before, template), template)
        pod = find_object(template, "spec")
        if pod == find_object(before, "spec"):
            return []
        return [invalid("spec.template.spec", internal_form("core.PodSpec", pod), IMMUTABLE)]
    if template == before:
        return []
    return [invalid("spec.template", internal_form("core.PodTemplateSpec", template), IMMUTABLE)]


def _with_directives(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the old template with the scheduling directives, labels and annotations of the new one."""
    pod, wanted = dict(find_object(old, "spec")), find_object(new, "spec")
    affinity, before = wanted.get("affinity"), pod.get("affinity")
    if isinstance(affinity, dict) or isinstance(before, dict):
        merged = {**(before if isinstance(before, dict) else {})}
        merged.pop("nodeAffinity", None)
        if isinstance(affinity, dict) and "nodeAffinity" in affinity:
            merged["nodeAffinity"] = affinity["nodeAffinity"]
        pod["affinity"] = merged if merged or isinstance(affinity, dict) else None
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        pod[name] = wanted.get(name)
    metadata = {**find_object(old, "metadata")}
    for name in ("labels", "annotations"):
        metadata[name] = find(new, "metadata", name)
    cleaned: JsonObject = {name: value for name, value in pod.items() if value is not None}
    return {**old, "metadata": {name: value for name, value in metadata.items() if value is not None}, "spec": cleaned}


def _with_resources(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the old template with the new resources of containers that have the same position and name in both."""
    pod = dict(find_object(old, "spec"))
    for group in ("containers", "initContainers"):
        before, after = find_list(pod, group), find_list(new, "spec", group)
        if group in pod and len(before) == len(after):
            pod[group] = [_resourced(*pair) for pair in zip(before, after, strict=True)]
    return {**old, "spec": pod}


def _resourced(old: JsonValue, new: JsonValue) -> JsonValue:
    if not isinstance(old, dict) or find(old, "name") != find(new, "name"):
        return old
    rest = {name: value for name, value in old.items() if name != "resources"}
    resources = find(new, "resources")
    return rest if resources is None else {**rest, "resources": resources}


def cron_job_template_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a CronJob's Job spec at ``path``. The spec must not set a selector, because selectors are always
    generated.
    """
    errors = job_spec_errors(spec, path)
    if isinstance(selector := spec.get("selector"), dict):
        errors.append(invalid(f"{path}.selector", shown_selector(selector), "`selector` will be auto-generated"))
    if spec.get("manualSelector") is True:
        errors.append(not_supported(f"{path}.manualSelector", value=True, supported=["nil", "false"]))
    return errors
