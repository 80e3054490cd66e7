"""Responses as h11 events, and their framing.

Pure except for the Date header. Lengths, chunking and the persistence of the connection are decided only here and in
``lean.py``, so that no handler can get them wrong.
"""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final

import h11

from wharfinger.httpd.messages import Response, StreamingResponse, Upgrade

SERVER_HEADERS: Final = frozenset({"connection", "content-length", "content-type", "date", "transfer-encoding"})
"""The headers that only the server may set, by lower-case name."""
REASONS: Final = {int(status): status.phrase for status in HTTPStatus}


def text_response(status: int, message: str) -> Response:
    """Return a plain-text answer of one line."""
    return Response(status=status, body=message.encode() + b"\n", content_type="text/plain; charset=utf-8")


def response_head(response: Response | StreamingResponse, *, close: bool) -> h11.Response:
    """Return the head of a response, with its headers in UTF-8; ``close`` announces the end of the connection.

    Raises ValueError for a status outside 200 to 599 or a header that only the server may set, and h11.LocalProtocolError for
    text that is not allowed in a header. All of these are bugs of a handler.
    """
    if not 200 <= response.status <= 599:
        raise ValueError(f"a response cannot have the status {response.status}")
    headers = [(b"date", formatdate(usegmt=True).encode())]
    if may_have_body(response.status) and response.content_type:
        headers.append((b"content-type", response.content_type.encode()))
    if isinstance(response, Response) and may_have_body(response.status):
        headers.append((b"content-length", b"%d" % len(response.body)))
    if close:
        headers.append((b"connection", b"close"))
    for name, value in response.headers:
        if name.lower() in SERVER_HEADERS:
            raise ValueError(f"the header {name} is set by the server, not by a handler")
        headers.append((name.encode(), value.encode()))
    return h11.Response(status_code=response.status, headers=headers, reason=REASONS.get(response.status, ""))


def upgrade_head(upgrade: Upgrade) -> h11.InformationalResponse:
    """Return the head of the answer that accepts another protocol.

    Raises h11.LocalProtocolError if a handler has set a header that is not allowed.
    """
    headers = [("connection", "Upgrade"), ("upgrade", upgrade.protocol), *upgrade.headers]
    lines = [(name.encode(), value.encode()) for name, value in headers]
    return h11.InformationalResponse(status_code=upgrade.status, headers=lines, reason=REASONS[upgrade.status])


def may_have_body(status: int) -> bool:
    """Return whether responses of this status have a body at all (RFC 9110 §15)."""
    return status not in {204, 304}
