"""Field errors with the wording of ``apimachinery/util/validation/field``.

An invalid value is shown as in Go: strings in quotes, numbers and booleans without quotes, anything else as JSON. Callers have to
pass objects as the server's internal type prints them: members in the order of the struct, keys of a map sorted
(:func:`sorted_map`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

NOWHERE: Final = "[]"
"""The path of an error that is not about any field. In Go, this is a path with one empty name, which Go prints as ``[]``."""
MAX_LIST_ERRORS: Final = 10_000
"""The maximum number of errors of a rule that compares each item of a list with all others; kube-apiserver has no limit."""
IMMUTABLE: Final = "field is immutable"
"""The message of ``ValidateImmutableField``."""
_NOTHING: Final[tuple[JsonValue, ...]] = (None, [], {})
NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def invalid(field: str, value: JsonValue, why: str) -> FieldError:
    """Return the error ``field: Invalid value: <value>: why``."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {shown(value)}" + (f": {why}" if why else ""))


def type_invalid(field: str, value: JsonValue, why: str) -> FieldError:
    """Return the error of `invalid` with the reason ``FieldValueTypeInvalid``, for a value whose type differs from the type in
    the schema.
    """
    return FieldError(field, "FieldValueTypeInvalid", f"Invalid value: {shown(value)}" + (f": {why}" if why else ""))


def required(field: str, why: str = "") -> FieldError:
    """Return the error ``field: Required value: why``."""
    return FieldError(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def forbidden(field: str, why: str) -> FieldError:
    """Return the error ``field: Forbidden: why``."""
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {why}" if why else "Forbidden")


def not_supported(field: str, value: JsonValue, supported: Iterable[str]) -> FieldError:
    """Return the error ``field: Unsupported value: <value>: supported values: "a", "b"``, with the values in the given
    order."""
    listed = ", ".join(quoted(item) for item in supported)
    why = f": supported values: {listed}" if listed else ""
    return FieldError(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}{why}")


def duplicate(field: str, value: JsonValue) -> FieldError:
    """Return the error ``field: Duplicate value: <value>``."""
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def absent(field: str, value: JsonValue, why: str = "") -> FieldError:
    """Return the error ``field: Not found: <value>: why``."""
    return FieldError(field, "FieldValueNotFound", f"Not found: {shown(value)}" + (f": {why}" if why else ""))


def too_long(field: str, limit: int, unit: str = "byte") -> FieldError:
    """Return the error ``field: Too long: may not be more than … bytes``; the unit may be ``character``."""
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {unit}{'s' * (limit != 1)}")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Return the error ``field: Too many: 5: must have at most 3 items``."""
    why = f"Too many: {count}: must have at most {limit} item{'s' * (limit != 1)}"
    return FieldError(field, "FieldValueTooMany", why)


def internal_error(field: str, why: str) -> FieldError:
    """Return the error ``field: Internal error: why``."""
    return FieldError(field, "InternalError", f"Internal error: {why}")


def immutable(field: str, new: JsonValue, old: JsonValue) -> list[FieldError]:
    """Return ``field: Invalid value: new: field is immutable`` if the new value differs from the old one
    (``ValidateImmutableField``).

    Empty and missing values are equal.
    """
    return [] if new == old or (new in _NOTHING and old in _NOTHING) else [invalid(field, new, IMMUTABLE)]


def each(field: str, value: str, problems: Sequence[str]) -> list[FieldError]:
    """Return an ``invalid`` error for each problem of a text."""
    return [invalid(field, value, problem) for problem in problems]


def sorted_map(value: Mapping[str, JsonValue]) -> JsonObject:
    """Return a map with its keys in the order in which Go prints them."""
    return dict(sorted(value.items()))


def shown(value: JsonValue) -> str:
    """Return a value as Go's field errors show it; the members of an object keep their order."""
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return html_escaped(text) if isinstance(value, dict | list) else text


def sorted_members(value: JsonValue) -> JsonValue:
    """Return a value with the members of all its objects sorted, as Go prints maps."""
    if isinstance(value, dict):
        return {name: sorted_members(value[name]) for name in sorted(value)}
    return [sorted_members(item) for item in value] if isinstance(value, list) else value


def html_escaped(text: str) -> str:
    """Escape ``<``, ``>``, ``&``, U+2028 and U+2029 in a JSON text, as Go's ``encoding/json`` does."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def pointed(field: str, value: JsonValue, why: str) -> FieldError:
    """Return an ``invalid`` error for a value that Go holds by a pointer: a string is shown as JSON."""
    text = html_escaped(json.dumps(value, ensure_ascii=False))
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {text}: {why}")


def quoted(text: str) -> str:
    """Return a text as Go's ``%q`` writes it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(char) or _printed(char) for char in text) + '"'


def _printed(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
