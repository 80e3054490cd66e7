"""Equality, order, arithmetic and conversions of values."""

import math
import operator
from collections.abc import Callable, Iterable
from typing import Final

from wharfinger.control_plane.cel.values import times as moments
from wharfinger.control_plane.cel.values.objects import ListView, ObjectView, list_kind
from wharfinger.control_plane.cel.values.values import (
    CelError,
    CelMap,
    Duration,
    MadeObject,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    is_number,
    type_name,
)
from wharfinger.control_plane.wire.go_numbers import go_float

NO_OVERLOAD: Final = "no such overload"
_LOW, _HIGH = -(2**63), 2**63


def as_items(value: Value) -> Iterable[Value] | None:
    """Return the items of a list, or None for other values."""
    return value if isinstance(value, list | ListView) else None


def equal(one: Value, other: Value) -> bool:
    """Return ``one == other``; values of different types are never equal, except numbers."""
    if is_number(one) and is_number(other):
        return one == other
    if isinstance(one, list | ListView) and isinstance(other, list | ListView):
        return _equal_lists(one, other)
    if isinstance(one, CelMap | ObjectView) and isinstance(other, CelMap | ObjectView):
        made = [each.made_type if isinstance(each, MadeObject) else "" for each in (one, other)]
        return made[0] == made[1] and _equal_maps(one, other)
    if isinstance(one, Optional) and isinstance(other, Optional):
        return one.present == other.present and (not one.present or equal(one.value, other.value))
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return one == other
    return type(one) is type(other) and one == other


def _equal_lists(one: list[Value] | ListView, other: list[Value] | ListView) -> bool:
    if len(one) != len(other):
        return False
    if list_kind(one) or list_kind(other):  # the order of items does not count in lists of type set or map
        left = list(other)
        for item in one:
            found = next((index for index, candidate in enumerate(left) if equal(item, candidate)), None)
            if found is None:
                return False
            left.pop(found)
        return True
    return all(map(equal, one, other))


def _equal_maps(one: CelMap | ObjectView, other: CelMap | ObjectView) -> bool:
    keys = list(one.keys())
    if len(keys) != len(list(other.keys())):
        return False
    for key in keys:
        there, value = other.find(key)
        if not there or not equal(one.find(key)[1], value):
            return False
    return True


def compare(one: Value, other: Value) -> int:
    """Return -1, 0 or 1 if ``one`` is less than, equal to or greater than ``other``.

    Raises CelError for values without an order.
    """
    if is_number(one) and is_number(other) and isinstance(one, int | float) and isinstance(other, int | float):
        if math.isnan(one) or math.isnan(other):
            raise CelError("NaN values cannot be ordered")
        return (one > other) - (one < other)
    if isinstance(one, str) and isinstance(other, str):
        one, other = one.encode(), other.encode()
    if isinstance(one, bytes) and isinstance(other, bytes):
        return (one > other) - (one < other)
    if isinstance(one, bool) and isinstance(other, bool):
        return one - other
    if isinstance(one, Duration | Timestamp) and isinstance(other, Duration | Timestamp) and type(one) is type(other):
        return (one.nanoseconds > other.nanoseconds) - (one.nanoseconds < other.nanoseconds)
    raise CelError(NO_OVERLOAD)


def _whole(value: int, kind: type) -> Value:
    """Return ``value`` as an int, or as a Uint if ``kind`` is Uint. Raises CelError if it does not fit in 64 bits."""
    if kind is Uint:
        if not 0 <= value < 2**64:
            raise CelError("unsigned integer overflow")
        return Uint(value)
    if not _LOW <= value < _HIGH:
        raise CelError("integer overflow")
    return value


def _moment(value: int, kind: type) -> Value:
    if kind is Duration:
        if not _LOW <= value < _HIGH:
            raise CelError("integer overflow")
        return Duration(value)
    if not -62135596800 * moments.SECOND <= value <= 253402300799 * moments.SECOND + moments.SECOND - 1:
        raise CelError("timestamp overflow")
    return Timestamp(value)


def _numbers(
    one: Value, other: Value, of_floats: Callable[[float, float], float], of_integers: Callable[[int, int], int]
) -> Value:
    """Return the result of an operation on two numbers of the same type, or None for any other two values."""
    if type(one) is not type(other) or not is_number(one):
        return None
    if isinstance(one, float) and isinstance(other, float):
        return of_floats(one, other)
    return _whole(of_integers(one, other), type(one)) if isinstance(one, int) and isinstance(other, int) else None


