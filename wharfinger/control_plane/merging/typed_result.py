"""The conversion of an object to the Go type of its kind, after a strategic merge patch or a server-side apply.

kube-apiserver converts such an object to Go structs directly, not through JSON (``FromUnstructuredWithValidation`` in
apimachinery). The conversion differs from kube-apiserver's JSON decoder: members are read in the order of Go's fields, the
first invalid member ends the conversion, and the messages are different.
"""

from base64 import b64encode
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation, Scalar
from wharfinger.control_plane.wire.bodies import with_plain_numbers
from wharfinger.control_plane.wire.decoding import INT64, Decoded, DecodingError, go_type_of, read_schema
from wharfinger.control_plane.wire.field_errors import sorted_members
from wharfinger.control_plane.wire.go_numbers import native
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.go_texts import ZERO_TIME, GoFormatError, read_base64, read_quantity, read_time

_STRINGS: Final = frozenset({Scalar.STRING})
_INTEGERS: Final = frozenset({Scalar.INT32, Scalar.INT64})


def restored(value: JsonObject, lists: ListTypes) -> Decoded:
    """Return the object in the form of a kind's Go type, with an error for each field that this type does not have.

    Raises DecodingError.
    """
    unknown: list[str] = []
    try:
        obj = _struct(value, lists, "", unknown)
    except GoFormatError as error:
        raise DecodingError(str(error)) from error
    return Decoded(obj, tuple(sorted(f'unknown field "{path}"' for path in unknown)))


def _struct(value: JsonObject, lists: ListTypes, path: str, unknown: list[str]) -> JsonObject:
    found: JsonObject = {}
    for name, types in lists.fields.items():
        inner = value.get(name)
        if inner is None:
            continue
        read = _value(inner, types, f"{path}.{name}" if path else name, unknown)
        if read is not None:
            found[name] = read
    unknown += [f"{path}.{name}" if path else name for name in value if name not in lists.fields]
    return found


def _value(value: JsonValue, types: ListTypes, path: str, unknown: list[str]) -> JsonValue:
    if value is None:
        return _zero(types)
    if types.relation in {Relation.SCALAR, Relation.QUANTITY}:
        return _scalar(value, types)
    if types.relation is Relation.UNKNOWN:
        return sorted_members(value) if types.scalar is Scalar.ANY else read_schema(value, types)
    if types.closed:
        if not isinstance(value, dict):
            raise DecodingError(f"cannot restore struct from: {_go_kind(value)}")
        return _struct(value, types, path, unknown)
    if types.relation in {Relation.MAP, Relation.ATOMIC_MAP}:
        if not isinstance(value, dict):
            raise DecodingError(f"cannot restore map from {_go_kind(value)}")
        return {name: _value(inner, types.item, path, unknown) for name, inner in value.items()}
    if not isinstance(value, list):
        raise DecodingError(f"cannot restore slice from {_go_kind(value)}")
    return [_value(item, types.item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]


def _zero(types: ListTypes) -> JsonValue:
    if types.closed:
        return {}
    zeros: dict[Scalar, JsonValue] = {
        Scalar.STRING: "", Scalar.BOOL: False, Scalar.INT32: 0, Scalar.INT64: 0, Scalar.FLOAT: 0, Scalar.QUANTITY: "0",
        Scalar.INT_OR_STRING: 0, Scalar.BYTES: "",
    }  # fmt: skip
    return zeros.get(types.scalar)


def _go_kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "bool"
    kinds: dict[type, str] = {dict: "map", list: "slice", int: "int64", float: "float64"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "string")


def _scalar(value: JsonValue, types: ListTypes) -> JsonValue:
    scalar = types.scalar
    if scalar in {Scalar.TIME, Scalar.MICRO_TIME}:
        if not isinstance(value, str):
            raise DecodingError(f"json: cannot unmarshal {go_type_of(value)} into Go value of type string")
        time = read_time(value, micro=scalar is Scalar.MICRO_TIME)
        return None if time == ZERO_TIME else time
    if scalar is Scalar.QUANTITY:
        is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
        return read_quantity(_amount_text(value) if is_text else "")
    if scalar is Scalar.INT_OR_STRING:
        return value if isinstance(value, str) else _own_integer(value)
    if scalar is Scalar.BYTES:
        if isinstance(value, list) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            return b64encode(bytes(item & 255 for item in value if isinstance(item, int))).decode()
        if not isinstance(value, str):
            raise DecodingError(f"cannot restore slice from {_go_kind(value)}")
        try:
            return read_base64(value)
        except GoFormatError as error:
            raise DecodingError(f"error decoding from json: {error}") from error
    return value if scalar is Scalar.ANY else _simple(value, types)


def _own_integer(value: JsonValue) -> JsonValue:
    if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31:
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    found = f"number {value}" if is_number else go_type_of(value)
    raise DecodingError(f"json: cannot unmarshal {found} into Go value of type int32")


def _simple(value: JsonValue, types: ListTypes) -> JsonValue:
    """Return a string, bool or number in the form of the declared type; a whole number may be converted to 32 or 64 bits."""
    scalar, kind = types.scalar, _go_kind(value)
    if (scalar, kind) in {(Scalar.STRING, "string"), (Scalar.BOOL, "bool"), (Scalar.FLOAT, "float64")}:
        return value
    value = native(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if scalar is Scalar.FLOAT:
            return value
        if scalar in _INTEGERS:
            return _wrapped(value, scalar)
        if scalar in _STRINGS:
            raise DecodingError(f"cannot convert int64 to {types.go_type}")
    if isinstance(value, float) and scalar in _INTEGERS:
        if value.is_integer():
            return _wrapped(int(value) if int(value) in INT64 else INT64.start, scalar)
        raise DecodingError(f"cannot convert float64 to {types.go_type}")
    raise DecodingError(f"unrecognized type: {'string' if scalar is Scalar.STRING else types.go_type}")


def _wrapped(value: int, scalar: Scalar) -> int:
    """Convert a 64-bit number to the size of the scalar; a number that does not fit wraps around."""
    half: int = 1 << (31 if scalar is Scalar.INT32 else 63)
    return (value + half) % (2 * half) - half


def _amount_text(value: JsonValue) -> str:
    """Return a quantity as text; a number is written as in JSON."""
    return value if isinstance(value, str) else str(with_plain_numbers(native(value)))
