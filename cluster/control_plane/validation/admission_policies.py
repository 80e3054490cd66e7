"""The rules of ValidatingAdmissionPolicies and their bindings (admissionregistration.k8s.io/v1).

They are kept; nobody evaluates them, and what their expressions say is not judged.
"""

import re
from typing import Final

from wharfinger.cluster.control_plane.selectors import key_problems
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.amounts import text
from wharfinger.cluster.control_plane.validation.field_errors import (
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from wharfinger.cluster.control_plane.validation.label_selectors import selector_errors
from wharfinger.cluster.control_plane.validation.name_rules import segment_name
from wharfinger.cluster.control_plane.validation.names import dns_1035_label_problems, subdomain_problems
from wharfinger.cluster.control_plane.validation.parts import part, parts, texts
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.cluster.control_plane.validation.webhooks import condition_errors, operation_errors, rule_errors
from wharfinger.formats.json_value import JsonObject

ACTIONS: Final = ("Audit", "Deny", "Warn")
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_FAILURES: Final = ("Fail", "Ignore")
_MATCHES: Final = ("Equivalent", "Exact")
_MISSING: Final = ("Deny", "Allow")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_TWICE: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


def policy_errors(policy: JsonObject) -> list[FieldError]:
    """What is wrong with a ValidatingAdmissionPolicy."""
    spec = part(policy, "spec") or {}
    failure, kind, match = spec.get("failurePolicy"), part(spec, "paramKind"), part(spec, "matchConstraints")
    errors = [] if failure is not None else [required("spec.failurePolicy")]
    if failure is not None and failure not in _FAILURES:
        errors.append(not_supported("spec.failurePolicy", failure, _FAILURES))
    errors += [] if kind is None else _kind_errors(kind, "spec.paramKind")
    if match is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += _match_errors(match, "spec.matchConstraints")
        errors += [] if parts(match, "resourceRules") else [required("spec.matchConstraints.resourceRules")]
    errors += condition_errors(parts(spec, "matchConditions"), "spec.matchConditions")
    for index, variable in enumerate(parts(spec, "variables")):
        errors += _variable_errors(variable, f"spec.variables[{index}]")
    validations, annotations = parts(spec, "validations"), parts(spec, "auditAnnotations")
    if not validations and not annotations:
        return [*errors, required("spec.validations", _NOTHING), required("spec.auditAnnotations", _NOTHING)]
    for index, validation in enumerate(validations):
        errors += _validation_errors(validation, f"spec.validations[{index}]")
    return errors + _annotation_errors(annotations, text(policy, "metadata", "name"))


def _kind_errors(kind: JsonObject, path: str) -> list[FieldError]:
    api_version, name = text(kind, "apiVersion"), text(kind, "kind")
    field = f"{path}.apiVersion"
    group, _, version = api_version.rpartition("/")
    errors: list[FieldError] = []
    if not api_version:
        errors.append(required(field))
    elif "/" in group:
        errors.append(invalid(field, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        errors += [invalid(field, group, ",".join(found))] if group and (found := subdomain_problems(group)) else []
        if not version:
            errors.append(invalid(field, api_version, "version must be specified"))
        elif found := dns_1035_label_problems(version):
            errors.append(invalid(field, version, ",".join(found)))
    if not name:
        errors.append(required(f"{path}.kind"))
    elif found := dns_1035_label_problems(name.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(found)}"
        errors.append(invalid(f"{path}.kind", name, why))
    return errors


def _match_errors(match: JsonObject, path: str) -> list[FieldError]:
    policy = match.get("matchPolicy")
    errors = [] if policy is not None else [required(f"{path}.matchPolicy")]
    if policy is not None and policy not in _MATCHES:
        errors.append(not_supported(f"{path}.matchPolicy", policy, _MATCHES))
    for name in ("namespaceSelector", "objectSelector"):
        selector = part(match, name)
        errors += [required(f"{path}.{name}")] if selector is None else selector_errors(selector, f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(parts(match, name)):
            errors += _named_rule_errors(rule, f"{path}.{name}[{index}]")
    return errors


def _named_rule_errors(rule: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names = texts(rule, "resourceNames")
    for index, name in enumerate(names):
        errors += each(f"{path}.resourceNames[{index}]", name, segment_name(name, False))  # noqa: FBT003 - no prefix
        errors += [duplicate(f"{path}.resourceNames[{index}]", name)] if name in names[:index] else []
    return errors + operation_errors(texts(rule, "operations"), f"{path}.operations") + rule_errors(rule, path)


def _variable_errors(variable: JsonObject, path: str) -> list[FieldError]:
    name = text(variable, "name")
    errors: list[FieldError] = []
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name):
        errors.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not text(variable, "expression").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    return errors


def _validation_errors(validation: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not text(validation, "expression").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    for name in ("messageExpression", "message"):
        value = text(validation, name)
        if value and not value.strip():
            errors.append(invalid(f"{path}.{name}", value, "must be non-empty if specified"))
        elif name == "message" and "\n" in value.strip():
            errors.append(invalid(f"{path}.{name}", value, "must not contain line breaks"))
    reason = validation.get("reason")
    if reason is not None and reason not in REASONS:
        errors.append(not_supported(f"{path}.reason", reason, REASONS))
    return errors


def _annotation_errors(annotations: list[JsonObject], name: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", text(annotation, "key")
        errors += each(f"{path}.key", f"{name}/{key}", key_problems(f"{name}/{key}"))
        if not text(annotation, "valueExpression").strip():
            errors.append(required(f"{path}.valueExpression", "valueExpression is not specified"))
        errors += [duplicate(f"{path}.key", key)] if key in seen else []
        seen.add(key)
    return errors


def binding_errors(binding: JsonObject) -> list[FieldError]:
    """What is wrong with a ValidatingAdmissionPolicyBinding."""
    spec = part(binding, "spec") or {}
    name, reference, match = text(spec, "policyName"), part(spec, "paramRef"), part(spec, "matchResources")
    errors = each("spec.policyName", name, subdomain_problems(name)) if name else [required("spec.policyName")]
    errors += [] if reference is None else _reference_errors(reference, "spec.paramRef")
    errors += [] if match is None else _match_errors(match, "spec.matchResources")
    actions, field = texts(spec, "validationActions"), "spec.validationActions"
    for index, action in enumerate(actions):
        errors += [] if action in ACTIONS else [not_supported(f"{field}[{index}]", action, ACTIONS)]
        errors += [duplicate(f"{field}[{index}]", action)] if action in actions[:index] else []
    if {"Deny", "Warn"} <= set(actions):
        errors.append(invalid(field, [*actions], _TWICE))
    return errors if actions else [*errors, required(field, "at least one validation action is required")]


def _reference_errors(reference: JsonObject, path: str) -> list[FieldError]:
    name, selector, missing = (
        text(reference, "name"),
        part(reference, "selector"),
        text(reference, "parameterNotFoundAction"),
    )
    both = "name and selector are mutually exclusive"
    errors = each(f"{path}.name", name, segment_name(name, False)) if name else []  # noqa: FBT003 - no prefix
    if name and selector is not None:
        errors.append(forbidden(f"{path}.name", both))
    if selector is not None:
        errors += selector_errors(selector, f"{path}.selector")
        errors += [forbidden(f"{path}.selector", both)] if name else []
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    field = f"{path}.parameterNotFoundAction"
    if not missing:
        errors.append(required(field))
    elif missing not in _MISSING:
        errors.append(not_supported(field, missing, _MISSING))
    return errors


_GROUP: Final = "admissionregistration.k8s.io"
ADMISSION_POLICY_RULES: Final[dict[str, Rules]] = {
    f"ValidatingAdmissionPolicy.{_GROUP}": Rules(create=policy_errors, update=lambda new, _old: policy_errors(new)),
    f"ValidatingAdmissionPolicyBinding.{_GROUP}": Rules(
        create=binding_errors, update=lambda new, _old: binding_errors(new)
    ),
}
