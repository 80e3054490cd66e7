"""The parser of the paths of a Kubernetes API, such as ``/apis/apps/v1/namespaces/a/deployments/b/scale``.

Pure. This module does not know which kinds exist, so the path alone determines its route. As in kube-apiserver's RequestInfo,
``b`` in ``/api/v1/namespaces/a/b`` is a subresource of the namespace if it is ``status`` or ``finalize``, and otherwise a
namespaced resource.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})


@dataclass(frozen=True, slots=True)
class RootRoute:
    """The routes ``/`` and ``/index.html``: the list of paths."""


@dataclass(frozen=True, slots=True)
class HealthRoute:
    """The routes ``/healthz``, ``/livez`` and ``/readyz``, each optionally followed by the name of a check."""

    endpoint: str
    check: str


@dataclass(frozen=True, slots=True)
class VersionRoute:
    """The route ``/version``."""


@dataclass(frozen=True, slots=True)
class MetricsRoute:
    """The routes ``/metrics`` and ``/metrics/slis``."""


@dataclass(frozen=True, slots=True)
class CoreVersionsRoute:
    """The route ``/api``: the versions of the core group."""


@dataclass(frozen=True, slots=True)
class GroupsRoute:
    """The route ``/apis``, which lists all groups except the core group."""


@dataclass(frozen=True, slots=True)
class GroupRoute:
    """The route ``/apis/<group>``."""

    group: str


@dataclass(frozen=True, slots=True)
class ResourcesRoute:
    """The routes ``/api/v1`` and ``/apis/<group>/<version>``: the resources of a version."""

    group: str
    version: str


@dataclass(frozen=True, slots=True)
class OpenApiV2Route:
    """The route ``/openapi/v2``."""


@dataclass(frozen=True, slots=True)
class OpenApiV3Route:
    """The route ``/openapi/v3`` and those below it; ``document`` is "" for the index, or a name such as ``apis/apps/v1``."""

    document: str


@dataclass(frozen=True, slots=True)
class OpenIdRoute:
    """The route ``/.well-known/openid-configuration`` (the issuer of service account tokens); with ``keys``, the route
    ``/openid/v1/jwks``.
    """

    keys: bool


@dataclass(frozen=True, slots=True)
class StatusPageRoute:
    """The routes ``/statusz`` and ``/flagz``."""

    name: str


class ResourceRoute(msgspec.Struct, frozen=True):
    """A collection (``name`` is ""), an object, or its subresource; ``watch`` is true for the deprecated watch paths."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str = ""
    subresource: str = ""
    watch: bool = False


@dataclass(frozen=True, slots=True)
class BrokenRoute:
    """A path that ends at ``watch``, and so names no resource to watch."""


@dataclass(frozen=True, slots=True)
class UnknownRoute:
    """The route of every path that no other route class describes."""


Route: TypeAlias = (
    RootRoute
    | HealthRoute
    | VersionRoute
    | MetricsRoute
    | CoreVersionsRoute
    | GroupsRoute
    | GroupRoute
    | ResourcesRoute
    | OpenApiV2Route
    | OpenApiV3Route
    | OpenIdRoute
    | StatusPageRoute
    | ResourceRoute
    | BrokenRoute
    | UnknownRoute
)


def parse_route(path: str) -> Route:
    """Return the route of a path whose percent-encoding has been decoded.

    A trailing slash is ignored in most paths. A path with an empty segment has no known route.
    """
    inner = path.strip("/")
    segments = inner.split("/") if inner else []
    if not path.startswith("/") or "" in segments:
        return UnknownRoute()
    match segments:
        case []:
            return RootRoute()
        case ["api"]:
            return CoreVersionsRoute()
        case ["api", version, *rest]:
            return _resource("", version, rest)
        case ["apis"]:
            return GroupsRoute()
        case ["apis", group]:
            return GroupRoute(group)
        case ["apis", group, version, *rest]:
            return _resource(group, version, rest)
        case _:
            return _document(segments) if not path.endswith("/") else _slashed(segments)


def _slashed(segments: list[str]) -> Route:
    """Return the route of a path that ends with a slash.

    The slash belongs to the name of an OpenAPI v3 document, makes the path of a health check unknown, and is ignored elsewhere.
    """
    found = _document(segments)
    if isinstance(found, OpenApiV3Route):
        return OpenApiV3Route(f"{found.document}/")
    return UnknownRoute() if isinstance(found, HealthRoute) else found


def _document(segments: list[str]) -> Route:
    match segments:
        case ["version"]:
            return VersionRoute()
        case ["index.html"]:
            return RootRoute()
        case [".well-known", "openid-configuration"]:
            return OpenIdRoute(keys=False)
        case ["openid", "v1", "jwks"]:
            return OpenIdRoute(keys=True)
        case [("statusz" | "flagz") as page]:
            return StatusPageRoute(page)
        case ["metrics"] | ["metrics", "slis"]:
            return MetricsRoute()
        case [endpoint, *check] if endpoint in _HEALTH:
            return HealthRoute(endpoint, "/".join(check))
        case ["openapi", "v2"]:
            return OpenApiV2Route()
        case ["openapi", "v3", *document]:
            return OpenApiV3Route("/".join(document))
        case _:
            return UnknownRoute()


def _resource(group: str, version: str, rest: list[str]) -> Route:
    watch = bool(rest) and rest[0] == "watch"
    match rest[1:] if watch else rest:
        case []:
            return BrokenRoute() if watch else ResourcesRoute(group, version)
        case ["namespaces"]:
            return ResourceRoute(group, version, "", "namespaces", watch=watch)
        case ["namespaces", name]:
            return ResourceRoute(group, version, "", "namespaces", name, watch=watch)
        case ["namespaces", name, subresource] if subresource in _NAMESPACE_SUBRESOURCES:
            return ResourceRoute(group, version, "", "namespaces", name, subresource, watch=watch)
        case ["namespaces", namespace, plural, *tail]:
            return ResourceRoute(group, version, namespace, plural, *_tail(tail), watch)
        case [plural, *tail]:
            return ResourceRoute(group, version, "", plural, *_tail(tail), watch)
        case _:
            return UnknownRoute()


def _tail(tail: list[str]) -> tuple[str, str]:
    """Return the name of an object and its subresource, each "" if it is missing."""
    return (tail[0] if tail else "", "/".join(tail[1:]))
