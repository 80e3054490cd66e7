"""JSON values: the form in which the parts of Wharfinger pass foreign data to each other.

YAML, JSON, API answers and charts become a :data:`JsonValue` once a reader has accepted them. Code that reads such a value uses
the accessors here. Accessors such as :func:`find_str` and :func:`as_object` never guess: if a value has another type than
requested, they raise a :class:`ShapeError` that names the path. Without them, there would be an ``AttributeError`` later.

Checksums are taken of canonical JSON, so two documents with the same meaning have the same checksum. Canonical JSON follows RFC
8785 in spirit: keys are sorted, there is no white space and no NaN, and equal numbers are written alike. Integers stay exact at
any size.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeAlias, cast

import msgspec

from wharfinger.formats.errors import FormatError

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

MAX_DEPTH: Final = 200
"""The maximum depth of nested containers. Kubernetes objects are far less deep, and Python's recursion limit is far higher."""


class JsonError(FormatError):
    """The bytes are not one JSON document within the limits."""


class ShapeError(FormatError):
    """A value in a document is missing, or has another type than needed."""


def decode_json(data: bytes | str, *, max_bytes: int, what: str) -> JsonValue:
    """Read one JSON document; ``what`` names the document in errors.

    A number with a point or an exponent is a float; any other number is an integer of any size. If a key occurs more than once,
    the last value counts, as in the API server. Raises JsonError for more than ``max_bytes``, more than MAX_DEPTH levels, or
    anything that is not JSON, including a lone surrogate, a number out of range and text that is not UTF-8.
    """
    if len(data) > max_bytes:
        raise JsonError(f"{what}: {len(data)} bytes is over the limit of {max_bytes}")
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError as error:
            raise JsonError(f"{what}: not valid text: {error.reason} at character {error.start}") from error
        if len(data) > max_bytes:
            raise JsonError(f"{what}: {len(data)} bytes is over the limit of {max_bytes}")
    _check_depth(data, what)
    try:
        return cast("JsonValue", msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JsonError(f"{what}: {error}") from error


_ALL_BUT_QUOTES_AND_BRACKETS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS: Final = [1 if byte in b"[{" else -1 if byte in b"]}" else 0 for byte in range(256)]


def _check_depth(data: bytes, what: str) -> None:
    """Refuse deep nesting by counting brackets outside of strings, mostly in whole-buffer operations.

    The count is exact for JSON. For a text that is not JSON, the count may be wrong; then the decoder's own limit of recursion
    applies.
    """
    if len(data.split(b"[", MAX_DEPTH)) + len(data.split(b"{", MAX_DEPTH)) - 2 < MAX_DEPTH:
        return  # ``split`` is faster than ``count``, which searches byte by byte
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    brackets = b"".join(bare.translate(None, _ALL_BUT_QUOTES_AND_BRACKETS).split(b'"')[::2])
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise JsonError(f"{what}: nested deeper than {MAX_DEPTH} levels")


def encode_json(value: JsonValue) -> bytes:
    """Return compact JSON in the value's own key order. NaN and infinities are written as null.

    Raises ShapeError for a value without a JSON form.
    """
    return _encoded(value, canonical=False)


def canonical_json(value: JsonValue) -> bytes:
    """Return canonical JSON: keys sorted by code point, no white space, equal values in equal bytes.

    A whole float is written as the integer it equals (``1.0`` as ``1``, ``-0.0`` as ``0``, ``1e22`` with its 23
    digits), so a checksum does not depend on whether a number was written with a point. Raises ShapeError for NaN and
    infinities (JSON has none), lone surrogates, and nesting beyond MAX_DEPTH.
    """
    text = _encoded(value, canonical=True)
    return text if _is_plain(value, text) else _encoded(_with_plain_numbers(value, 0), canonical=True)


def checksum(value: JsonValue) -> str:
    """Return ``sha256:<64 hex>`` of the canonical JSON.

    An absent mapping and an empty one must have the same checksum, so pass ``value or {}`` for a mapping that may be None.
    """
    from hashlib import sha256  # noqa: PLC0415 - a client of the daemon starts faster without it

    return "sha256:" + sha256(canonical_json(value)).hexdigest()


def _encoded(value: JsonValue, *, canonical: bool) -> bytes:
    try:
        return msgspec.json.encode(value, order="sorted" if canonical else None)
    except UnicodeEncodeError as error:
        raise ShapeError(f"{str(error.object)[:40]!r} contains a lone surrogate, so it has no JSON form") from error
    except (RecursionError, ValueError, TypeError) as error:
        raise ShapeError(f"the value has no JSON form: {error}") from error


_FLOAT: Final = b"\xcb"
"""The first byte of a float in MessagePack."""


def _is_plain(value: JsonValue, text: bytes) -> bool:
    """Return whether a value certainly has no float and is not nested too deeply; ``text`` is its JSON."""
    if len(text.split(b"[", MAX_DEPTH)) + len(text.split(b"{", MAX_DEPTH)) - 2 >= MAX_DEPTH:
        return False
    try:
        return _FLOAT not in msgspec.msgpack.encode(value)
    except (ValueError, TypeError, OverflowError):
        return False  # such as an integer of more than 64 bits


_PLAIN: Final = frozenset({str, int, bool, type(None)})
"""The types of values that :func:`_with_plain_numbers` returns unchanged. Most values have one of these types."""


def _with_plain_numbers(value: JsonValue, depth: int) -> JsonValue:
    """Return the value with whole floats as integers; unchanged parts are not copied."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ShapeError(f"{value} has no JSON form")
        return int(value) if value.is_integer() else value
    if not isinstance(value, (dict, list)):
        return value
    if depth >= MAX_DEPTH:
        raise ShapeError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        changed = {
            key: plain
            for key, item in value.items()
            if type(item) not in _PLAIN and (plain := _with_plain_numbers(item, depth + 1)) is not item
        }
        return {**value, **changed} if changed else value
    items = [item if type(item) in _PLAIN else _with_plain_numbers(item, depth + 1) for item in value]
    return value if all(new is old for new, old in zip(items, value, strict=True)) else items


def as_object(value: JsonValue, what: str) -> JsonObject:
    """Return the value as an object. Raises ShapeError, which names ``what``, for a value of another type."""
    if not isinstance(value, dict):
        raise ShapeError(f"{what}: expected an object, found {type_name(value)}")
    return value


_member: Final = cast("Callable[[JsonObject, str | int], JsonValue]", dict.get)
"""A function that returns the member of an object with a given key, or None if the object has no such key. It accepts an
integer, too, and returns None for it, because keys are strings.
"""


def find(value: JsonValue, *path: str | int) -> JsonValue:
    """Return the value at ``path``, or None if any step is missing (a null at the end also counts as missing)."""
    for step in path:
        if isinstance(value, dict):
            value = _member(value, step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def find_str(value: JsonValue, *path: str | int, default: str = "") -> str:
    """Return the string at ``path``; ``default`` if it is missing. Raises ShapeError for a value of another type."""
    found = value
    for step in path:  # as in `find`; half of all accesses are for strings
        found = _member(found, step) if type(found) is dict else find(found, step)
    if isinstance(found, str):
        return found
    if found is None:
        return default
    raise ShapeError(f"{_dotted(path)}: expected a string, found {type_name(found)}")


def find_int(value: JsonValue, *path: str | int, default: int = 0) -> int:
    """Return the integer at ``path``; ``default`` if it is missing. Raises ShapeError for a value of another type."""
    found = find(value, *path)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int):
        raise ShapeError(f"{_dotted(path)}: expected an integer, found {type_name(found)}")
    return found


def find_object(value: JsonValue, *path: str | int) -> JsonObject:
    """Return the object at ``path``; a new empty one if it is missing. Raises ShapeError for a value of another type."""
    found = find(value, *path)
    if isinstance(found, dict):
        return found
    return {} if found is None else as_object(found, _dotted(path))


def find_list(value: JsonValue, *path: str | int) -> list[JsonValue]:
    """Return the list at ``path``; a new empty one if it is missing. Raises ShapeError for a value of another type."""
    found = find(value, *path)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ShapeError(f"{_dotted(path)}: expected a list, found {type_name(found)}")
    return found


def strings_of(value: JsonValue) -> list[str]:
    """Return the strings of a list, without its other items; an empty list for a value that is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def need_str(value: JsonValue, *path: str | int) -> str:
    """Return the non-empty string at ``path``. Raises ShapeError for anything else."""
    found = find_str(value, *path)
    if not found:
        raise ShapeError(f"{_dotted(path)}: required")
    return found


def to_json(value: object, what: str = "value") -> JsonValue:
    """Copy plain Python data (mappings, sequences, scalars) as JSON, deeply.

    Raises ShapeError for anything else: other types, keys that are not strings, NaN and infinities, and nesting beyond
    MAX_DEPTH (for example, a value that contains itself).
    """
    return _to_json(value, what, 0)


def _to_json(value: object, what: str, depth: int) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        raise ShapeError(f"{what}: {value} has no JSON form")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth >= MAX_DEPTH:
        raise ShapeError(f"{what[:200]}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        result: JsonObject = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ShapeError(f"{what}: key {key!r} is not a string")
            result[key] = _to_json(item, f"{what}.{key}", depth + 1)
        return result
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_to_json(item, f"{what}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise ShapeError(f"{what}: a {type(value).__name__} has no JSON form")


def type_name(value: JsonValue) -> str:
    """Return the JSON name of a value's type, for messages."""
    if value is None:
        return "null"
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return "an object"


_TYPE_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (list, "a list"),
)


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(str(step) for step in path) or "document"
