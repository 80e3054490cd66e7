"""The validation of ValidatingAdmissionPolicies and their bindings (admissionregistration.k8s.io/v1)."""

import re
from typing import Final

from wharfinger.control_plane.api.admissionregistration.expressions import Compiler, own_text
from wharfinger.control_plane.api.admissionregistration.webhooks import (
    condition_errors,
    operation_errors,
    reserved_name_warnings,
    rule_errors,
)
from wharfinger.control_plane.cel.values.schema_types import RESERVED_WORDS
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, parts, repeated, texts
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.objects.names import dns_1035_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import duplicate, each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.selectors import key_problems

ACTIONS: Final = ("Audit", "Deny", "Warn")
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_FAILURES: Final = ("Fail", "Ignore")
_MATCHES: Final = ("Equivalent", "Exact")
_MISSING: Final = ("Deny", "Allow")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
MAX_ANNOTATIONS: Final = 20
_MAX_VALUE_BYTES: Final = 5 * 1024
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_TWICE: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


def policy_errors(policy: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Return the errors of a ValidatingAdmissionPolicy; ``old`` is its previous state."""
    spec = part(policy, "spec") or {}
    compiler = Compiler(spec, composition=bool(parts(spec, "variables")))
    errors = shared_errors(spec, part(old, "spec") if old else None, compiler)
    validations, annotations = parts(spec, "validations"), parts(spec, "auditAnnotations")
    if not validations and not annotations:
        return [*errors, required("spec.validations", _NOTHING), required("spec.auditAnnotations", _NOTHING)]
    for index, validation in enumerate(validations):
        errors += _validation_errors(validation, f"spec.validations[{index}]", compiler)
    return errors + _annotation_errors(annotations, policy, compiler)


def shared_errors(
    spec: JsonObject, old: JsonObject | None, compiler: Compiler, operations: tuple[str, ...] = ()
) -> list[FieldError]:
    """Return the errors of the fields that validating and mutating policies share.

    ``operations`` are the allowed operations; if it is empty, every operation is allowed. Match conditions are not checked
    again if they and the parameter kind are unchanged.
    """
    failure, kind, match = spec.get("failurePolicy"), part(spec, "paramKind"), part(spec, "matchConstraints")
    errors = [] if failure is not None else [required("spec.failurePolicy")]
    if failure is not None and failure not in _FAILURES:
        errors.append(not_supported("spec.failurePolicy", failure, _FAILURES))
    errors += [] if kind is None else _kind_errors(kind, "spec.paramKind")
    if match is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += match_errors(match, "spec.matchConstraints")
        errors += [] if parts(match, "resourceRules") else [required("spec.matchConstraints.resourceRules")]
        errors += unsupported_operations(match, "spec.matchConstraints", operations)
    conditions = parts(spec, "matchConditions")
    if old is None or part(old, "paramKind") != kind or parts(old, "matchConditions") != conditions:
        errors += condition_errors(conditions, "spec.matchConditions", params=kind is not None)
    for index, variable in enumerate(parts(spec, "variables")):
        errors += _variable_errors(variable, f"spec.variables[{index}]", compiler)
    return errors


def unsupported_operations(match: JsonObject, path: str, operations: tuple[str, ...]) -> list[FieldError]:
    """Return an error for each operation in a rule of ``match`` that is not one of ``operations``. If ``operations`` is empty,
    every operation is allowed.
    """
    return [
        not_supported(f"{path}.resourceRules.operations", operation, operations)
        for rule in parts(match, "resourceRules")
        for operation in texts(rule, "operations")
        if operations and operation not in operations
    ]


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


def match_errors(match: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the matching rules of a policy or a binding."""
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
    twice = repeated(names)
    for index, name in enumerate(names):
        errors += each(f"{path}.resourceNames[{index}]", name, segment_name(name, False))  # noqa: FBT003 - no prefix
        errors += [duplicate(f"{path}.resourceNames[{index}]", name)] if index in twice else []
    return errors + operation_errors(texts(rule, "operations"), f"{path}.operations") + rule_errors(rule, path)


def _variable_errors(variable: JsonObject, path: str, compiler: Compiler) -> list[FieldError]:
    name, expression = text(variable, "name"), text(variable, "expression")
    errors: list[FieldError] = []
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in RESERVED_WORDS:
        errors.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not expression.strip():
        return [*errors, required(f"{path}.expression", "expression is not specified")]
    return errors + refused(f"{path}.expression", expression, compiler.variable(name, expression))


def refused(field: str, expression: str, why: str) -> list[FieldError]:
    """Return an error for an expression, or none if ``why`` is empty."""
    return [invalid(field, expression, why)] if why else []


def _validation_errors(validation: JsonObject, path: str, compiler: Compiler) -> list[FieldError]:
    expression = text(validation, "expression")
    if expression.strip():
        errors = refused(f"{path}.expression", expression, compiler.validation(expression))
    else:
        errors = [required(f"{path}.expression", "expression is not specified")]
    for name in ("messageExpression", "message"):
        value = text(validation, name)
        if value and not value.strip():
            errors.append(invalid(f"{path}.{name}", value, "must be non-empty if specified"))
        elif value and name == "messageExpression":
            errors += refused(f"{path}.{name}", value, compiler.message(value))
        elif _LINE_BREAK.search(value.strip()):
            errors.append(invalid(f"{path}.{name}", value, "must not contain line breaks"))
    reason = validation.get("reason")
    if reason is not None and reason not in REASONS:
        errors.append(not_supported(f"{path}.reason", reason, REASONS))
    return errors


def _annotation_errors(annotations: list[JsonObject], policy: JsonObject, compiler: Compiler) -> list[FieldError]:
    name = text(policy, "metadata", "name")
    errors: list[FieldError] = []
    if len(annotations) > MAX_ANNOTATIONS:
        held: JsonValue = [
            {"Key": text(annotation, "key"), "ValueExpression": text(annotation, "valueExpression")}
            for annotation in annotations
        ]
        errors.append(
            invalid("spec.auditAnnotations", held, f"must not have more than {MAX_ANNOTATIONS} auditAnnotations")
        )
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", text(annotation, "key")
        if name:
            errors += each(f"{path}.key", f"{name}/{key}", key_problems(f"{name}/{key}"))
        else:
            errors.append(invalid(f"{path}.key", key, "requires metadata.name be non-empty"))
        errors += _value_errors(annotation, f"{path}.valueExpression", compiler)
        errors += [duplicate(f"{path}.key", key)] if key in seen else []
        seen.add(key)
    return errors


def _value_errors(annotation: JsonObject, field: str, compiler: Compiler) -> list[FieldError]:
    expression = own_text(annotation, "valueExpression")
    if not expression:
        return [required(field, "valueExpression is not specified")]
    if len(expression.encode()) > _MAX_VALUE_BYTES:
        return [required(field, f"must not exceed {_MAX_VALUE_BYTES} bytes in length")]
    return refused(field, text(annotation, "valueExpression"), compiler.annotation(expression))


def binding_errors(binding: JsonObject) -> list[FieldError]:
    """Return the errors of a ValidatingAdmissionPolicyBinding."""
    spec = part(binding, "spec") or {}
    name, reference, match = text(spec, "policyName"), part(spec, "paramRef"), part(spec, "matchResources")
    errors = each("spec.policyName", name, subdomain_problems(name)) if name else [required("spec.policyName")]
    errors += [] if reference is None else reference_errors(reference, "spec.paramRef")
    errors += [] if match is None else match_errors(match, "spec.matchResources")
    actions, field = texts(spec, "validationActions"), "spec.validationActions"
    twice = repeated(actions)
    for index, action in enumerate(actions):
        errors += [] if action in ACTIONS else [not_supported(f"{field}[{index}]", action, ACTIONS)]
        errors += [duplicate(f"{field}[{index}]", action)] if index in twice else []
    if {"Deny", "Warn"} <= set(actions):
        errors.append(invalid(field, [*actions], _TWICE))
    return errors if actions else [*errors, required(field, "at least one validation action is required")]


def reference_errors(reference: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a binding's reference to its parameters."""
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
    f"ValidatingAdmissionPolicy.{_GROUP}": Rules(
        create=policy_errors, update=policy_errors, warnings=reserved_name_warnings
    ),
    f"ValidatingAdmissionPolicyBinding.{_GROUP}": Rules(
        create=binding_errors, update=lambda new, _old: binding_errors(new), warnings=reserved_name_warnings
    ),
}
