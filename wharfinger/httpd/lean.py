"""A fast path without h11: it parses the head of an ordinary request, and writes the head and the chunks of the answer.

Nearly every request is a line, a few headers in visible ASCII, and a body of a declared length. This module reads the head of
such a request with a few regular expressions. A request that differs in any way (another version, chunks, an expectation, a
repeated header, odd white space, bytes after its end) is left to h11, which parses it from its first byte. So this module
accepts no request that h11 refuses or reads differently (``tests/httpd/test_lean.py`` compares the two).
"""

import re
import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from typing import Final

from wharfinger.httpd.head import MAX_HEADERS, RequestHead
from wharfinger.httpd.messages import Response, StreamingResponse
from wharfinger.httpd.reply import REASONS, SERVER_HEADERS, may_have_body
from wharfinger.httpd.target import RefusedRequestError, parse_target

_LINE: Final = re.compile(rb"([A-Z]{3,16}) (/[!-~]*) HTTP/1\.1\r\n")
_BLOCK: Final = re.compile(rb"(?:[A-Za-z0-9_-]+: [!-~](?:[ -~]*[!-~])?\r\n)+")
_HEADER: Final = re.compile(rb"([A-Za-z0-9_-]+): ([ -~]*)\r\n")
_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_NOT_PLAIN: Final = frozenset({"transfer-encoding", "expect", "upgrade", "trailer", "te"})
_NOT_PLAIN_METHODS: Final = frozenset({b"HEAD", b"CONNECT"})
_MOST_REMEMBERED: Final = 2048
"""The headers of a request are cached in parsed form if they have at most this many bytes together."""


def read_head(data: bytes, *, header_bytes: int, body_bytes: int) -> tuple[RequestHead, int] | None:
    """Return the head at the beginning of ``data``, and the index of the body; None if the head is incomplete, or has to be
    left to h11.
    """
    end = data.find(b"\r\n\r\n", 0, header_bytes)
    line = _LINE.match(data)
    if end < 0 or line is None or line[1] in _NOT_PLAIN_METHODS:
        return None
    start, end = line.end(), end + 2
    block = data[start:end]
    known = _read_headers(block) if len(block) <= _MOST_REMEMBERED else _headers(block)
    if known is None:
        return None
    headers, length = known
    if length > body_bytes:
        return None
    try:
        target = parse_target(line[2])
    except RefusedRequestError:
        return None
    return RequestHead(line[1].decode("ascii"), target, headers, length), end + 2


def _headers(block: bytes) -> tuple[Mapping[str, str], int] | None:
    """Return the headers and the length of the body; None if the headers are unusual, so that h11 must read the request."""
    if _BLOCK.fullmatch(block) is None:
        return None
    found = _HEADER.findall(block)
    headers = {name.lower().decode("ascii"): value.decode("ascii") for name, value in found}
    if len(headers) != len(found) or len(found) > MAX_HEADERS or not _NOT_PLAIN.isdisjoint(headers):
        return None
    given = headers.get("content-length", "0")
    if "host" not in headers or headers.get("connection", "keep-alive") != "keep-alive" or not _LENGTH.fullmatch(given):
        return None
    return headers, int(given)


_read_headers: Final = lru_cache(maxsize=256)(_headers)
"""The function ``_headers`` with a cache: most requests of a client have the same headers."""


def write_head(response: Response | StreamingResponse, *, close: bool) -> bytes | None:
    """Return the status line and the headers of an answer; None if h11 has to write them."""
    status = response.status
    if not 200 <= status <= 599 or not _VALUE.fullmatch(response.content_type):
        return None
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}", f"date: {_date(int(time.time()))}"]
    if may_have_body(status):
        lines.append(f"content-type: {response.content_type}")
        if isinstance(response, Response):
            lines.append(f"content-length: {len(response.body)}")
        else:
            lines.append("transfer-encoding: chunked")
    if close:
        lines.append("connection: close")
    for name, value in response.headers:
        if not _may_be_set(name) or not _VALUE.fullmatch(value):
            return None
        lines.append(f"{name}: {value}")
    lines.append("\r\n")
    return "\r\n".join(lines).encode("ascii")


@lru_cache(maxsize=64)
def _may_be_set(name: str) -> bool:
    """Return whether a handler may set a header of this name."""
    return name.lower() not in SERVER_HEADERS and _NAME.fullmatch(name) is not None


def write_chunk(data: bytes) -> bytes:
    """Return a chunk of a streamed answer with its frame (RFC 9112 §7.1).

    If many streams send the same long chunk one after the other, it is framed only once.
    """
    if data is _latest[0]:
        return _latest[1]
    frame = b"%x\r\n%b\r\n" % (len(data), data)
    if len(data) >= _WORTH_KEEPING:
        _latest[:] = data, frame
    return frame


_WORTH_KEEPING: Final = 4096
_latest: Final = [b"", b"0\r\n\r\n"]
"""The last chunk of at least _WORTH_KEEPING bytes that was framed, and the result: this chunk with its frame."""


LAST_CHUNK: Final = b"0\r\n\r\n"

_dates: dict[int, str] = {}


def _date(second: int) -> str:
    known = _dates.get(second)
    if known is None:
        _dates.clear()
        known = _dates[second] = formatdate(second, usegmt=True)
    return known
