"""The rights that requests need, and the roles that grant exactly these rights. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find_str
from wharfinger.kube.access_rules import FORBIDDEN, Access, JudgedRequest, rule_line
from wharfinger.kube.service_account import ServiceAccount

RBAC: Final = "rbac.authorization.k8s.io"
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
"""The order of the verbs in a rule; other verbs follow, sorted by name."""
_FOR_ALL: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
"""The resources that every authenticated user may create, so that no right is needed."""
_GRANTED: Final = re.compile(
    r"\{APIGroups:\[(?P<groups>[^\]]*)\], Resources:\[(?P<resources>[^\]]*)\](?P<rest>[^}]*)\}"
)
_VERBS: Final = re.compile(r"Verbs:\[([^\]]*)\]")
_ESCALATION: Final = "is attempting to grant RBAC permissions not currently held"
_LIMIT: Final = 1024 * 1024


class Part(StrEnum):
    """The part of a package, or of its lifecycle, for which rights are needed."""

    PACKAGE = "package"
    HOOKS = "hooks"
    UPGRADE = "upgrade"
    REMOVAL = "removal"


MEANINGS: Final = {
    Part.PACKAGE: "the package itself, for its installation",
    Part.HOOKS: "its hooks, except those that did not run in the trial",
    Part.UPGRADE: "an upgrade",
    Part.REMOVAL: "its removal",
}

Rights = Mapping[Part, frozenset[Access]]
"""The rights that a package needs, by the part of its life that needs them. A part that needs none may be missing."""


Names: TypeAlias = Mapping[Access, frozenset[str]]
"""For each access, the names of the only objects for which it is needed. Each other access is needed for all objects."""
NAMED_VERBS: Final = frozenset({"get", "update", "patch", "delete"})
"""The verbs of requests about one object, for which RBAC can compare the object's name."""
MAX_NAMES: Final = 50
"""The limit on the number of names in one rule; access to more objects is not restricted by name."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The roles for a package: the accesses that each role allows, by namespace ("" for the cluster).

    ``names`` restricts accesses to objects with these names.
    """

    by_namespace: Mapping[str, frozenset[Access]]
    names: Names = field(default_factory=dict)


def needed(requests: Iterable[JudgedRequest], user: str) -> frozenset[Access]:
    """Return the accesses that the requests of a user needed, without the accesses that every user has.

    Refused requests, discovery and reviews of the user's own rights are left out.
    """
    return frozenset(
        access
        for request in requests
        if request.user == user and request.code != FORBIDDEN
        for access in request.accesses()
        if not access.path and access.resource not in _FOR_ALL
    )


def named(requests: Iterable[JudgedRequest], user: str) -> dict[Access, frozenset[str]]:
    """Return the names of the objects for each access of a user. Leave out an access if any of its requests named no object, or
    if there are more than MAX_NAMES names.
    """
    found: dict[Access, set[str]] = {}
    for request in requests:
        if request.user == user and request.code != FORBIDDEN:
            for access in request.accesses():
                found.setdefault(access, set()).add(request.name if access.verb in NAMED_VERBS else "")
    return {access: frozenset(names) for access, names in found.items() if "" not in names and len(names) <= MAX_NAMES}


def all_names(rights: "Rights", names: Mapping[Part, Names]) -> dict[Access, frozenset[str]]:
    """Return, for each access, the names of the objects that all parts together need. An access is left out if some part needs
    it for all objects.
    """
    found: dict[Access, frozenset[str]] = {}
    whole: set[Access] = set()
    for part, accesses in rights.items():
        for access in accesses:
            own = names.get(part, {}).get(access)
            if own is None:
                whole.add(access)
            else:
                found[access] = found.get(access, frozenset()) | own
    return {access: own for access, own in found.items() if access not in whole and len(own) <= MAX_NAMES}


def refused(requests: Iterable[JudgedRequest], user: str) -> tuple[JudgedRequest, ...]:
    """Return the requests of a user that were refused (403)."""
    return tuple(request for request in requests if request.user == user and request.code == FORBIDDEN)


def granted_by(request: JudgedRequest) -> frozenset[Access]:
    """Return the rights that the user lacked to create or change a role or a binding: a user who does not have the rights of a
    role may not grant that role to others.

    The result is empty if the request was refused for another reason. Rules about named objects are extended to all objects
    of the resource.
    """
    try:
        said = find_str(
            as_object(decode_json(request.message.encode(), max_bytes=_LIMIT, what="status"), "status"), "message"
        )
    except FormatError:
        return frozenset()
    if _ESCALATION not in said:
        return frozenset()
    return frozenset(_granted(said, request.access.namespace))


