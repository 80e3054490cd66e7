"""The inputs of a policy's expressions: the variables that describe the request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.access.rbac import decide
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import User, service_account_groups
from wharfinger.control_plane.admission.request import Resource, namespace_of, request_document, seen
from wharfinger.control_plane.api.admissionregistration import expression_environment as environment
from wharfinger.control_plane.api.common.admission import Admission
from wharfinger.control_plane.cel.library.authorizer import Check, Verdict, authorizer_of, resource_check
from wharfinger.control_plane.cel.values.documents import document_value
from wharfinger.control_plane.cel.values.values import Value
from wharfinger.control_plane.objects.lenient_fields import part
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.formats.json.value import JsonObject

_OF_NAMESPACES: Final = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "labels", "annotations", "finalizers",
)  # fmt: skip
"""The metadata of a namespace that expressions can see."""


@dataclass(frozen=True, slots=True)
class RoleAuthorizer:
    """The ``authorizer`` of expressions, which checks the permissions of one user."""

    view: ClusterView
    user: User

    def account(self, namespace: str, name: str) -> "RoleAuthorizer":
        """Return the authorizer that checks the permissions of a service account instead of this user's."""
        groups = (*service_account_groups(namespace), "system:authenticated")
        return RoleAuthorizer(self.view, User(f"system:serviceaccount:{namespace}:{name}", groups))

    def decide(self, check: Check, verb: str) -> Verdict:
        """Decide by RBAC whether the user may do what an expression checks."""
        if check.path:
            asked = Attributes(user=self.user, verb=verb, path=check.path)
        else:
            asked = Attributes(
                user=self.user, verb=verb, namespace=check.namespace, group=check.group, version="*",
                resource=check.resource, subresource=check.subresource, name=check.name,
            )  # fmt: skip
        decision = decide(self.view, asked)
        return Verdict(decision.allowed, decision.reason)


def authorizers(admission: Admission) -> dict[str, Value]:
    """Return the variables that give expressions access to permission checks (``authorizer`` and
    ``authorizer.requestResource``).
    """
    asker = RoleAuthorizer(admission.view, admission.user)
    own = Check(
        asker, group=admission.kind.group, resource=admission.kind.plural, subresource=admission.subresource,
        namespace=namespace_of(admission), name=admission.name,
    )  # fmt: skip
    return {environment.CHECKS: authorizer_of(asker), environment.OWN_CHECK: resource_check(own)}


def inputs(
    admission: Admission, asked: Resource, matched: Resource, parameter: JsonObject | None
) -> Mapping[str, Value]:
    """Return all inputs of a policy's expressions except the authorizers and the variables that the policy defines itself."""
    return {
        environment.OBJECT: document_value(seen(admission, matched, admission.obj)),
        environment.OLD_OBJECT: document_value(seen(admission, matched, admission.old)),
        environment.PARAMS: document_value(parameter),
        environment.REQUEST: document_value(request_document(admission, asked, matched)),
        environment.NAMESPACE: document_value(_namespace(admission)),
    }


def _namespace(admission: Admission) -> JsonObject | None:
    """Return the Namespace of the written object, with the fields that expressions can see.

    Return None if the object is cluster-scoped or its Namespace does not exist.
    """
    if not admission.namespace:
        return None
    found = admission.view.object("", "namespaces", "", admission.namespace)
    if found is None:
        return None
    metadata = part(found, "metadata") or {}
    return {
        "metadata": {name: metadata[name] for name in _OF_NAMESPACES if name in metadata},
        "spec": part(found, "spec") or {},
        "status": part(found, "status") or {},
    }
