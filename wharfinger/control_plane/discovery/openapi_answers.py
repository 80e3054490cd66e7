"""OpenAPI documents as HTTP responses: media types, ETags, redirects to the current hash, and compression on request."""

import gzip
from typing import Final

from wharfinger.control_plane.discovery.openapi import (
    VERSION_2_PROTOBUF_ASKED,
    VERSION_2_PROTOBUF_TYPE,
    Document,
    OpenApi,
)
from wharfinger.control_plane.wire.negotiation import parse_media_type
from wharfinger.httpd.messages import Request, Response

_JSON: Final = "application/json"
_ACCEPTED: Final = frozenset({_JSON, "application/*", "*/*", ""})
_COMPRESSION: Final = 1


def version_2(documents: OpenApi, request: Request) -> Response:
    """Return the response to ``/openapi/v2``."""
    vary = (("vary", "Accept-Encoding"), ("vary", "Accept"))
    for media in _accepted(request):
        if media in {VERSION_2_PROTOBUF_ASKED, VERSION_2_PROTOBUF_TYPE}:
            return _compressed(request, _tagged(request, documents.version_2_protobuf(), VERSION_2_PROTOBUF_TYPE, vary))
        if media in _ACCEPTED:
            return _compressed(request, _tagged(request, documents.version_2(), _JSON, vary))
    return Response(406, b"", "", vary)


def version_3(documents: OpenApi, name: str, request: Request) -> Response:
    """Return the response to ``/openapi/v3`` if ``name`` is empty, otherwise the response to ``/openapi/v3/NAME``."""
    if not name:
        return Response(200, documents.index().body, "text/plain; charset=utf-8")
    found = documents.version_3(name)
    if found is None:
        return Response(404, b"", "")
    vary = (("vary", "Accept"),)
    if not any(media in _ACCEPTED for media in _accepted(request)):
        return Response(406, b"", "", vary)
    asked = request.arg("hash")
    if asked and asked != found.hash:
        place = ("location", f"/openapi/v3/{name}?hash={found.hash}")
        return Response(301, b"", _JSON, (("etag", f'"{found.hash}"'), place, *vary))
    cached = (("cache-control", "public, immutable"),) if asked else ()
    return _tagged(request, found, _JSON, (*cached, *vary))


def _accepted(request: Request) -> list[str]:
    """Return the media types of the Accept header, without their parameters, in order."""
    return [parse_media_type(clause)[0] for clause in request.headers.get("accept", "").split(",")]


def _tagged(request: Request, found: Document, content_type: str, headers: tuple[tuple[str, str], ...]) -> Response:
    tag = f'"{found.hash}"'
    headers = (("etag", tag), *headers)
    if tag in {item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")}:
        return Response(304, b"", "", headers)
    return Response(200, found.body, content_type, headers)


def _compressed(request: Request, response: Response) -> Response:
    if response.status != 200 or "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    body = gzip.compress(response.body, _COMPRESSION, mtime=0)
    return Response(200, body, response.content_type, (*response.headers, ("content-encoding", "gzip")))
