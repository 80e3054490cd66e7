"""The decoding of Kubernetes' protobuf encoding of built-in kinds to the corresponding JSON.

Typed clients (``kubectl create namespace``) only send protobuf. A body is an envelope: ``k8s\\0``, and a ``runtime.Unknown`` with
apiVersion, kind and the message. The mapping of a message's fields to JSON is in ``protobuf_types.json`` beside this file, which
``tools/kubernetes/generate_protobuf_types.py`` generates. The server never sends protobuf, because clients that send it also
accept JSON.

Every length is checked against the remaining bytes, and nesting is bounded, so a hostile body causes only a
:class:`ProtobufError`.
"""

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.kubernetes_version import table
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonError,
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    find_object,
    find_str,
)
from wharfinger.kube.times import format_micro_time, format_time

MAGIC: Final = b"k8s\0"
MAX_DEPTH: Final = 100
DATA: Final = table(Path(__file__).with_name("protobuf_types.json"))
_MAX_DATA_BYTES: Final = 400_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Wire = int | bytes


class ProtobufError(FormatError):
    """The bytes are not a protobuf encoding of a known kind."""


@cache
def _table() -> JsonObject:
    return as_object(decode_json(DATA.read_bytes(), max_bytes=_MAX_DATA_BYTES, what=DATA.name), DATA.name)


def decode_envelope(data: bytes) -> JsonObject:
    """Return the object in an envelope, with apiVersion and kind. Raises ProtobufError."""
    if not data.startswith(MAGIC):
        raise ProtobufError(f"the body does not begin with {MAGIC!r}")
    fields = dict(_wire_fields(data[len(MAGIC) :]))
    meta = dict(_wire_fields(_as_bytes(fields.get(1, b""))))
    api_version, kind = _text(meta.get(1, b"")), _text(meta.get(2, b""))
    name = find_str(_table(), "kinds", "DeleteOptions" if kind == "DeleteOptions" else f"{api_version}/{kind}")
    if not name:
        raise ProtobufError(
            f"{kind or 'an object'} of {api_version or 'no version'} has no known encoding; send it as JSON"
        )
    value = _message(name, _as_bytes(fields.get(2, b"")), 0)
    return {"kind": kind, "apiVersion": api_version, **as_object(value, kind)}


def _wire_fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """Yield the field numbers and their raw values (protobuf encoding, "Message Structure"). Raises ProtobufError."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in {_FIXED64, _FIXED32}:
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"field {number} has the unknown wire type {wire}")
        if size > len(data) - position:
            raise ProtobufError(f"field {number} is cut short")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise ProtobufError("a number is cut short or too long")


def _as_bytes(value: Wire) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ProtobufError("expected a message or a text, found a number")


def _text(value: Wire) -> str:
    try:
        return _as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("a text is not UTF-8") from error


def _signed(value: Wire) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("expected a number, found bytes")
    return value - (1 << 64) if value >> 63 else value


def _double(value: Wire) -> float:
    data = _as_bytes(value)
    if len(data) != 8:
        raise ProtobufError(f"expected a floating-point number of 8 bytes, found {len(data)} bytes")
    return float(struct.unpack("<d", data)[0])


_SCALARS: Final[Mapping[str, Callable[[Wire], JsonValue]]] = {
    "s": _text,
    "i": _signed,
    "b": lambda value: bool(_signed(value)),
    "y": lambda value: base64.b64encode(_as_bytes(value)).decode(),
    "d": _double,
}


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message: its JSON name, and the code of its type.

    The name is "" if the members of the field are inlined in the enclosing object.
    """

    name: str
    code: str


@cache
def _fields(type_name: str) -> Mapping[int, _Field]:
    fields = {}
    for number, text in find_object(_table(), "types", type_name).items():
        name, _, code = str(text).partition(" ")
        fields[int(number)] = _Field(name, code)
    return fields


