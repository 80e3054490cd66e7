"""The rights that requests need, and the roles that grant exactly these. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find_str
from wharfinger.kube.access_rules import FORBIDDEN, Access, JudgedRequest, rule_line
from wharfinger.kube.service_account import ServiceAccount

RBAC: Final = "rbac.authorization.k8s.io"
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
"""The order in which a rule names its verbs; others follow by name."""
_FOR_ALL: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
"""The resources that every authenticated user may create."""
_GRANTED: Final = re.compile(
    r"\{APIGroups:\[(?P<groups>[^\]]*)\], Resources:\[(?P<resources>[^\]]*)\](?P<rest>[^}]*)\}"
)
_VERBS: Final = re.compile(r"Verbs:\[([^\]]*)\]")
_ESCALATION: Final = "is attempting to grant RBAC permissions not currently held"
_LIMIT: Final = 1024 * 1024


class Part(StrEnum):
    """The purpose of rights."""

    PACKAGE = "package"
    HOOKS = "hooks"
    UPGRADE = "upgrade"
    REMOVAL = "removal"


MEANINGS: Final = {
    Part.PACKAGE: "the package itself, for its installation",
    Part.HOOKS: "its hooks, as far as they ran",
    Part.UPGRADE: "an upgrade",
    Part.REMOVAL: "its removal",
}

Rights = Mapping[Part, frozenset[Access]]
"""The rights of a package, by part. A part may be missing."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The roles for a package: by namespace, "" for the cluster, the accesses that the role there allows."""

    by_namespace: Mapping[str, frozenset[Access]]


def needed(requests: Iterable[JudgedRequest], user: str) -> frozenset[Access]:
    """Return the accesses that the successful requests of a user needed, without those that every user has.

    A request that was refused is left out, and so are discovery and reviews of the user's own rights.
    """
    return frozenset(
        access
        for request in requests
        if request.user == user and request.code != FORBIDDEN
        for access in request.accesses()
        if not access.path and access.resource not in _FOR_ALL
    )


def refused(requests: Iterable[JudgedRequest], user: str) -> tuple[JudgedRequest, ...]:
    """Return the requests of a user that were refused (403)."""
    return tuple(request for request in requests if request.user == user and request.code == FORBIDDEN)


def granted_by(request: JudgedRequest) -> frozenset[Access]:
    """Return the rights that a refused role or binding would have granted to others; the writer must hold them itself.

    Empty if the request was refused for another reason. Rules for named objects are widened to all objects of the resource.
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


def grant_of(rights: Rights, namespaces: Collection[str]) -> Grant:
    """Return the roles for all parts together.

    ``namespaces``: those that exist before the installation. A Role can only be in one of these, so accesses to other
    namespaces are in the ClusterRole.
    """
    roles: dict[str, set[Access]] = {}
    for accesses in rights.values():
        for access in accesses:
            place = access.namespace if access.namespace in namespaces else ""
            roles.setdefault(place, set()).add(access)
    return Grant({place: frozenset(found) for place, found in roles.items()})


def without(grant: Grant, place: str, access: Access) -> Grant:
    """Return the grant without one verb on one resource in one of its roles."""
    left = frozenset(
        each
        for each in grant.by_namespace[place]
        if (each.group, each.resource, each.verb) != (access.group, access.resource, access.verb)
    )
    return Grant({**grant.by_namespace, place: left})


def single_rules(grant: Grant) -> list[tuple[str, Access]]:
    """Return each verb on each resource that the roles allow, once, with the namespace of its role."""
    found = {
        (place, each.group, each.resource, each.verb): (place, each)
        for place, accesses in grant.by_namespace.items()
        for each in accesses
    }
    return [found[key] for key in sorted(found)]


def rule_lines(accesses: Iterable[Access]) -> list[str]:
    """Return the rules for accesses, a line of YAML each: resources of a group with the same verbs are in one rule."""
    verbs: dict[tuple[str, str], set[str]] = {}
    for access in accesses:
        verbs.setdefault((access.group, access.resource), set()).add(access.verb)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), known in sorted(verbs.items()):
        alike.setdefault((group, _ordered(known)), []).append(resource)
    return [rule_line(group, tuple(resources), ordered) for (group, ordered), resources in alike.items()]


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=lambda verb: (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)))


def objects_of(grant: Grant, account: ServiceAccount) -> list[JsonObject]:
    """Return the roles of a grant and their bindings to the account, as objects to apply. They have the account's name."""
    found: list[JsonObject] = []
    for place, accesses in sorted(grant.by_namespace.items()):
        prefix = "" if place else "Cluster"
        metadata: JsonObject = {"name": account.name, **({"namespace": place} if place else {})}
        rules: list[JsonValue] = [
            {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            for group, resource, verb in sorted({(each.group, each.resource, each.verb) for each in accesses})
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
    """Return the rights that a newer version needs and the older one does not, by part; parts without any are missing."""
    found = {part: new.get(part, frozenset()) - old.get(part, frozenset()) for part in Part}
    return {part: accesses for part, accesses in found.items() if accesses}