def _granted(message: str, namespace: str) -> Iterator[Access]:
    for found in _GRANTED.finditer(message):
        verbs = _VERBS.search(found["rest"])
        for group in _words(found["groups"]):
            for resource in _words(found["resources"]):
                for verb in _words(verbs[1] if verbs is not None else ""):
                    yield Access(group, resource, verb, namespace)


def _words(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text)


def grant_of(rights: Rights, namespaces: Collection[str], names: Names | None = None) -> Grant:
    """Return the roles for all parts together.

    ``namespaces`` are the namespaces that exist before the installation. A Role can only be created in one of these
    namespaces, so accesses in other namespaces are in the ClusterRole.
    """
    roles: dict[str, set[Access]] = {}
    for accesses in rights.values():
        for access in accesses:
            place = access.namespace if access.namespace in namespaces else ""
            roles.setdefault(place, set()).add(access)
    return Grant({place: frozenset(found) for place, found in roles.items()}, names or {})


def without(grant: Grant, place: str, access: Access) -> Grant:
    """Return the grant without one verb on one resource in the role of the namespace ``place`` ("": in the ClusterRole)."""
    left = frozenset(
        each
        for each in grant.by_namespace[place]
        if (each.group, each.resource, each.verb) != (access.group, access.resource, access.verb)
    )
    return Grant({**grant.by_namespace, place: left}, grant.names)


def single_rules(grant: Grant) -> list[tuple[str, Access]]:
    """Return each verb on each resource that the roles allow, with the namespace of the role, and without duplicates."""
    found = {
        (place, each.group, each.resource, each.verb): (place, each)
        for place, accesses in grant.by_namespace.items()
        for each in accesses
    }
    return [found[key] for key in sorted(found)]


def rule_lines(accesses: Collection[Access], names: Names | None = None) -> list[str]:
    """Return the rules for accesses, each as one line of YAML. Resources of an API group that have the same verbs and names
    share a rule.
    """
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for (group, resource, verb), own in _by_rule(accesses, names or {}).items():
        verbs.setdefault((group, resource, own), set()).add(verb)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, own), known in sorted(verbs.items()):
        alike.setdefault((group, _ordered(known), own), []).append(resource)
    return [rule_line(group, tuple(resources), ordered, own) for (group, ordered, own), resources in alike.items()]


def _by_rule(accesses: Iterable[Access], names: Names) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Return the names for each verb on each resource of one role; no names mean that the verb is allowed on all objects."""
    found: dict[tuple[str, str, str], frozenset[str] | None] = {}
    for access in accesses:
        key, own = (access.group, access.resource, access.verb), names.get(access)
        before = found.get(key, frozenset())
        found[key] = None if own is None or before is None else before | own
    return {key: tuple(sorted(own or ())) for key, own in found.items()}


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=lambda verb: (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)))


def objects_of(grant: Grant, account: ServiceAccount) -> list[JsonObject]:
    """Return the roles of a grant and their bindings to the account, as objects to apply. They have the account's name."""
    found: list[JsonObject] = []
    for place, accesses in sorted(grant.by_namespace.items()):
        prefix = "" if place else "Cluster"
        metadata: JsonObject = {"name": account.name, **({"namespace": place} if place else {})}
        rules: list[JsonValue] = [
            {
                "apiGroups": [group],
                "resources": [resource],
                "verbs": [verb],
                **({"resourceNames": [*own]} if own else {}),
            }
            for (group, resource, verb), own in sorted(_by_rule(accesses, grant.names).items())
        ]
        role: JsonObject = {"kind": f"{prefix}Role", "metadata": metadata, "rules": rules}
        subject: JsonObject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
        reference: JsonObject = {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": account.name}
        binding: JsonObject = {
            "kind": f"{prefix}RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        }
        found += [{"apiVersion": f"{RBAC}/v1", **role}, {"apiVersion": f"{RBAC}/v1", **binding}]
    return found


def grown(old: Rights, new: Rights) -> dict[Part, frozenset[Access]]:
    """Return the rights that only the newer version needs, by part; parts without such rights are missing."""
    found = {part: new.get(part, frozenset()) - old.get(part, frozenset()) for part in Part}
    return {part: accesses for part, accesses in found.items() if accesses}
