"""Requests as RBAC sees them, and the RBAC rules that allow these requests."""

import json
import re
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.kube.service_account import service_account_of

CREATED: Final = 201
FORBIDDEN: Final = 403
_REFUSED: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)" '
    r'(?:in the namespace "(?P<namespace>[^"]*)"|at the cluster scope)'
)
"""The API server's words for a request that no rule allows (``k8s.io/apiserver`` responsewriters.forbiddenMessage)."""
_IMPERSONATE_ON: Final = "impersonate-on:serviceaccount:"
"""The prefix of a verb that an API server names when it refuses the impersonation of a service account (KEP-5284). The server
checks this narrow verb before the usual verb ``impersonate``, and its refusal names the narrow verb even if the user may use
neither.
"""
_REFUSED_PATH: Final = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) path "(?P<path>[^"]*)"')


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """The access that a request needs: a verb on a resource (in one namespace or at the cluster scope), or on a path.

    ``group`` is "" for the core group. ``resource`` is the plural, with the subresource if there is one: ``pods/log``.
    ``namespace`` is "" at the cluster scope. If ``path`` is set, the request is for that path and for no resource.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    path: str = ""

    def rule(self) -> str:
        """Return the rule that allows this access, as one line of YAML: an item for the ``rules`` of a role."""
        if self.path:
            return f'- {{nonResourceURLs: ["{self.path}"], verbs: [{self.verb}]}}'
        return rule_line(self.group, (self.resource,), (self.verb,))


IMPERSONATE: Final = Access("", "serviceaccounts", "impersonate")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that the API server refused: the user that made it, and the access that no rule allows."""

    user: str
    access: Access

    def remedy(self) -> str:
        """Return the advice to add the missing rule to a role, for the end of a message."""
        access, account = self.access, service_account_of(self.user)
        if access.verb.startswith(_IMPERSONATE_ON):
            access = IMPERSONATE
        who = f"ServiceAccount {account}" if account is not None else f"user {self.user}"
        place = f"a Role of the namespace {access.namespace}" if access.namespace else "a ClusterRole"
        return f"add this rule to {place} that is bound to the {who}: {access.rule()}"


def refusal_of(message: str) -> Refusal | None:
    """Return the refusal that a message of the API server (403) reports; None if the message reports something else."""
    if (found := _REFUSED.search(message)) is not None:
        access = Access(found["group"], found["resource"], found["verb"], found["namespace"] or "")
        return Refusal(found["user"], access)
    if (found := _REFUSED_PATH.search(message)) is not None:
        return Refusal(found["user"], Access("", "", found["verb"], path=found["path"]))
    return None


def rule_line(group: str, resources: tuple[str, ...], verbs: tuple[str, ...], names: tuple[str, ...] = ()) -> str:
    """Return one rule of a role as a line of YAML, an item of a list; if there are ``names``, the rule is limited to the
    objects with these names.
    """
    named = f", resourceNames: [{', '.join(map(json.dumps, names))}]" if names else ""
    return f'- {{apiGroups: ["{group}"], resources: [{", ".join(resources)}]{named}, verbs: [{", ".join(verbs)}]}}'


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """A request that an API server has answered: its user, the access that it needed, and the answer.

    ``agent`` is the user agent, ``name`` the object's name ("" for a collection), ``code`` the HTTP status. An apply or an
    update that created its object (201) needs the verb ``create``, too.
    """

    user: str
    agent: str
    access: Access
    name: str
    code: int
    message: str = ""
    """The body of the answer, a Status in JSON, if the request failed."""

    def refused(self) -> Access:
        """Return the refused access. It is the access that the answer names, or ``access`` if the answer names none. For an
        apply, the answer may name the verb ``create`` instead of ``patch``.
        """
        found = refusal_of(self.message.replace('\\"', '"'))
        return self.access if found is None else found.access

    def accesses(self) -> tuple[Access, ...]:
        """Return all accesses that the request needs: ``access`` itself, and ``create`` if the request was a patch or an update
        that created an object.
        """
        if self.code == CREATED and self.access.verb in ("patch", "update"):
            return (self.access, replace(self.access, verb="create"))
        return (self.access,)
