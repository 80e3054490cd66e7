"""Numbers and percentages in specs and statuses: accessors, and checks of their limits."""

import re
from collections.abc import Iterable
from typing import Final

from wharfinger.control_plane.wire.field_errors import NEGATIVE, invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonValue, find

_PERCENT: Final = re.compile(r"[0-9]+%")
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_MAX_INT: Final = 2**63 - 1


def number(value: JsonValue, *path: str) -> int:
    """Return the integer at a path; 0 if it is missing."""
    found = find(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def optional_number(value: JsonValue, *path: str) -> int | None:
    """Return the integer at a path, or None."""
    found = find(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def text(value: JsonValue, *path: str) -> str:
    """Return the string at a path; "" if it is missing."""
    found = find(value, *path)
    return found if isinstance(found, str) else ""


def not_negative(value: JsonValue, path: str) -> list[FieldError]:
    """Return the error (``path: Invalid value: -1: …``) of an integer below zero; every other value is accepted."""
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, NEGATIVE)]
    return []


def none_negative(obj: JsonValue, path: str, names: Iterable[str]) -> list[FieldError]:
    """Return the errors of :func:`not_negative` for several members of the object at ``path``."""
    return [error for name in names for error in not_negative(find(obj, name), f"{path}.{name}")]


def not_above(obj: JsonValue, path: str, pairs: Iterable[tuple[str, str, str]]) -> list[FieldError]:
    """Compare pairs of members of an object. Return an error for each pair whose first member is greater than its second
    member.

    A triple in ``pairs`` has the two members, and the name of the second one in messages.
    """
    return [
        invalid(f"{path}.{name}", number(obj, name), f"cannot be greater than {called}")
        for name, other, called in pairs
        if number(obj, name) > number(obj, other)
    ]


def count_or_percent_errors(value: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of a value that must be a count or a percentage such as ``25%``; None has no errors."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [invalid(path, value, _PERCENT_RULE)]
    return not_negative(value, path)


def above_hundred_percent(value: JsonValue, path: str) -> list[FieldError]:
    """Return the error of a percentage above a hundred; every other value is accepted."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and count_of(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def count_of(value: JsonValue) -> int:
    """Return the number in a count or a percentage; anything else counts as 0, as with Go's ``Atoi``."""
    if isinstance(value, str):
        digits = value.removesuffix("%") if _PERCENT.fullmatch(value) else value
        found = int(digits) if re.fullmatch(r"[+-]?[0-9]{1,30}", digits) else 0
        return min(found, _MAX_INT)
    return value if isinstance(value, int) else 0
