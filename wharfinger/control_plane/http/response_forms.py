"""The final form of a response: indented JSON for people, compression, and the headers that every response has.

The rules and numbers are those of kube-apiserver. A client gets indented JSON if it requests ``pretty``, or if its User-Agent is
a browser, curl or Wget. Responses over 128 KiB are compressed for clients that accept gzip.
"""

import gzip
import json
import os
from collections.abc import Sequence
from typing import Final

from wharfinger.control_plane.wire.bodies import encode
from wharfinger.control_plane.wire.negotiation import Encoding, Representation
from wharfinger.formats.json.value import JsonValue
from wharfinger.httpd.messages import Request, Response, StreamingResponse, Upgrade

COMPRESSED_BYTES: Final = 128 * 1024
"""The size in bytes above which responses are compressed."""
_COMPRESSION: Final = 1
_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_ESCAPED: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
_AUDIT_ID_CHARS: Final = 64
_PRIVATE: Final = ("cache-control", "no-cache, private")
Headers = tuple[tuple[str, str], ...]


def for_people(request: Request) -> bool:
    """Return whether JSON is indented for people to read. The query parameter ``pretty`` decides this, or else the client's
    user agent. Call this function only if the Accept header does not decide it.
    """
    asked = request.query.get("pretty")
    if asked and asked[0]:
        return asked[0] in _TRUE
    return request.headers.get("user-agent", "").startswith(_PEOPLE)


def document_response(
    request: Request, document: JsonValue, representation: Representation, code: int = 200, headers: Headers = ()
) -> Response:
    """Return a response with an object, a list or a document of discovery."""
    body = encode(document, representation.encoding)
    if representation.encoding is Encoding.JSON:
        body = _escaped(body)
        if representation.pretty or for_people(request):
            body = indented(body)
    return compressed(request, Response(code, body, representation.content_type, headers))


def indented(body: bytes) -> bytes:
    """Return the JSON indented, without a line feed at its end."""
    return _escaped(json.dumps(json.loads(body), indent=2, ensure_ascii=False).encode())


def compressed(request: Request, response: Response) -> Response:
    """Return a response, compressed if it is long and the client accepts gzip."""
    return compressed_always(request, response, vary=True) if len(response.body) > COMPRESSED_BYTES else response


def compressed_always(request: Request, response: Response, *, vary: bool = False) -> Response:
    """Return a response, compressed if the client accepts gzip, even if the response is short."""
    if not takes_gzip(request):
        return response
    body = gzip.compress(response.body, _COMPRESSION, mtime=0)
    varies = (("vary", "Accept-Encoding"),) if vary else ()
    headers = (*response.headers, ("content-encoding", "gzip"), *varies)
    return Response(response.status, body, response.content_type, headers)


def takes_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip; an encoding with a weight (``gzip;q=1``) is not recognized."""
    return "gzip" in (item.strip() for item in request.headers.get("accept-encoding", "").split(","))


def common_headers(request: Request, given: Sequence[tuple[str, str]], flow: Headers = ()) -> Headers:
    """Return the headers of a response with the common headers (``Audit-Id``, ``Cache-Control``) added."""
    audit_id = request.headers.get("audit-id", "")
    if not audit_id or len(audit_id) > _AUDIT_ID_CHARS:
        audit_id = _new_id()
    kept = () if given and any(name == "cache-control" for name, _ in given) else (_PRIVATE,)
    return (("audit-id", audit_id), *kept, *flow, *given)


def _new_id() -> str:
    """Return a random UUID (RFC 9562 §5.4), new for each answer."""
    digits = os.urandom(16).hex()
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{'89ab'[int(digits[16], 16) % 4]}{digits[17:20]}-{digits[20:]}"
    )


def with_common_headers(
    request: Request, answer: Response | StreamingResponse | Upgrade, flow: Headers = ()
) -> Response | StreamingResponse | Upgrade:
    """Return a response with the common headers added."""
    headers = common_headers(request, answer.headers, flow)
    if isinstance(answer, Response):
        return Response(answer.status, answer.body, answer.content_type, headers)
    if isinstance(answer, Upgrade):
        return Upgrade(answer.protocol, answer.run, headers)
    return StreamingResponse(answer.status, answer.open_chunks, answer.content_type, headers)


def _escaped(body: bytes) -> bytes:
    """Escape characters that HTML would interpret, as Go does. In JSON, these characters occur only in strings."""
    for character, escape in _ESCAPED:
        if character in body:
            body = body.replace(character, escape)
    return body
