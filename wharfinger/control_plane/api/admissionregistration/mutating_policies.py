"""The validation of MutatingAdmissionPolicies and their bindings (admissionregistration.k8s.io/v1, KEP-3962)."""

from typing import Final

from wharfinger.control_plane.api.admissionregistration.admission_policies import (
    match_errors,
    reference_errors,
    refused,
    shared_errors,
    unsupported_operations,
)
from wharfinger.control_plane.api.admissionregistration.expression_environment import CONFIGURATION, PATCHES
from wharfinger.control_plane.api.admissionregistration.expressions import Compiler, own_text
from wharfinger.control_plane.api.admissionregistration.webhooks import reserved_name_warnings
from wharfinger.control_plane.cel.values.types import Type
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.names import subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
"""The operations whose object a policy can change; a delete has no object to change."""
_REINVOCATIONS: Final = ("IfNeeded", "Never")
_PATCHES: Final[dict[str, tuple[str, Type]]] = {
    "ApplyConfiguration": ("applyConfiguration", CONFIGURATION),
    "JSONPatch": ("jsonPatch", PATCHES),
}
"""The field that each type of patch uses, and the type of the expression in this field."""


def policy_errors(policy: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Return the errors of a MutatingAdmissionPolicy; ``old`` is its previous state."""
    spec = part(policy, "spec") or {}
    compiler = Compiler(spec)
    errors = shared_errors(spec, part(old, "spec") if old else None, compiler, OPERATIONS)
    mutations = parts(spec, "mutations")
    if not mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        errors += _mutation_errors(mutation, f"spec.mutations[{index}]", compiler)
    again = text(spec, "reinvocationPolicy")
    if not again:
        errors.append(required("spec.reinvocationPolicy"))
    elif again not in _REINVOCATIONS:
        errors.append(not_supported("spec.reinvocationPolicy", again, _REINVOCATIONS))
    return errors


def _mutation_errors(mutation: JsonObject, path: str, compiler: Compiler) -> list[FieldError]:
    kind = text(mutation, "patchType")
    if not kind:
        return [required(f"{path}.patchType")]
    if kind not in _PATCHES:
        return [not_supported(f"{path}.patchType", kind, tuple(_PATCHES))]
    own, wanted = _PATCHES[kind]
    patch = part(mutation, own)
    if patch is None:
        errors = [required(f"{path}.{own}", f"must be specified when patchType is {kind}")]
    else:
        expression, field = own_text(patch, "expression"), f"{path}.{own}.expression"
        why = compiler.mutation(expression, wanted) if expression else ""
        errors = refused(field, expression, why) if expression else [required(field)]
    for other, _ in _PATCHES.values():
        if other != own and part(mutation, other) is not None:
            errors.append(invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}"))
    return errors


def binding_errors(binding: JsonObject) -> list[FieldError]:
    """Return the errors of a MutatingAdmissionPolicyBinding."""
    spec = part(binding, "spec") or {}
    name, reference, match = text(spec, "policyName"), part(spec, "paramRef"), part(spec, "matchResources")
    errors = each("spec.policyName", name, subdomain_problems(name)) if name else [required("spec.policyName")]
    errors += [] if reference is None else reference_errors(reference, "spec.paramRef")
    if match is None:
        return errors
    errors += match_errors(match, "spec.matchResources")
    return errors + unsupported_operations(match, "spec.matchResources", OPERATIONS)


_GROUP: Final = "admissionregistration.k8s.io"
MUTATING_POLICY_RULES: Final[dict[str, Rules]] = {
    f"MutatingAdmissionPolicy.{_GROUP}": Rules(
        create=policy_errors, update=policy_errors, warnings=reserved_name_warnings
    ),
    f"MutatingAdmissionPolicyBinding.{_GROUP}": Rules(
        create=binding_errors, update=lambda new, _old: binding_errors(new), warnings=reserved_name_warnings
    ),
}
