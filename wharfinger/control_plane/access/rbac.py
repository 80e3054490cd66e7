"""Role-based access control: what the roles that are bound to a user allow. Pure, except that stored roles and bindings are read.

An administrator (``system:masters``) may do everything; no rule is consulted. Any other user may do what the rules of the
user's roles allow. A binding binds a role to a user, a group or a service account. A ClusterRoleBinding applies in the whole
cluster, a RoleBinding only in its namespace. Rules only allow; no rule forbids anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.access.role_rules import Attributes, allows, rules_of
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.wire.status import aggregated
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_object, find_str

RBAC: Final = "rbac.authorization.k8s.io"
_PLURALS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}


@dataclass(frozen=True, slots=True)
class Decision:
    """An RBAC decision. ``reason`` names the binding that allows the request or, in a refusal, bound roles that do not exist."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that applies to a user; ``source`` names its binding and role.

    If ``rule`` is None, the bound role does not exist, and ``source`` is the error that reports this.
    """

    source: str
    rule: JsonObject | None


def decide(view: ClusterView, asked: Attributes) -> Decision:
    """Return whether the user may make this request, and why."""
    if asked.user.administrator:
        return Decision(allowed=True)
    missing = []
    for grant in grants(view, asked.user, asked.namespace):
        if grant.rule is None:
            missing.append(grant.source)
        elif allows(grant.rule, asked):
            return Decision(allowed=True, reason=f"RBAC: allowed by {grant.source}")
    return Decision(allowed=False, reason=f"RBAC: {aggregated(missing)}" if missing else "")


def grants(view: ClusterView, user: User, namespace: str) -> Iterator[Grant]:
    """Yield the rules that apply to a user in the whole cluster, and those that apply in a namespace ("" for none)."""
    for binding in reversed(view.objects(RBAC, "clusterrolebindings")):
        yield from _granted(view, user, binding, "")
    if namespace:
        for binding in view.objects(RBAC, "rolebindings", namespace):
            yield from _granted(view, user, binding, namespace)


def _granted(view: ClusterView, user: User, binding: JsonObject, namespace: str) -> Iterator[Grant]:
    for item in find_list(binding, "subjects"):
        subject = as_object(item, "subjects")
        if _is_subject(user, subject, namespace):
            break
    else:
        return
    reference = find_object(binding, "roleRef")
    role = bound_role(view, reference, namespace)
    if role is None:
        plural = _PLURALS.get(find_str(reference, "kind"), "roles")
        yield Grant(f'{plural[:-1]}.{RBAC} "{find_str(reference, "name")}" not found', None)
        return
    source = _source(binding, reference, subject, namespace)
    for rule in rules_of(role):
        yield Grant(source, rule)


def bound_role(view: ClusterView, reference: JsonObject, namespace: str) -> JsonObject | None:
    """Return the role that a ``roleRef`` names, or None."""
    plural = _PLURALS.get(find_str(reference, "kind"))
    if plural is None:
        return None
    return view.object(RBAC, plural, namespace if plural == "roles" else "", find_str(reference, "name"))


def _is_subject(user: User, subject: JsonObject, namespace: str) -> bool:
    name = find_str(subject, "name")
    match find_str(subject, "kind"):
        case "User":
            return user.name == name
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            where = find_str(subject, "namespace") or namespace
            return bool(where) and user.name == f"system:serviceaccount:{where}:{name}"
        case _:
            return False


def _source(binding: JsonObject, reference: JsonObject, subject: JsonObject, namespace: str) -> str:
    """Return the source of a permission as access reviews show it: ``RoleBinding "b/ns" of Role "r" to Group "g"``."""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    name = find_str(binding, "metadata", "name")
    who = find_str(subject, "name")
    if find_str(subject, "kind") == "ServiceAccount":
        who = f"{who}/{find_str(subject, 'namespace') or namespace}"
    role = f'{find_str(reference, "kind")} "{find_str(reference, "name")}"'
    full = f"{name}/{namespace}" if namespace else name
    return f'{kind} "{full}" of {role} to {find_str(subject, "kind")} "{who}"'
