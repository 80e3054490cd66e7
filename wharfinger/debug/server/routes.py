"""The routes of the debug socket: one table of handlers, which get their answers from an Inspector.

The socket is read-only: it answers GET and HEAD, and POST for the only request that contains settings. A request with an unknown
path, method or parameter is refused, never answered with a silent default. Any process that can open the socket may send
requests. Only processes of the daemon's user and of root can open it, because its mode is 0600. With ``watch=1`` a document is
followed (:mod:`wharfinger.debug.server.watching`); the paths and formats of other programs are in
:mod:`wharfinger.debug.server.peer_routes`.
"""

from functools import partial
from typing import Final

import msgspec

from wharfinger.debug.addresses import RENDER, SCHEMA, SNAPSHOTS, VALIDATE, WATCH
from wharfinger.debug.encoding.schema import api_schema
from wharfinger.debug.server.answers import Route, StreamedRoute, document_answer, listing_text, text_answer
from wharfinger.debug.server.document_routes import DOCUMENT_ROUTES
from wharfinger.debug.server.package_routes import PACKAGE_ROUTES
from wharfinger.debug.server.peer_routes import PEER_ROUTES, peer_route
from wharfinger.debug.server.profile_routes import PROFILE_ROUTES
from wharfinger.debug.server.watching import FLAGS, Watches
from wharfinger.httpd.messages import Answer, Handler, Request, Response
from wharfinger.runtime.inspector import Inspector


def make_handler(inspector: Inspector) -> Handler:
    """Make the handler of a debug server that answers from ``inspector``."""
    watches = Watches()

    async def handle(request: Request) -> Answer:
        route = find_route(request.path)
        if route is None:
            return text_answer(404, f"no such path: {request.path}; /endpoints lists all paths")
        if request.method not in route.methods:
            allowed = ", ".join(route.methods)
            return msgspec.structs.replace(
                text_answer(405, f"this path only answers {route.methods[0]}"), headers=(("Allow", allowed),)
            )
        known = route.parameters | ({WATCH} if route.watch else frozenset())
        if unknown := sorted(request.query.keys() - known):
            return text_answer(400, f"unknown query parameter: {unknown[0]}; known here: {listing_text(known)}")
        asked = request.arg(WATCH, "false")
        if asked not in FLAGS:
            return text_answer(400, f"unknown {WATCH}: {asked[:20]}; known: {listing_text(tuple(FLAGS))}")
        if FLAGS[asked] and isinstance(route, Route):
            return await watches.answer(partial(route.answer, inspector), request)
        return await route.answer(inspector, request)

    return handle


def find_route(path: str) -> Route | StreamedRoute | None:
    """Return the route of a path; None if there is no such path."""
    named = next((prefix for prefix in (RENDER, VALIDATE, SNAPSHOTS) if path.startswith(prefix)), "")
    return ROUTES.get(f"{named}{{name}}" if named else path) or peer_route(path)


async def _endpoints(_inspector: Inspector, _request: Request) -> Response:
    return text_answer(200, "\n".join(f"{route.methods[0]} {path}" for path, route in ROUTES.items()))


async def _schema(_inspector: Inspector, request: Request) -> Response:
    return document_answer(request, api_schema())


ROUTES: Final[dict[str, Route | StreamedRoute]] = {
    **DOCUMENT_ROUTES,
    **PACKAGE_ROUTES,
    **PROFILE_ROUTES,
    "/endpoints": Route(_endpoints),
    "/discovery": Route(_endpoints),
    SCHEMA: Route(_schema, frozenset({"output"})),
    **PEER_ROUTES,
}
