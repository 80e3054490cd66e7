"""The permission to bind parameters: a user may bind a policy only to parameters that the user may read.

A violation is reported as a validation error of the policy or binding.
"""

from typing import Final

from wharfinger.control_plane.access.rbac import decide
from wharfinger.control_plane.access.role_rules import ALL, Attributes
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.common.admission import Admission, Operation, Plugin
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import forbidden
from wharfinger.formats.json.value import JsonObject

_GROUP: Final = "admissionregistration.k8s.io"
_POLICIES: Final = {
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicies",
}
"""The resource name of the policies that each kind of binding refers to."""
_BUILT_IN: Final = {
    (kind.group, version.name, kind.kind): kind.plural for kind in BUILTIN_KINDS for version in kind.versions
}


def check_parameters(admission: Admission) -> None:
    """Refuse a policy or binding if its writer may not read its parameters, unless an update leaves them unchanged.

    Raises StatusError (422).
    """
    if admission.user.administrator or admission.obj is None:
        return
    new, old = part(admission.obj, "spec") or {}, part(admission.old, "spec") or {}
    if admission.kind.kind in _POLICIES:
        field, again = "paramRef", new.get("policyName") == old.get("policyName")
        why = _binding_problem(admission, new) if part(new, field) is not None else ""
    else:
        field, again = "paramKind", True
        why = _policy_problem(admission, new) if part(new, field) is not None else ""
    if why and not (again and new[field] == old.get(field)):
        raise status.invalid_object(admission.kind, admission.name, [forbidden(f"spec.{field}", why)])


def _policy_problem(admission: Admission, spec: JsonObject) -> str:
    kind = part(spec, "paramKind") or {}
    group, version, plural = _resource(admission.view, kind)
    asked = Attributes(
        user=admission.user, verb="get", namespace=ALL, name=ALL, group=group, version=version, resource=plural or ALL
    )
    if decide(admission.view, asked).allowed:
        return ""
    what = f"(kind={text(kind, 'kind')}, apiVersion={text(kind, 'apiVersion')})"
    who = _shown(admission.user)
    return f'user {who} must have "get" permission on all objects of the referenced paramKind {what}'


def _binding_problem(admission: Admission, spec: JsonObject) -> str:
    reference, name = part(spec, "paramRef") or {}, text(spec, "policyName")
    policy = admission.view.object(_GROUP, _POLICIES[admission.kind.kind], "", name)
    kind = part(policy, "spec", "paramKind")
    group, version, plural = (ALL, ALL, ALL) if kind is None else _resource(admission.view, kind)
    verb = "get" if text(reference, "name") else "list"
    asked = Attributes(
        user=admission.user, verb=verb, namespace=text(reference, "namespace"), name=text(reference, "name"),
        group=group, version=version, resource=plural or ALL,
    )  # fmt: skip
    if decide(admission.view, asked).allowed:
        return ""
    who = _shown(admission.user)
    lacking = f'to determine minimum required permissions and user {who} does not have "{verb}" permission'
    if policy is None:
        return f"unable to get policy {name} {lacking} for all groups, versions and resources"
    if kind is not None and not plural:
        shown = f"&ParamKind{{APIVersion:{text(kind, 'apiVersion')},Kind:{text(kind, 'kind')},}}"
        return f"unable to resolve paramKind {shown} {lacking} for all groups, versions and resources"
    if admission.kind.kind.startswith("Mutating"):  # upstream swaps the two words in this message
        who, verb = verb, who
    return f'user {who} does not have "{verb}" permission on the object referenced by paramRef'


def _resource(view: ClusterView, kind: JsonObject) -> tuple[str, str, str]:
    """Return group, version and plural name of a kind; the plural is "" if the kind is not served."""
    group, _, version = text(kind, "apiVersion").rpartition("/")
    name = text(kind, "kind")
    if plural := _BUILT_IN.get((group, version, name)):
        return group, version, plural
    for definition in view.objects("apiextensions.k8s.io", "customresourcedefinitions"):
        served = (text(item, "name") for item in parts(definition, "spec", "versions") if item.get("served") is True)
        known = text(definition, "spec", "group"), text(definition, "status", "acceptedNames", "kind")
        if known == (group, name) and version in served:
            return group, version, text(definition, "spec", "names", "plural")
    return group, version, ""


def _shown(user: User) -> str:
    """Return a user in the form in which kube-apiserver prints one."""
    extra = " ".join(f"{name}:[{' '.join(values)}]" for name, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


PARAMETER_PLUGIN: Final = Plugin(
    "ParameterAccess",
    frozenset({Operation.CREATE, Operation.UPDATE}),
    frozenset(f"{kind}.{_GROUP}" for kind in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", *_POLICIES)),
    check=check_parameters,
)
"""The admission plugin that runs `check_parameters`. In kube-apiserver, the same checks are part of the validation of policies
and bindings, and not a plugin.
"""
