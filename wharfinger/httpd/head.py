"""The head of a request, with the checks that h11 does not make.

Pure. h11 refuses malformed lines, conflicting lengths, unknown transfer codings and a missing or doubled Host. This module
refuses heads and declared bodies over the limits, requests with both a Content-Length and a Transfer-Encoding (which allow
request smuggling, RFC 9112 §6.3), control bytes in values, unknown expectations, CONNECT, and protocols other than HTTP/1.x.
"""

from collections.abc import Mapping
from typing import Final

import h11
import msgspec

from wharfinger.httpd.target import RefusedRequestError, Target, parse_target

MAX_HEADERS: Final = 100
_WITH_COMMAS: Final = "impersonate-"
_LINE_OVERHEAD: Final = 4  # ": " and CRLF
_CONTROL: Final = frozenset(range(32)) - {0x09} | {0x7F}


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a request. ``length`` is the declared size of the body in bytes, None when it is chunked."""

    method: str
    target: Target
    headers: Mapping[str, str]
    length: int | None


def check_head(event: h11.Request, *, header_bytes: int, body_bytes: int) -> RequestHead:
    """Return the head of ``event``. Raises RefusedRequestError with the status 400, 413, 417, 431, 501 (for CONNECT) or 505."""
    method = event.method.decode("ascii")
    if not event.http_version.startswith(b"1."):
        raise RefusedRequestError(505, "this server speaks HTTP/1.1")
    headers = _join(event, header_bytes)
    if "transfer-encoding" in headers and ("content-length" in headers or event.http_version != b"1.1"):
        raise RefusedRequestError(
            400, "the length of the body is declared twice, or by a Transfer-Encoding, which HTTP/1.0 does not have"
        )
    if headers.get("expect", "100-continue").lower() != "100-continue":
        raise RefusedRequestError(417, "the only expectation this server meets is 100-continue")
    if method == "CONNECT":
        raise RefusedRequestError(501, "this server is not a proxy")
    length = None if "transfer-encoding" in headers else int(headers.get("content-length", "0"))
    if length is not None and length > body_bytes:
        raise RefusedRequestError(413, f"the body of {length} bytes is over the limit of {body_bytes}")
    return RequestHead(method=method, target=parse_target(event.target), headers=headers, length=length)


def joined(name: str, values: str, value: str) -> str:
    """Return the values of a repeated header with one more value, joined by a comma (RFC 9110 §5.3).

    Values of ``Impersonate-*`` headers may contain commas, so they are joined by a line feed.
    """
    return f"{values}\n{value}" if name.startswith(_WITH_COMMAS) else f"{values}, {value}"


def _join(event: h11.Request, header_bytes: int) -> dict[str, str]:
    """Return the headers by lower-case name; repeated headers are joined. Raises RefusedRequestError: 400 or 431."""
    size = len(event.method) + len(event.target)
    if len(event.headers) > MAX_HEADERS:
        raise RefusedRequestError(431, f"more than {MAX_HEADERS} headers")
    headers: dict[str, str] = {}
    for name, value in event.headers:
        size += len(name) + len(value) + _LINE_OVERHEAD
        if not _CONTROL.isdisjoint(value):
            raise RefusedRequestError(400, "a header value has a control character")
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = joined(key, headers[key], text) if key in headers else text
    if size > header_bytes:
        raise RefusedRequestError(431, f"the head of the request is over the limit of {header_bytes} bytes")
    return headers
