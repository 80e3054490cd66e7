"""One JSON document kept as bytes, small: what is held of thousands of objects that are rarely looked at.

A parsed object costs four to eight times its text, and its text some three times what `zlib` makes of it. Whoever keeps many
objects keeps them so, and takes the text out when it is written somewhere; parsing is left to who must look inside.
"""

import zlib
from typing import Final

from wharfinger.formats.json.value import JsonValue, decode_json

SMALL: Final = 256
"""Bytes from which on packing saves more than it costs."""
MAX_BYTES: Final = 64 * 1024 * 1024
_LEVEL: Final = 1


class PackedJson:
    """A JSON document as text. Equal where the texts are; whoever makes one vouches that the text is JSON."""

    __slots__ = ("_data", "_deflated")

    def __init__(self, text: bytes) -> None:
        self._deflated = len(text) > SMALL
        self._data = zlib.compress(text, _LEVEL) if self._deflated else text

    def text(self) -> bytes:
        """The document as it was given."""
        return zlib.decompress(self._data) if self._deflated else self._data

    def value(self) -> JsonValue:
        """The document, parsed. Raises JsonError for what is no JSON, or over MAX_BYTES."""
        return decode_json(self.text(), max_bytes=MAX_BYTES, what="a document that was kept")

    def __len__(self) -> int:
        """The bytes it holds."""
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedJson) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"PackedJson({len(self._data)} bytes)"