def _required(number: Value) -> Value:
    if number is None:
        raise CelError(NO_OVERLOAD)
    return number


def add(one: Value, other: Value) -> Value:
    """Return ``one + other``. Raises CelError."""
    sum_of_numbers = _numbers(one, other, operator.add, operator.add)
    if sum_of_numbers is not None:
        return sum_of_numbers
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, bytes) and isinstance(other, bytes):
        return one + other
    if isinstance(one, list | ListView) and isinstance(other, list | ListView):
        return _added_lists(one, other)
    if isinstance(one, Duration | Timestamp) and isinstance(other, Duration | Timestamp):
        if isinstance(one, Timestamp) and isinstance(other, Timestamp):
            raise CelError(NO_OVERLOAD)
        kind = Timestamp if isinstance(one, Timestamp) or isinstance(other, Timestamp) else Duration
        return _moment(one.nanoseconds + other.nanoseconds, kind)
    raise CelError(NO_OVERLOAD)


def _added_lists(one: list[Value] | ListView, other: list[Value] | ListView) -> list[Value]:
    """Return the items of both lists. If the first list is a set, items that it already contains are not added again."""
    result = list(one)
    kind = list_kind(one)
    for item in other:
        if kind == "set" and any(equal(item, known) for known in result):
            continue
        result.append(item)
    return result


def subtract(one: Value, other: Value) -> Value:
    """Return ``one - other``. Raises CelError."""
    difference = _numbers(one, other, operator.sub, operator.sub)
    if difference is not None:
        return difference
    if isinstance(one, Duration | Timestamp) and isinstance(other, Duration | Timestamp):
        if isinstance(one, Duration) and isinstance(other, Timestamp):
            raise CelError(NO_OVERLOAD)
        kind = Duration if type(one) is type(other) else Timestamp
        return _moment(one.nanoseconds - other.nanoseconds, kind)
    raise CelError(NO_OVERLOAD)


def multiply(one: Value, other: Value) -> Value:
    """Return ``one * other``. Raises CelError."""
    return _required(_numbers(one, other, operator.mul, operator.mul))


def divide(one: Value, other: Value) -> Value:
    """Return ``one / other``, rounded towards zero. Raises CelError."""
    return _required(_numbers(one, other, _float_quotient, _quotient))


def _float_quotient(one: float, other: float) -> float:
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    return one / other


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise CelError("division by zero")
    quotient = abs(int(one)) // abs(int(other))
    return quotient if (one < 0) is (other < 0) else -quotient


def modulo(one: Value, other: Value) -> Value:
    """Return ``one % other``, with the sign of the first operand. Raises CelError."""
    return _required(None if isinstance(one, float) else _numbers(one, other, math.fmod, _rest))


def _rest(one: int, other: int) -> int:
    if other == 0:
        raise CelError("modulus by zero")
    rest = abs(int(one)) % abs(int(other))
    return -rest if one < 0 else rest


def negate(value: Value) -> Value:
    """Return ``-x``. Raises CelError."""
    if isinstance(value, float):
        return -value
    if isinstance(value, Duration):
        return Duration(-value.nanoseconds)
    if isinstance(value, int) and not isinstance(value, bool | Uint):
        return _whole(-value, int)
    raise CelError(NO_OVERLOAD)


def contains(container: Value, value: Value) -> bool:
    """Return ``value in container``. Raises CelError."""
    items = as_items(container)
    if items is not None:
        return any(equal(value, item) for item in items)
    if isinstance(container, CelMap | ObjectView):
        return container.find(value)[0]
    raise CelError(NO_OVERLOAD)


def element(container: Value, index: Value) -> Value:
    """Return ``container[index]``. Raises CelError."""
    if isinstance(container, list | ListView):
        place = int(index) if is_number(index) and isinstance(index, int | float) and index == int(index) else None
        if place is None:
            raise CelError(f"unsupported index type '{type_name(index)}' in list")
        if not 0 <= place < len(container):
            raise CelError(f"index out of bounds: {place}")
        return container.at(place) if isinstance(container, ListView) else container[place]
    if isinstance(container, CelMap | ObjectView):
        there, value = container.find(index)
        if not there:
            raise CelError(f"no such key: {key_text(index)}")
        return value
    raise CelError(f"no such key: {key_text(index)}")


