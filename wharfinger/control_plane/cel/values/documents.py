"""Values in expressions for documents without a schema; each part of a document is converted when it is used."""

from collections.abc import Iterator

from wharfinger.control_plane.cel.values.values import CelMap, Value
from wharfinger.control_plane.wire.go_numbers import native
from wharfinger.formats.json.value import JsonObject, JsonValue


class DocumentMap(CelMap):
    """A map whose entries are the members of an object in a document."""

    __slots__ = ("_document",)

    def __init__(self, document: JsonObject) -> None:
        super().__init__()
        self._document = document

    def __len__(self) -> int:
        return len(self._document)

    def keys(self) -> Iterator[Value]:
        """Yield the names of the members."""
        return iter(self._document)

    def find(self, key: Value) -> tuple[bool, Value]:
        """Return whether a member exists, and its value."""
        if not isinstance(key, str) or key not in self._document:
            return False, None
        return True, document_value(self._document[key])

    def inserted(self, key: Value, value: Value) -> CelMap:
        """Return a map with one more entry. Raises CelError if the key exists."""
        return CelMap((name, self.find(name)[1]) for name in self.keys()).inserted(key, value)


def document_value(document: JsonValue) -> Value:
    """Convert a part of a document to a value."""
    if isinstance(document, dict):
        return DocumentMap(document)
    if isinstance(document, list):
        return [document_value(item) for item in document]
    return native(document)
