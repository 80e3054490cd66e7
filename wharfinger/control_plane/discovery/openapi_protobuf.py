"""OpenAPI version 2 in protobuf, as clients of Kubernetes request it: gnostic's ``openapi.v2.Document``.

A table for each message has the number and the writer of each of its fields. Values of arbitrary JSON (vendor
extensions, values of enums, defaults) are written as JSON text, which gnostic parses as YAML.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find

_BYTES: Final = 2
Writer: TypeAlias = Callable[[JsonValue], bytes]
Fields: TypeAlias = Mapping[str, tuple[int, Writer]]


def version_2_protobuf(document: JsonObject) -> bytes:
    """Encode an OpenAPI document of version 2 in protobuf."""
    return _message(_DOCUMENT, 16)(document)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _block(number: int, content: bytes) -> bytes:
    """Return a field with a length prefix: a text or a message."""
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _field(number: int, writer: Writer, value: JsonValue) -> bytes:
    if writer is _boolean:
        return _varint(number << 3) + writer(value)
    if writer is _integer:
        return _varint(number << 3) + writer(value)
    if writer is _number:
        return _varint(number << 3 | 1) + writer(value)
    return _block(number, writer(value))


def _text(value: JsonValue) -> bytes:
    return str(value).encode()


def _boolean(value: JsonValue) -> bytes:
    return _varint(value is True)


def _integer(value: JsonValue) -> bytes:
    return _varint(int(value) if isinstance(value, int | float) else 0)


def _number(value: JsonValue) -> bytes:
    return struct.pack("<d", value if isinstance(value, int | float) else 0.0)


def _any(value: JsonValue) -> bytes:
    """Return a value as an ``Any`` message, which contains it as YAML."""
    text = value.encode() if isinstance(value, str) and value.isidentifier() else encode_json(value)
    return _block(2, text + b"\n")


def _message(fields: Fields, extension: int = 0) -> Writer:
    """Return a writer of messages with these fields. ``extension`` is the number of the field that contains the vendor
    extensions.
    """

    def write(value: JsonValue) -> bytes:
        return b"".join(_written(value)) if isinstance(value, dict) else b""

    def _written(obj: JsonObject) -> Iterator[bytes]:
        for name, value in obj.items():
            if name in fields:
                number, writer = fields[name]
                for item in value if isinstance(value, list) and writer is not _type else [value]:
                    yield _field(number, writer, item)
            elif extension and name.startswith("x-"):
                yield _block(extension, _block(1, name.encode()) + _block(2, _any(value)))

    return write


def _named(number: int, writer: Writer) -> Writer:
    """Return a writer of maps. In protobuf, a map is a list of entries, each with a name and a value."""

    def write(value: JsonValue) -> bytes:
        entries = value.items() if isinstance(value, dict) else ()
        return b"".join(_block(number, _block(1, name.encode()) + _field(2, writer, item)) for name, item in entries)

    return write


def _wrapped(number: int, writer: Writer) -> Writer:
    """Return a writer of one alternative of a union."""
    return lambda value: _field(number, writer, value)


def _type(value: JsonValue) -> bytes:
    return b"".join(_block(1, str(item).encode()) for item in (value if isinstance(value, list) else [value]))


def _schema(value: JsonValue) -> bytes:
    return _SCHEMA(value)


def _additional(value: JsonValue) -> bytes:
    return _field(2, _boolean, value) if isinstance(value, bool) else _block(1, _schema(value))


def _parameter(value: JsonValue) -> bytes:
    """Return a ``Parameter`` message: a body, or a parameter in the path, the query or the headers."""
    place = find(value, "in")
    if place == "body":
        return _block(1, _BODY(value))
    number, writer = {"header": (1, _HEADER), "query": (3, _QUERY), "path": (4, _PATH)}.get(str(place), (3, _QUERY))
    return _block(2, _block(number, writer(value)))


def _reference_or(writer: Writer) -> Writer:
    """Return a writer of a value that is either a ``$ref``, or a message that ``writer`` writes."""
    reference = _message({"$ref": (1, _text), "description": (2, _text)})
    return lambda value: _block(2, reference(value)) if find(value, "$ref") is not None else _block(1, writer(value))


def _operation(value: JsonValue) -> bytes:
    return _OPERATION(value)


def _path_item(value: JsonValue) -> bytes:
    return _PATH_ITEM(value)


_LIMITS: Final = ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength")
_LIMIT_WRITERS: Final[tuple[Writer, ...]] = (_number, _boolean, _number, _boolean, _integer, _integer)


def _limits(first: int) -> dict[str, tuple[int, Writer]]:
    return {
        name: (first + index, writer) for index, (name, writer) in enumerate(zip(_LIMITS, _LIMIT_WRITERS, strict=True))
    }


_SCHEMA: Final = _message(
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "title": (3, _text),
        "description": (4, _text),
        "default": (5, _any),
        "multipleOf": (6, _number),
        **_limits(7),
        "pattern": (13, _text),
        "maxItems": (14, _integer),
        "minItems": (15, _integer),
        "uniqueItems": (16, _boolean),
        "maxProperties": (17, _integer),
        "minProperties": (18, _integer),
        "required": (19, _text),
        "enum": (20, _any),
        "additionalProperties": (21, _additional),
        "type": (22, _type),
        "items": (23, _wrapped(1, _schema)),
        "allOf": (24, _schema),
        "properties": (25, _named(1, _schema)),
        "readOnly": (27, _boolean),
        "example": (30, _any),
    },
    31,
)
_BODY: Final = _message(
    {
        "description": (1, _text),
        "name": (2, _text),
        "in": (3, _text),
        "required": (4, _boolean),
        "schema": (5, _schema),
    },
    6,
)
_PLACED: Final[Fields] = {"required": (1, _boolean), "in": (2, _text), "description": (3, _text), "name": (4, _text)}
_HEADER: Final = _message({**_PLACED, "type": (5, _text), "format": (6, _text), "uniqueItems": (19, _boolean)}, 22)
_PATH: Final = _HEADER
_QUERY: Final = _message({**_PLACED, "type": (6, _text), "format": (7, _text), "uniqueItems": (20, _boolean)}, 23)
_RESPONSE: Final = _message({"description": (1, _text), "schema": (2, _wrapped(1, _schema))}, 5)
_PARAMETERS_ITEM: Final = _reference_or(_parameter)
_OPERATION: Final = _message(
    {
        "tags": (1, _text),
        "summary": (2, _text),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _text),
        "consumes": (7, _text),
        "parameters": (8, _PARAMETERS_ITEM),
        "responses": (9, _named(1, _reference_or(_RESPONSE))),
        "schemes": (10, _text),
        "deprecated": (11, _boolean),
    },
    13,
)
_PATH_ITEM: Final = _message(
    {
        "get": (2, _operation),
        "put": (3, _operation),
        "post": (4, _operation),
        "delete": (5, _operation),
        "options": (6, _operation),
        "head": (7, _operation),
        "patch": (8, _operation),
        "parameters": (9, _PARAMETERS_ITEM),
    },
    10,
)
_API_KEY: Final = _message({"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}, 5)
_DOCUMENT: Final[Fields] = {
    "swagger": (1, _text),
    "info": (2, _message({"title": (1, _text), "version": (2, _text)}, 7)),
    "paths": (8, _named(2, _path_item)),
    "definitions": (9, _named(1, _schema)),
    "parameters": (10, _named(1, _parameter)),
    "security": (12, _named(1, lambda value: _type(value) if value else b"")),
    "securityDefinitions": (13, _named(1, _wrapped(2, _API_KEY))),
}
