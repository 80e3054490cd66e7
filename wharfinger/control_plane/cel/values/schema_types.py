"""The types that a schema gives to rules, with the sizes of their values (``apiserver/pkg/cel/common``).

Parts that the schema does not describe (``x-kubernetes-preserve-unknown-fields``) have no type, and rules cannot use them.
Property names that are not identifiers are escaped: ``self.a__dash__b``.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.cel.values.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    listed,
    mapped,
)
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.formats.json.value import JsonObject

REQUEST_BYTES: Final = 3 * 1024 * 1024
RESERVED_WORDS: Final = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
     "loop", "package", "namespace", "return", "var", "void", "while")
)  # fmt: skip
"""The words that CEL reserves; they cannot be identifiers."""
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]+", re.ASCII)
_UNPLAIN: Final = re.compile(r"__|[-./]")
_TIMES: Final = {"duration": (DURATION, 3, 32), "date": (TIMESTAMP, 12, 12), "date-time": (TIMESTAMP, 21, 32)}


@dataclass(slots=True)
class Declared:
    """A type with the sizes of its values.

    ``least_bytes`` is the minimum number of bytes of a value in JSON. ``most`` is the maximum number of elements of a list or a
    map, or the maximum number of bytes of a text.
    """

    type: Type
    least_bytes: int
    most: int = 0
    element: "Declared | None" = None
    key: "Declared | None" = None
    fields: dict[str, "Declared"] = field(default_factory=dict)


def escaped(name: str) -> str | None:
    """Return a property's name in expressions, or None if expressions cannot use the property."""
    if not name or name[0].isdigit() or not _PLAIN.fullmatch(name):
        return None
    if name in RESERVED_WORDS:
        return f"__{name}__"
    return _UNPLAIN.sub(lambda found: _ESCAPES[found[0]], name)


def keyword_field(name: str) -> str:
    """Return a field's name, escaped (``__in__``) if it is a reserved word of CEL; expressions may also use the plain name."""
    return f"__{name}__" if name in RESERVED_WORDS else name


def with_meta(schema: JsonObject) -> JsonObject:
    """Return the schema of an object, extended by ``kind``, ``apiVersion`` and ``metadata``."""
    text: JsonObject = {"type": "string"}
    metadata: JsonObject = {"type": "object", "properties": {"name": text, "generateName": text}}
    declared = schemas.child(schema, "properties") or {}
    return {**schema, "properties": {**declared, "kind": text, "apiVersion": text, "metadata": metadata}}


class TypeTable:
    """A table of the types of objects, with the fields of each type by name."""

    def __init__(self) -> None:
        self.fields: dict[str, dict[str, Type]] = {}

    def declared(self, schema: JsonObject, name: str, *, root: bool) -> Declared | None:
        """Return the type of a schema, or None if rules cannot use it; ``root`` is set for an object with metadata."""
        if schemas.flag(schema, schemas.INT_OR_STRING):
            most = schemas.whole(schema, "maxLength")
            return Declared(DYN, 1, REQUEST_BYTES - 2 if most is None else max(most, 0) * 4)
        if root:
            schema = with_meta(schema)
        match schemas.text(schema, "type"):
            case "array":
                return self._list(schema, name)
            case "object":
                return self._map(schema, name) if schemas.additional(schema) is not None else self._object(schema, name)
            case "string":
                return _string(schema)
            case "boolean":
                return Declared(BOOL, 4)
            case "number":
                return Declared(DOUBLE, 1)
            case "integer":
                return Declared(INT, 1)
        return None

    def _inner(self, schema: JsonObject | None, name: str) -> Declared | None:
        return None if schema is None else self.declared(schema, name, root=schemas.flag(schema, schemas.EMBEDDED))

    def _list(self, schema: JsonObject, name: str) -> Declared | None:
        element = self._inner(schemas.items(schema), f"{name}.@idx")
        if element is None:
            return None
        most = schemas.whole(schema, "maxItems")
        most = (REQUEST_BYTES - 2) // (element.least_bytes + 1) if most is None else max(most, 0)
        return Declared(listed(element.type), 2, most, element=element)

    def _map(self, schema: JsonObject, name: str) -> Declared | None:
        element = self._inner(schemas.additional(schema), f"{name}.@elem")
        if element is None:
            return None
        most = schemas.whole(schema, "maxProperties")
        most = (REQUEST_BYTES - 2) // (element.least_bytes + 6) if most is None else max(most, 0)
        key = Declared(STRING, 2)
        return Declared(mapped(STRING, element.type), 2, most, element=element, key=key)

    def _object(self, schema: JsonObject, name: str) -> Declared:
        result = Declared(Type("struct", name), 2)
        needed = schemas.strings(schema, "required")
        for key, node in schemas.properties(schema).items():
            known = escaped(key)
            inner = self._inner(node, f"{name}.{known}")
            if inner is None:
                continue
            if known is not None:
                result.fields[known] = inner
            if key in needed and node.get("default") is None:
                result.least_bytes += len(key.encode()) + inner.least_bytes + 4
        self.fields[name] = {key: inner.type for key, inner in result.fields.items()}
        return result


def _string(schema: JsonObject) -> Declared:
    most, form = schemas.whole(schema, "maxLength"), schemas.text(schema, "format")
    if form in _TIMES:
        kind, least, longest = _TIMES[form]
        return Declared(kind, least, longest)
    if form == "byte":
        return Declared(BYTES, 2, REQUEST_BYTES - 2 if most is None else max(most, 0))
    if most is not None:
        return Declared(STRING, 2, max(most, 0) * 4)
    allowed = [value for value in schemas.values(schema, "enum") if isinstance(value, str)]
    longest = max((len(value.encode()) for value in allowed), default=0)
    return Declared(STRING, 2, longest if schemas.values(schema, "enum") else REQUEST_BYTES - 2)