def key_text(key: Value) -> str:
    """Return a key as errors show it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return go_float(key) if isinstance(key, float) else str(key)


def size(value: Value) -> int:
    """Return the size: the number of characters, bytes, items or entries."""
    if isinstance(value, str | bytes | list | ListView | CelMap | ObjectView):
        return len(value)
    raise CelError(NO_OVERLOAD)


def _conversion_error(value: Value, to: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{to}'")


def to_int(value: Value) -> Value:
    """Convert a value as ``int(x)`` does. Raises CelError."""
    if isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    if isinstance(value, float):
        if not math.isfinite(value) or not -(2.0**63) < math.trunc(value) < 2.0**63:
            raise CelError("integer overflow")
        return math.trunc(value)
    if isinstance(value, int):
        return _whole(int(value), int)
    if isinstance(value, str):
        return _parsed(value, "int", _LOW, _HIGH)
    if isinstance(value, Timestamp):
        return value.nanoseconds // moments.SECOND
    if isinstance(value, Duration):
        return value.nanoseconds
    raise CelError(NO_OVERLOAD)


def to_uint(value: Value) -> Value:
    """Convert a value as ``uint(x)`` does. Raises CelError."""
    if isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    if isinstance(value, float):
        if not math.isfinite(value) or not 0 <= math.trunc(value) < 2.0**64:
            raise CelError("unsigned integer overflow")
        return Uint(math.trunc(value))
    if isinstance(value, int):
        return _whole(int(value), Uint)
    if isinstance(value, str):
        return Uint(_parsed(value, "uint", 0, 2**64))
    raise CelError(NO_OVERLOAD)


def _parsed(text: str, kind: str, low: int, high: int) -> int:
    body = text[1:] if text[:1] in "+-" and kind == "int" else text
    if not (body.isascii() and body.isdigit()) or len(body) > 400 or not low <= int(text) < high:
        raise _conversion_error(text, kind)
    return int(text)


def to_double(value: Value) -> Value:
    """Convert a value as ``double(x)`` does. Raises CelError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return (
                float(value)
                if "_" not in value and value == value.strip()
                else _raise(_conversion_error(value, "double"))
            )
        except ValueError as error:
            raise _conversion_error(value, "double") from error
    raise CelError(NO_OVERLOAD)


def _raise(error: CelError) -> Value:
    raise error


def to_bool(value: Value) -> Value:
    """Convert a value as ``bool(x)`` does. Raises CelError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in {"1", "t", "T", "TRUE", "true", "True"}:
            return True
        if value in {"0", "f", "F", "FALSE", "false", "False"}:
            return False
        raise _conversion_error(value, "bool")
    raise CelError(NO_OVERLOAD)


def to_string(value: Value) -> Value:
    """Convert a value as ``string(x)`` does. Raises CelError."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error
    if isinstance(value, Timestamp):
        return moments.format_time(value.nanoseconds)
    if isinstance(value, Duration):
        return moments.format_duration(value.nanoseconds)
    if isinstance(value, Opaque) and value.type_name in {"net.IP", "net.CIDR"}:
        return str(value.content)
    raise CelError(NO_OVERLOAD)


def to_bytes(value: Value) -> Value:
    """Convert a value as ``bytes(x)`` does. Raises CelError."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise CelError(NO_OVERLOAD)


def to_timestamp(value: Value) -> Value:
    """Convert a value as ``timestamp(x)`` does. Raises CelError."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        try:
            return Timestamp(moments.parse_date_time(value))
        except ValueError as error:
            raise _conversion_error(value, "google.protobuf.Timestamp") from error
    if isinstance(value, int) and not isinstance(value, bool | Uint):
        return _moment(int(value) * moments.SECOND, Timestamp)
    raise CelError(NO_OVERLOAD)


def to_duration(value: Value) -> Value:
    """Convert a value as ``duration(x)`` does. Raises CelError."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        try:
            return Duration(moments.parse_duration(value))
        except ValueError as error:
            raise _conversion_error(value, "google.protobuf.Duration") from error
    if isinstance(value, int) and not isinstance(value, bool | Uint):
        return Duration(int(value))
    raise CelError(NO_OVERLOAD)


def type_of(value: Value) -> TypeValue:
    """Return the type of a value, as ``type(x)`` does."""
    return TypeValue(type_name(value))
