"""The control plane as an HTTP handler: routes, who asks, and every answer's form."""

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

from wharfinger.cluster.control_plane import discovery, openapi, status
from wharfinger.cluster.control_plane.authentication import Authenticator, User, authorize_path
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.bodies import encode
from wharfinger.cluster.control_plane.metrics import Metrics
from wharfinger.cluster.control_plane.negotiation import Encoding, Representation, View, negotiate
from wharfinger.cluster.control_plane.resources import Answer, NotServedError, WatchAnswer, handle_resource
from wharfinger.cluster.control_plane.routes import (
    CoreVersionsRoute,
    GroupRoute,
    GroupsRoute,
    HealthRoute,
    MetricsRoute,
    OpenApiV2Route,
    OpenApiV3Route,
    ResourceRoute,
    ResourcesRoute,
    RootRoute,
    Route,
    UnknownRoute,
    VersionRoute,
    parse_route,
)
from wharfinger.cluster.control_plane.storage import StorageError
from wharfinger.cluster.control_plane.watching import Bells, watch_events
from wharfinger.formats.json_value import JsonObject
from wharfinger.httpd.messages import Request, Response, StreamingResponse

log: Final = logging.getLogger(__name__)
PLAIN: Final = "text/plain; charset=utf-8"
WARNINGS_CHARS: Final = 4096
"""Characters of all warnings of one answer, as in the kube-apiserver; what is over is left out."""
_PAGE_NOT_FOUND: Final = Response(404, b"404 page not found\n", PLAIN)


class ControlPlaneHandler:
    """Answers requests; a ``Handler`` of :mod:`wharfinger.httpd.messages`."""

    def __init__(self, backend: Backend, bells: Bells, authenticator: Authenticator) -> None:
        self._backend = backend
        self._bells = bells
        self._authenticator = authenticator
        self.metrics = Metrics()
        self.address = "127.0.0.1"
        """What ``/api`` names as the server's address."""
        self._index: tuple[int, JsonObject] = (-1, {})

    async def __call__(self, request: Request) -> Response | StreamingResponse:
        try:
            response = self._answer(request)
        except status.StatusError as error:
            log.debug("%s %s: %d %s", request.method, request.path, error.code, error.message)
            response = _failure(request, error)
        except NotServedError:
            response = _PAGE_NOT_FOUND
        except StorageError as error:
            log.warning("%s %s: %s", request.method, request.path, error)
            response = _failure(request, status.internal(str(error)))
        self.metrics.requests[request.method, response.status] += 1
        return response

    def _answer(self, request: Request) -> Response | StreamingResponse:
        user = self._authenticator.user(request.headers)
        route = parse_route(request.path)
        if isinstance(route, ResourceRoute):
            if request.method in {"HEAD", "OPTIONS"}:
                raise status.method_not_allowed()
            answer = handle_resource(self._backend, user, route, request)
            return self._stream(answer) if isinstance(answer, WatchAnswer) else _whole(answer)
        return self._document(user, route, request)

    def _document(self, user: User, route: Route, request: Request) -> Response:
        authorize_path(user, request.method, request.path)
        if isinstance(route, UnknownRoute):
            raise NotServedError
        if request.method != "GET":
            raise status.method_not_allowed()
        match route:
            case HealthRoute():
                return Response(200, b"ok", PLAIN)
            case MetricsRoute():
                return Response(
                    200, self.metrics.text(self._backend).encode(), "text/plain; version=0.0.4; charset=utf-8"
                )
            case CoreVersionsRoute() | GroupsRoute():
                return self._groups(route, request)
            case OpenApiV2Route():
                accept = request.headers.get("accept", "")
                if openapi.VERSION_2_PROTOBUF_ASKED in accept:
                    return Response(200, openapi.version_2_protobuf(), openapi.VERSION_2_PROTOBUF_TYPE)
                negotiate(accept, ())
                return _json(openapi.version_2(self._backend.catalog))
            case OpenApiV3Route(name):
                document = openapi.document(self._backend.catalog, name) if name else self._openapi_index()
                return _json(document) if document is not None else Response(404, b"", PLAIN)
            case _:
                return self._discovery(route, request)

    def _discovery(self, route: Route, request: Request) -> Response:
        catalog = self._backend.catalog
        document: JsonObject | None
        match route:
            case RootRoute():
                document = discovery.paths(catalog)
            case VersionRoute():
                document = discovery.VERSION
            case GroupRoute(group):
                document = discovery.group(catalog, group)
            case ResourcesRoute(group, version):
                document = discovery.resources(catalog, group, version)
            case _:
                document = None
        if document is None:
            raise NotServedError
        representation = negotiate(request.headers.get("accept", ""), ())
        return _whole(Answer(200, document, representation))

    def _groups(self, route: CoreVersionsRoute | GroupsRoute, request: Request) -> Response:
        core = isinstance(route, CoreVersionsRoute)
        representation = negotiate(request.headers.get("accept", ""), (View.DISCOVERY,))
        if representation.view is View.DISCOVERY:
            document = discovery.aggregated(self._backend.catalog, core=core)
        else:
            document = discovery.core_versions(self.address) if core else discovery.groups(self._backend.catalog)
        return _whole(Answer(200, document, representation))

    def _openapi_index(self) -> JsonObject:
        """The index, made anew only where the catalog changed: it hashes every document."""
        generation = self._backend.catalog.generation
        if self._index[0] != generation:
            self._index = (generation, openapi.index(self._backend.catalog))
        return self._index[1]

    def _stream(self, answer: WatchAnswer) -> StreamingResponse:
        @asynccontextmanager
        async def open_chunks() -> AsyncIterator[AsyncIterator[bytes]]:
            self.metrics.watches += 1
            try:
                async with aclosing(watch_events(self._backend, self._bells, answer.watch, answer.render)) as events:
                    yield events
            finally:
                self.metrics.watches -= 1

        return StreamingResponse(200, open_chunks, answer.representation.content_type, _warnings(answer.warnings))


def _warnings(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Warning headers (RFC 7234 §5.5) as clients print them, as many as fit; names of fields may hold any character."""
    headers, room = [], WARNINGS_CHARS
    for text in texts:
        line = "".join(char for char in text if char.isprintable()).encode("ascii", "replace").decode()
        room -= len(line)
        if room < 0:
            break
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("warning", f'299 - "{escaped}"'))
    return tuple(headers)


def _whole(answer: Answer) -> Response:
    body = encode(answer.document, answer.representation.encoding)
    return Response(answer.code, body, answer.representation.content_type, _warnings(answer.warnings))


def _json(document: JsonObject) -> Response:
    return _whole(Answer(200, document, Representation(Encoding.JSON)))


def _failure(request: Request, error: status.StatusError) -> Response:
    headers = (("retry-after", str(error.retry_after)),) if error.retry_after else ()
    body = b"" if request.method == "HEAD" else encode(error.body(), Encoding.JSON)
    return Response(error.code, body, "application/json", headers)
