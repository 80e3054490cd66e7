"""The check whether one rule of a role (``rbac.authorization.k8s.io/v1`` PolicyRule) allows a request. Pure."""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.access.users import User
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a request: for a resource or, if ``path`` is not empty, for a path that is not a resource."""

    user: User
    verb: str
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined_resource(self) -> str:
        """The resource with its subresource: ``pods/log``, or ``pods``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def strings(rule: JsonObject, field: str) -> tuple[str, ...]:
    """Return the strings in a list field of a rule; items of other types are ignored."""
    return tuple(item for item in _listed(rule, field) if isinstance(item, str))


def _listed(rule: JsonObject, field: str) -> list[JsonValue]:
    found = rule.get(field)
    return found if isinstance(found, list) else []


def allows(rule: JsonObject, asked: Attributes) -> bool:
    """Return whether one rule allows the request."""
    verbs = strings(rule, "verbs")
    if ALL not in verbs and asked.verb not in verbs:
        return False
    if asked.path:
        return any(_fits_path(url, asked.path) for url in strings(rule, "nonResourceURLs"))
    groups, names = strings(rule, "apiGroups"), strings(rule, "resourceNames")
    return (
        (ALL in groups or asked.group in groups)
        and any(_fits_resource(resource, asked) for resource in strings(rule, "resources"))
        and (not names or asked.name in names)
    )


def _fits_resource(resource: str, asked: Attributes) -> bool:
    """Return whether a rule's resource matches: ``*`` matches all resources, ``*/scale`` the subresource ``scale`` of each."""
    if resource in {ALL, asked.combined_resource}:
        return True
    return bool(asked.subresource) and resource == f"*/{asked.subresource}"


def _fits_path(url: str, path: str) -> bool:
    if url in {ALL, path}:
        return True
    return url.endswith(ALL) and path.startswith(url.rstrip(ALL))


def rules_of(role: JsonObject) -> tuple[JsonObject, ...]:
    """Return the rules of a Role or ClusterRole."""
    return tuple(rule for rule in find_list(role, "rules") if isinstance(rule, dict))
