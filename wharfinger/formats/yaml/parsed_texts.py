"""The values of YAML texts that were read before, with a digest of each text as the key.

Parsing a YAML text takes fifty times as long as unpacking its values. So a process that reads the same files as its predecessor
can take over the values that the predecessor has parsed. A text that differs in one byte has another digest. Texts that cannot
be read are not kept, because their errors name a file.
"""

import hashlib
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_documents

MAX_PACKED: Final = 256 * 1024
"""The maximum size, in bytes, of the packed values of one text. Larger values are not kept."""


class ParsedTexts:
    """A cache of the values of YAML texts. Each caller gets its own copy of the values."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._used: dict[bytes, bytes] = {}

    def learn(self, packed: Mapping[bytes, bytes]) -> None:
        """Use the values that another process has parsed. ``packed`` is the result of :meth:`used` in that process."""
        self._known |= packed

    def used(self) -> dict[bytes, bytes]:
        """Return the packed values of the texts that this process has read. The keys are the digests of the texts."""
        return dict(self._used)

    def documents(self, text: bytes, *, what: str) -> list[tuple[JsonValue, int]]:
        """Return the documents of a stream, as :func:`read_yaml_documents` does, but do not parse a known text again.

        Raises YamlError.
        """
        key = hashlib.blake2b(text, digest_size=32).digest()
        packed = self._used.get(key) or self._known.get(key)
        if packed is not None:
            try:
                found = _unpacked(packed)
            except (msgspec.DecodeError, ValueError, TypeError):
                self._known.pop(key, None)
            else:
                self._used[key] = packed
                return found
        read = read_yaml_documents(text, what=what)
        if (packed := _packed(read)) is not None:
            self._used[key] = packed
        return read

    def document(self, text: bytes, *, what: str) -> JsonValue:
        """Return the only document of a text, as :func:`read_yaml` does, without parsing a known text again. Raises YamlError."""
        found = self.documents(text, what=what)
        if len(found) > 1:
            return read_yaml(text, what=what)  # raises YamlError for the second document
        return found[0][0] if found else None


def _packed(documents: list[tuple[JsonValue, int]]) -> bytes | None:
    """Return the documents in MessagePack; None if it cannot encode them, or if the result is too large."""
    try:
        packed = msgspec.msgpack.encode(documents)
    except (msgspec.EncodeError, UnicodeEncodeError, OverflowError, RecursionError):
        return None
    return packed if len(packed) <= MAX_PACKED else None


def _unpacked(packed: bytes) -> list[tuple[JsonValue, int]]:
    read = cast("list[tuple[JsonValue, int]]", msgspec.msgpack.decode(packed))
    return [(value, line) for value, line in read]
