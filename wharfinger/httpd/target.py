"""A strict parser of the target of a request line: it returns the path and the query, or refuses the target. Pure.

A target that is not valid in every detail is refused with 400. If a proxy and the server behind it read an invalid target
differently, a request could pass the checks of the proxy and have another effect in the server (RFC 9112 §3.2, RFC 3986 §2.1).
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

MAX_PARAMETERS: Final = 256
"""The largest number of query parameters of one request."""

_PLAIN_PATH: Final = re.compile(rb"/[A-Za-z0-9/._~-]*")
_NO_QUERY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


class RefusedRequestError(Exception):
    """The request is refused before a handler sees it. The answer has the status ``status``, and the message as plain text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Target(msgspec.Struct, frozen=True):
    """A decoded request target. ``query`` has all values of a repeated key. ``path`` starts with ``/``, or is ``*`` (for
    OPTIONS).
    """

    path: str
    query: Mapping[str, tuple[str, ...]]


def parse_target(raw: bytes) -> Target:
    """Read an origin-form, absolute-form or asterisk-form target (RFC 9112 §3.2).

    Raises RefusedRequestError (400) for bad percent-encoding, text that is not UTF-8, control characters in the path, a
    fragment, an unknown form, or more than MAX_PARAMETERS parameters.
    """
    if _PLAIN_PATH.fullmatch(raw):
        return Target(raw.decode("ascii"), _NO_QUERY)
    if raw == b"*":
        return Target(path="*", query={})
    if b"#" in raw:
        raise RefusedRequestError(400, "the request target has a fragment")
    raw_path, _, raw_query = _origin_form(raw).partition(b"?")
    path = decode_percent(raw_path)
    if any(character < " " or character == "\x7f" for character in path):
        raise RefusedRequestError(400, "the path has a control character")
    return Target(path=path, query=parse_query(raw_query))


def parse_query(raw: bytes) -> dict[str, tuple[str, ...]]:
    """Return the parameters of ``a=1&b&a=2``: every value of a key, in order; a key without ``=`` has the value ``""``.

    ``+`` means a space, as in forms (and as Kubernetes' clients send it). Empty parameters are skipped.
    """
    pieces = [piece for piece in raw.split(b"&", MAX_PARAMETERS + 1) if piece]
    if len(pieces) > MAX_PARAMETERS:
        raise RefusedRequestError(400, f"the query has more than {MAX_PARAMETERS} parameters")
    query: dict[str, tuple[str, ...]] = {}
    for piece in pieces:
        raw_key, _, raw_value = piece.replace(b"+", b" ").partition(b"=")
        key = decode_percent(raw_key)
        query[key] = (*query.get(key, ()), decode_percent(raw_value))
    return query


def decode_percent(raw: bytes) -> str:
    """Return percent-decoded text. Raises RefusedRequestError (400) for a ``%`` without two hex digits, and for invalid UTF-8."""
    for after in raw.split(b"%")[1:]:
        if len(after) < 2 or not _HEX.issuperset(after[:2]):
            raise RefusedRequestError(400, "bad percent-encoding in the request target")
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise RefusedRequestError(400, "the request target is not UTF-8") from None


def _origin_form(raw: bytes) -> bytes:
    if raw.startswith(b"/"):
        return raw
    scheme, separator, rest = raw.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        raise RefusedRequestError(400, "the request target is neither a path nor an http address")
    authority_ends = min((index for index in (rest.find(b"/"), rest.find(b"?")) if index >= 0), default=len(rest))
    after = rest[authority_ends:]
    return after if after.startswith(b"/") else b"/" + after
