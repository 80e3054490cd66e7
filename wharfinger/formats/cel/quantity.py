"""Quantities (``1.5Gi``) and semantic versions in rules: the functions that Kubernetes adds to CEL for them. Pure.

The library that evaluates rules does not support custom types, so a value is a map with one key, which names its type. The text
under this key is canonical, so that equal values are equal maps: ``{"quantity": "3/2"}``, ``{"semver": "1.2.3-rc.1"}``. All
functions raise ValueError for invalid arguments, except ``is_quantity`` and ``is_version``, which return False.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, TypeAlias

import semver

from wharfinger.formats.quantity import parse_quantity

Tagged: TypeAlias = Mapping[str, object]
"""A map with one key. The key is the name of a type, and its value is the canonical text of a value of this type."""

LARGEST_INT: Final = 2**63 - 1
_MAX_CHARS: Final = 64
_PARTS: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?", re.ASCII | re.DOTALL)


def tagged(tag: str, value: Tagged) -> str:
    """Return the canonical text of a value, which must have the type ``tag``. Raises ValueError for any other value."""
    found = value.get(tag)
    if len(value) != 1 or not isinstance(found, str):
        raise ValueError(f"expected the result of {tag}()")
    return found


def quantity(text: str) -> Tagged:
    """Implement ``quantity('1.5Gi')``."""
    value = parse_quantity(text) if len(text) <= _MAX_CHARS else None
    if value is None:
        raise ValueError("expected a quantity such as 100m or 1.5Gi")
    return _quantity(value)


def is_quantity(text: str) -> bool:
    """Implement ``isQuantity('1.5Gi')``."""
    try:
        quantity(text)
    except ValueError:
        return False
    return True


def _quantity(value: Fraction) -> Tagged:
    return {"quantity": f"{value.numerator}/{value.denominator}"}


def _amount(value: Tagged | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(tagged("quantity", value))


def add(value: Tagged, other: Tagged | int) -> Tagged:
    """Implement ``quantity('1').add(quantity('2'))``; the argument may also be an int."""
    return _quantity(_amount(value) + _amount(other))


def sub(value: Tagged, other: Tagged | int) -> Tagged:
    """Implement ``quantity('1').sub(quantity('2'))``; the argument may also be an int."""
    return _quantity(_amount(value) - _amount(other))


def sign(value: Tagged) -> int:
    """Implement ``quantity('-1').sign()``: -1, 0 or 1."""
    amount = _amount(value)
    return (amount > 0) - (amount < 0)


def is_integer(value: Tagged) -> bool:
    """Implement ``quantity('1k').isInteger()``: true if ``asInteger`` has a result."""
    amount = _amount(value)
    return amount.denominator == 1 and -LARGEST_INT - 1 <= amount.numerator <= LARGEST_INT


def as_integer(value: Tagged) -> int:
    """Implement ``quantity('1k').asInteger()``."""
    if not is_integer(value):
        raise ValueError("the quantity is not an integer of 64 bits")
    return _amount(value).numerator


def as_float(value: Tagged) -> float:
    """Implement ``quantity('1.5').asApproximateFloat()``."""
    return float(_amount(value))


def version(text: str, normalize: bool = False) -> Tagged:  # noqa: FBT001, FBT002 - the signature of CEL's function
    """Implement ``semver('1.2.3')``. If ``normalize`` is true, also accept ``v1.2`` and ``01.2.3``.

    Build metadata is ignored.
    """
    if len(text) > 256:
        raise ValueError("not a semantic version")
    if normalize:
        match = _PARTS.fullmatch(text.removeprefix("v"))
        if match is None:
            raise ValueError("not a semantic version")
        numbers = ".".join(str(int(part or "0")) for part in match.groups()[:3])
        text = numbers + (match[4] or "")
    try:
        parsed = semver.Version.parse(text)
    except ValueError as error:
        raise ValueError("not a semantic version") from error
    return {"semver": str(parsed.replace(build=None))}


def is_version(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002
    """Implement ``isSemver('1.2.3')``."""
    try:
        version(text, normalize)
    except ValueError:
        return False
    return True


def _parsed(value: Tagged) -> semver.Version:
    return semver.Version.parse(tagged("semver", value))


def major(value: Tagged) -> int:
    """Implement ``semver('1.2.3').major()``."""
    return _parsed(value).major


def minor(value: Tagged) -> int:
    """Implement ``semver('1.2.3').minor()``."""
    return _parsed(value).minor


def patch(value: Tagged) -> int:
    """Implement ``semver('1.2.3').patch()``."""
    return _parsed(value).patch


def compare(value: Tagged, other: Tagged) -> int:
    """Implement ``compareTo`` of two quantities, or of two versions: -1, 0 or 1."""
    if "semver" in value:
        return _parsed(value).compare(_parsed(other))
    amount, than = _amount(value), _amount(other)
    return (amount > than) - (amount < than)


def is_greater(value: Tagged, other: Tagged) -> bool:
    """Implement ``isGreaterThan``."""
    return compare(value, other) > 0


def is_less(value: Tagged, other: Tagged) -> bool:
    """Implement ``isLessThan``."""
    return compare(value, other) < 0
