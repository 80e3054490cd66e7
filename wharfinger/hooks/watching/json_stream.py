"""A stream of JSON documents, one after the other, with or without white space between them, as hooks write it.

The stream is cut at the brackets, and `decode_json` parses each piece. Cutting is linear in the bytes, needs no
memory besides the pieces, and checks only brackets and quotes; `decode_json` decides whether a piece is JSON.
"""

import re
from collections.abc import Iterator
from typing import Final

from wharfinger.formats.encodable import quoted
from wharfinger.formats.json.value import JsonError, JsonValue, decode_json

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_DOCUMENTS: Final = 10_000

_WHITE: Final = b" \t\r\n"
# A whole string, else a bracket, else an unclosed quote. The quantifiers are possessive: an unclosed string fails immediately
# instead of being tried at every length.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}"]', re.DOTALL)


def read_json_stream(data: bytes, *, what: str) -> list[JsonValue]:
    """Return the objects and lists in ``data``, in order; ``what`` names the data in errors.

    Raises JsonError for other content, for more than MAX_BYTES, and for more than MAX_DOCUMENTS.
    """
    if len(data) > MAX_BYTES:
        raise JsonError(f"{what}: {len(data)} bytes is over the limit of {MAX_BYTES}")
    documents: list[JsonValue] = []
    for number, piece in enumerate(_pieces(data, what), 1):
        if number > MAX_DOCUMENTS:
            raise JsonError(f"{what}: more than {MAX_DOCUMENTS} documents")
        documents.append(decode_json(piece, max_bytes=MAX_BYTES, what=f"{what}: document {number}"))
    return documents


def _pieces(data: bytes, what: str) -> Iterator[bytes]:
    begin = end = depth = 0
    for token in _TOKEN.finditer(data):
        mark = token.group()
        if depth == 0:
            begin = token.start()
            if mark not in (b"{", b"[") or data[end:begin].strip(_WHITE):
                raise _misplaced(data, end, what)
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                end = token.end()
                yield data[begin:end]
        elif mark == b'"':
            raise JsonError(f"{what}: a string that begins in line {_line(data, token.start())} does not end")
    if depth:
        raise JsonError(f"{what}: the document that begins in line {_line(data, begin)} does not end")
    if data[end:].strip(_WHITE):
        raise _misplaced(data, end, what)


def _misplaced(data: bytes, end: int, what: str) -> JsonError:
    at = len(data) - len(data[end:].lstrip(_WHITE))
    return JsonError(f"{what}: line {_line(data, at)}: expected an object or a list, found {quoted(data[at:], 20)}")


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1