def _message(type_name: str, data: bytes, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        raise ProtobufError(f"nested deeper than {MAX_DEPTH} levels")
    special = _SPECIAL.get(type_name)
    if special is not None:
        return special(data, depth)
    known = _fields(type_name)
    obj: JsonObject = {}
    for number, raw in _wire_fields(data):
        field = known.get(number)
        if field is not None:
            _set_field(obj, field, raw, depth)
    if list(known) == [1] and known[1].name == "items" and type_name.endswith("ExtraValue"):
        return obj.get("items", [])
    return obj


def _set_field(obj: JsonObject, field: _Field, raw: Wire, depth: int) -> None:
    if field.code.startswith("["):
        items = obj.setdefault(field.name, [])
        if isinstance(items, list):
            items.append(_value(field.code[1:], raw, depth))
    elif field.code.startswith("{"):
        entries = obj.setdefault(field.name, {})
        entry = dict(_wire_fields(_as_bytes(raw)))
        if isinstance(entries, dict):
            entries[_text(entry.get(1, b""))] = _value(field.code[1:], entry.get(2, b""), depth)
    elif field.name:
        obj[field.name] = _value(field.code, raw, depth)
    else:
        obj.update(as_object(_value(field.code, raw, depth), field.code))


def _value(code: str, raw: Wire, depth: int) -> JsonValue:
    scalar = _SCALARS.get(code)
    return scalar(raw) if scalar is not None else _message(code, _as_bytes(raw), depth + 1)


# Readers of the message types whose JSON is not an object with the fields of the message.


def _time(data: bytes, depth: int) -> JsonValue:  # noqa: ARG001 - one signature for all
    moment = _datetime(data)
    return None if moment is None else format_time(moment)


def _micro_time(data: bytes, depth: int) -> JsonValue:  # noqa: ARG001
    moment = _datetime(data)
    return None if moment is None else format_micro_time(moment)


def _datetime(data: bytes) -> datetime | None:
    fields = dict(_wire_fields(data))
    if not fields:
        return None
    seconds, nanos = _signed(fields.get(1, 0)), _signed(fields.get(2, 0))
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise ProtobufError("a time is out of range") from error


def _quantity(data: bytes, depth: int) -> JsonValue:  # noqa: ARG001
    return _text(dict(_wire_fields(data)).get(1, b"")) or "0"


def _int_or_string(data: bytes, depth: int) -> JsonValue:  # noqa: ARG001
    fields = dict(_wire_fields(data))
    return _text(fields.get(3, b"")) if _signed(fields.get(1, 0)) == 1 else _signed(fields.get(2, 0))


def _raw_json(data: bytes, depth: int) -> JsonValue:  # noqa: ARG001
    raw = _as_bytes(dict(_wire_fields(data)).get(1, b""))
    if not raw:
        return None
    try:
        return decode_json(raw, max_bytes=len(raw), what="embedded JSON")
    except JsonError as error:
        raise ProtobufError(str(error)) from error


def _schema_or(other: str) -> Callable[[bytes, int], JsonValue]:
    """Return a reader of a schema, or of its replacement: a list of schemas, a boolean or a list of names."""

    def read(data: bytes, depth: int) -> JsonValue:
        fields: dict[int, list[Wire]] = {}
        for number, raw in _wire_fields(data):
            fields.setdefault(number, []).append(raw)
        schema_at, other_at = (2, 1) if other == "b" else (1, 2)
        if schema_at in fields:
            return _message("apiextensions.v1.JSONSchemaProps", _as_bytes(fields[schema_at][0]), depth + 1)
        if other == "b":
            return bool(_signed(fields.get(other_at, [0])[0]))
        return [_value(other, raw, depth) for raw in fields.get(other_at, [])]

    return read


_SPECIAL: Final[Mapping[str, Callable[[bytes, int], JsonValue]]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "api.resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
    "pkg.runtime.RawExtension": _raw_json,
    "meta.v1.FieldsV1": _raw_json,
    "apiextensions.v1.JSON": _raw_json,
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or("apiextensions.v1.JSONSchemaProps"),
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or("b"),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or("s"),
}
