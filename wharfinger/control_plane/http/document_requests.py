"""The answers to requests that name no resource: discovery, OpenAPI, health, version, metrics, and the index of paths."""

import hashlib
from typing import Final

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.builtin_kinds import GROUP_ORDER
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.discovery import documents as discovery
from wharfinger.control_plane.discovery import health, openapi_answers
from wharfinger.control_plane.discovery.openapi import OpenApi
from wharfinger.control_plane.http.allowed_methods import NotServedError
from wharfinger.control_plane.http.metrics import METRICS_TYPE, Metrics
from wharfinger.control_plane.http.response_forms import compressed_always, document_response, indented
from wharfinger.control_plane.special_endpoints.service_account_tokens import TokenSigner, discovery_document
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.negotiation import Encoding, Representation, View, named_media, negotiate
from wharfinger.control_plane.wire.routes import (
    CoreVersionsRoute,
    GroupRoute,
    GroupsRoute,
    HealthRoute,
    MetricsRoute,
    OpenApiV2Route,
    OpenApiV3Route,
    OpenIdRoute,
    ResourcesRoute,
    RootRoute,
    Route,
    StatusPageRoute,
    VersionRoute,
)
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.httpd.messages import Request, Response

_KEY_SET: Final = "application/jwk-set+json"
_KEPT: Final = (("cache-control", "public, max-age=3600"),)
_NOT_MACHINE_READABLE: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for "
    "debugging purposes only.\n"
)


_OF_RESOURCES: Final = ("/api/", "/version/")
"""A 404 answer contains a Status if the path begins with one of these prefixes, or names a resource of a built-in group. For
other paths, it is plain text.
"""


class Documents:
    """Answers for the routes that name no resource."""

    def __init__(self, backend: Backend, metrics: Metrics) -> None:
        self._backend = backend
        self.metrics = metrics
        self.openapi = OpenApi(backend.catalog)
        self.address = "127.0.0.1"
        """The address of the server that the answer to ``/api`` contains."""

    @property
    def _catalog(self) -> Catalog:
        return self._backend.catalog

    def answer(self, route: Route, request: Request) -> Response:
        """Answer a request. Raises StatusError, and NotServedError for an unknown path."""
        found = self._by_any_method(route, request)
        if found is not None:
            return found
        if isinstance(route, OpenIdRoute):
            return self._openid(route, request)
        document = self._document(route)
        if document is None:
            raise _not_found(route, request)
        if request.method != "GET" and not isinstance(route, GroupRoute) and _group_of(route) in GROUP_ORDER:
            raise status.method_not_allowed()
        if isinstance(route, VersionRoute):
            _accept(request, str(Encoding.JSON))
            return Response(200, indented(encode_json(document)), str(Encoding.JSON))
        if isinstance(route, RootRoute):
            return Response(200, indented(encode_json(document)), str(Encoding.JSON))
        elsewhere = isinstance(route, GroupRoute) or _group_of(route) not in GROUP_ORDER
        accept = request.headers.get("accept", "")
        return document_response(request, document, negotiate(accept, (), custom=elsewhere))

    def _by_any_method(self, route: Route, request: Request) -> Response | None:
        """Answer a request for a route that answers every method in the same way; return None for other routes."""
        match route:
            case HealthRoute(endpoint, check):
                return health.health(endpoint, check, request)
            case MetricsRoute():
                return _metrics_response(request, self.metrics.text(self._backend))
            case OpenApiV2Route():
                return openapi_answers.version_2(self.openapi, request)
            case OpenApiV3Route(name):
                return openapi_answers.version_3(self.openapi, name, request)
            case CoreVersionsRoute() | GroupsRoute():
                return self._groups(request, core=isinstance(route, CoreVersionsRoute))
            case StatusPageRoute(name):
                return Response(200, f"\napiserver {name}\n{_NOT_MACHINE_READABLE}".encode(), health.PLAIN)
            case _:
                return None

    def _document(self, route: Route) -> JsonObject | None:
        match route:
            case RootRoute():
                return discovery.paths(self._catalog)
            case VersionRoute():
                return discovery.VERSION
            case GroupRoute(group):
                return discovery.group(self._catalog, group)
            case ResourcesRoute(group, version):
                return discovery.resources(self._catalog, group, version)
            case _:
                return None

    def _openid(self, route: OpenIdRoute, request: Request) -> Response:
        """Return the OpenID document of the issuer of service account tokens, or the public keys that verify these tokens."""
        if request.method != "GET":
            raise status.method_not_allowed()
        if route.keys:
            _accept(request, _KEY_SET)
            return Response(200, encode_json(TokenSigner(self._backend).key_set()), _KEY_SET, _KEPT)
        _accept(request, str(Encoding.JSON))
        return Response(200, encode_json(discovery_document(self.address)), str(Encoding.JSON), _KEPT)

    def _groups(self, request: Request, *, core: bool) -> Response:
        if core and request.method != "GET":
            raise status.method_not_allowed()
        representation = negotiate(request.headers.get("accept", ""), (View.DISCOVERY,), custom=not core)
        if representation.view is View.DISCOVERY:
            return _aggregated(discovery.aggregated(self._catalog, core=core), representation, request)
        listed = discovery.core_versions(self.address) if core else discovery.groups(self._catalog)
        return document_response(request, listed, representation)


def _group_of(route: Route) -> str | None:
    """Return the API group of a discovery document, or None for other routes. For the core group and for ``/version``, return
    "".
    """
    match route:
        case GroupRoute(group) | ResourcesRoute(group, _):
            return group
        case VersionRoute():
            return ""
        case _:
            return None


def _not_found(route: Route, request: Request) -> Exception:
    """Return the 404 error of a path: a Status in a built-in group or below a path in ``_OF_RESOURCES``, else plain text."""
    built_in = isinstance(route, ResourcesRoute) and route.group in GROUP_ORDER
    return status.no_such_resource() if built_in or request.path.startswith(_OF_RESOURCES) else NotServedError()


def _metrics_response(request: Request, text: str) -> Response:
    return compressed_always(request, Response(200, text.encode(), METRICS_TYPE))


def _accept(request: Request, media: str) -> None:
    """Refuse (406) a client that does not accept the only available media type."""
    accept = request.headers.get("accept", "")
    if accept and {"*/*", media}.isdisjoint(named_media(accept)):
        raise status.not_acceptable((media,))


def _aggregated(document: JsonObject, representation: Representation, request: Request) -> Response:
    """Return the answer with a document that clients cache by its ETag."""
    tag = f'"{hashlib.sha512(encode_json(document)).hexdigest().upper()}"'
    headers = (("cache-control", "public"), ("etag", tag), ("vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return Response(304, b"", "", headers)
    return document_response(request, document, representation, 200, headers)
