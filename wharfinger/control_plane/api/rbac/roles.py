"""The validation of roles and their bindings (rbac.authorization.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.name_rules import segment_name, subdomain_name
from wharfinger.control_plane.wire.field_errors import each, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

GROUP: Final = "rbac.authorization.k8s.io"
SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role_errors(role: JsonObject) -> list[FieldError]:
    """Return the errors of a Role."""
    return [
        error
        for index, rule in enumerate(parts(role, "rules"))
        for error in _rule_errors(rule, f"rules[{index}]", namespaced=True)
    ]


def cluster_role_errors(role: JsonObject) -> list[FieldError]:
    """Return the errors of a ClusterRole."""
    errors = [
        error
        for index, rule in enumerate(parts(role, "rules"))
        for error in _rule_errors(rule, f"rules[{index}]", namespaced=False)
    ]
    aggregation = part(role, "aggregationRule")
    if aggregation is None:
        return errors
    selectors = parts(aggregation, "clusterRoleSelectors")
    if not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(required("aggregationRule.clusterRoleSelectors", why))
    for index, selector in enumerate(selectors):
        field = f"aggregationRule.clusterRoleSelectors[{index}]"
        wrong = selector_errors(selector, field)
        errors += [*wrong, invalid(field, None, "invalid label selector.")] if wrong else []
    return errors


def _rule_errors(rule: JsonObject, path: str, *, namespaced: bool) -> list[FieldError]:
    errors = [] if texts(rule, "verbs") else [required(f"{path}.verbs", "verbs must contain at least one value")]
    urls = texts(rule, "nonResourceURLs")
    if urls:
        field = f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(invalid(field, [*urls], "namespaced rules cannot apply to non-resource URLs"))
        if any(texts(rule, name) for name in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(field, [*urls], why))
        return errors
    if not texts(rule, "apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not texts(rule, "resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def role_binding_errors(binding: JsonObject) -> list[FieldError]:
    """Return the errors of a RoleBinding."""
    return _binding_errors(binding, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding_errors(binding: JsonObject) -> list[FieldError]:
    """Return the errors of a ClusterRoleBinding."""
    return _binding_errors(binding, ("ClusterRole",), namespaced=False)


def _binding_errors(binding: JsonObject, kinds: tuple[str, ...], *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    group, kind, name = (text(binding, "roleRef", field) for field in ("apiGroup", "kind", "name"))
    if group != GROUP:
        errors.append(not_supported("roleRef.apiGroup", group, [GROUP]))
    if kind not in kinds:
        errors.append(not_supported("roleRef.kind", kind, kinds))
    errors += each("roleRef.name", name, segment_name(name, False)) if name else [required("roleRef.name")]  # noqa: FBT003
    for index, subject in enumerate(parts(binding, "subjects")):
        errors += _subject_errors(subject, f"subjects[{index}]", namespaced=namespaced)
    return errors


def _subject_errors(subject: JsonObject, path: str, *, namespaced: bool) -> list[FieldError]:
    name, kind, group = (text(subject, field) for field in ("name", "kind", "apiGroup"))
    errors = [] if name else [required(f"{path}.name")]
    match kind:
        case "ServiceAccount":
            errors += each(f"{path}.name", name, subdomain_name(name, False)) if name else []  # noqa: FBT003
            if group:
                errors.append(not_supported(f"{path}.apiGroup", group, [""]))
            if not namespaced and not text(subject, "namespace"):
                errors.append(required(f"{path}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                errors.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
        case _:
            errors.append(not_supported(f"{path}.kind", kind, SUBJECTS))
    return errors


def _reference_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return an error if an update changes the role of a binding."""
    if new.get("roleRef") == old.get("roleRef"):
        return []
    shown: JsonObject = {
        printed: text(new, "roleRef", field)
        for printed, field in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    }
    return [invalid("roleRef", shown, "cannot change roleRef")]


ROLE_RULES: Final[dict[str, Rules]] = {
    f"Role.{GROUP}": Rules(create=role_errors, update=lambda new, _old: role_errors(new)),
    f"ClusterRole.{GROUP}": Rules(create=cluster_role_errors, update=lambda new, _old: cluster_role_errors(new)),
    f"RoleBinding.{GROUP}": Rules(
        create=role_binding_errors, update=lambda new, old: role_binding_errors(new) + _reference_errors(new, old)
    ),
    f"ClusterRoleBinding.{GROUP}": Rules(
        create=cluster_role_binding_errors,
        update=lambda new, old: cluster_role_binding_errors(new) + _reference_errors(new, old),
    ),
}
