"""The values of a custom resource in expressions: they have the types of the schema, and are converted when they are used."""

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from wharfinger.control_plane.cel.values.schema_types import escaped, keyword_field, with_meta
from wharfinger.control_plane.cel.values.times import parse_date_time, parse_duration
from wharfinger.control_plane.cel.values.values import CelError, Duration, Timestamp, Value
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.go_numbers import native
from wharfinger.formats.json.value import JsonObject, JsonValue

_GO_TYPES: Final[dict[type, str]] = {
    bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}", dict: "map[string]interface {}",
}  # fmt: skip


class ObjectView:
    """A view of an object, with its fields by the names that rules use."""

    __slots__ = ("_fields", "_schema", "_value", "cel_type")

    def __init__(self, value: JsonObject, schema: JsonObject) -> None:
        self._value = value
        self._schema = schema
        additional = schemas.additional(schema)
        declared = schemas.child(schema, "properties")
        self.cel_type = "map" if declared is None and additional is not None else "object"
        self._fields: dict[str, tuple[str, JsonObject]] | None = None
        if declared is not None or additional is None:
            self._fields = {
                known: (name, node)
                for name, node in (declared or {}).items()
                if isinstance(node, dict) and (known := escaped(name)) is not None
            }

    def __len__(self) -> int:
        return len(self._value)

    def keys(self) -> Iterator[str]:
        """Yield the names of the fields that are set."""
        if self._fields is None:
            return iter(self._value)
        return (known for known, (name, _) in self._fields.items() if name in self._value)

    def find(self, key: Value) -> tuple[bool, Value]:
        """Return whether a field is set, and its value. Raises CelError."""
        if not isinstance(key, str):
            return False, None
        if self._fields is None:
            node = schemas.additional(self._schema)
            return (True, viewed(self._value[key], node or {})) if key in self._value else (False, None)
        found = self._fields.get(key) or self._fields.get(keyword_field(key))
        if found is None or found[0] not in self._value:
            return False, None
        return True, viewed(self._value[found[0]], found[1])


class ListView:
    """A view of a list; ``kind`` is its list type in the schema."""

    __slots__ = ("_schema", "_value", "cel_type", "kind")

    def __init__(self, value: list[JsonValue], schema: JsonObject) -> None:
        self._value = value
        self._schema = schemas.items(schema) or {}
        self.kind = schemas.list_type(schema)
        self.cel_type = "list"

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Value]:
        return (viewed(item, self._schema) for item in self._value)

    def at(self, index: int) -> Value:
        """Return the item at an index."""
        return viewed(self._value[index], self._schema)


def viewed(value: JsonValue, schema: JsonObject) -> Value:
    """Convert a value that has this schema. Raises CelError if the value does not match the schema."""
    value = native(value)
    if value is None:
        if schemas.flag(schema, "nullable"):
            return None
        raise CelError("invalid data, got null for schema with nullable=false")
    if schemas.flag(schema, schemas.INT_OR_STRING):
        if isinstance(value, str | int) and not isinstance(value, bool):
            return value
        raise CelError("invalid data, expected XIntOrString value to be either a string or integer")
    kind = schemas.text(schema, "type")
    if kind == "object" and isinstance(value, dict):
        return ObjectView(value, with_meta(schema) if schemas.flag(schema, schemas.EMBEDDED) else schema)
    if kind == "array" and isinstance(value, list):
        return ListView(value, schema)
    if kind == "string" and isinstance(value, str):
        return _text(value, schemas.text(schema, "format"))
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if (kind == "integer" and type(value) is int) or (kind == "boolean" and isinstance(value, bool)):
        return value
    raise CelError(_unexpected(kind, value))


def _unexpected(kind: str, value: JsonValue) -> str:
    if kind == "object":
        return "invalid data, expected a map for the provided schema with type=object"
    if kind == "array":
        return "invalid data, expected an array for the provided schema with type=array"
    wanted = {"number": "float", "integer": "int", "boolean": "bool"}.get(kind, kind)
    return f"invalid data, expected {wanted}, got {_GO_TYPES[type(value)]}"


def _text(value: str, form: str) -> Value:
    try:
        if form == "duration":
            return Duration(parse_duration(value, words=True))
        if form in {"date", "date-time"}:
            return Timestamp(parse_date_time(value, date=form == "date"))
        if form == "byte":
            return base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise CelError(f"Invalid {form} formatted string {value}: {error}") from error
    return value


def list_kind(value: Value) -> str:
    """Return ``set`` or ``map``, or "" for ordered lists and other values."""
    return value.kind if isinstance(value, ListView) and value.kind in {"set", "map"} else ""
