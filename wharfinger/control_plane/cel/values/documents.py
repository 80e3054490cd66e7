"""Documents without a schema as values of expressions, looked at where they are asked for."""

from collections.abc import Iterator

from wharfinger.control_plane.cel.values.values import CelMap, Value
from wharfinger.control_plane.wire.go_numbers import native
from wharfinger.formats.json.value import JsonObject, JsonValue


class DocumentMap(CelMap):
    """An object of a document as a map."""

    __slots__ = ("_document",)

    def __init__(self, document: JsonObject) -> None:
        super().__init__()
        self._document = document

    def __len__(self) -> int:
        return len(self._document)

    def keys(self) -> Iterator[Value]:
        """The names of its members."""
        return iter(self._document)

    def find(self, key: Value) -> tuple[bool, Value]:
        """Whether a member is there, and its value."""
        if not isinstance(key, str) or key not in self._document:
            return False, None
        return True, document_value(self._document[key])

    def inserted(self, key: Value, value: Value) -> CelMap:
        """A map with one more entry. Raises CelError where the key is there."""
        return CelMap((name, self.find(name)[1]) for name in self.keys()).inserted(key, value)


def document_value(document: JsonValue) -> Value:
    """A part of a document as a value."""
    if isinstance(document, dict):
        return DocumentMap(document)
    if isinstance(document, list):
        return [document_value(item) for item in document]
    return native(document)
