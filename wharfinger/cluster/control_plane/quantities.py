"""Amounts of resources (``resource.Quantity``): ``500m``, ``1Gi``, ``2e3``, as exact numbers."""

import math
import re
from fractions import Fraction
from typing import Final

from wharfinger.formats.json_value import JsonValue

QUANTITY: Final = re.compile(
    r"([+-]?)([0-9]{0,400})(?:\.([0-9]{0,400}))?(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)"
)
"""Sign, digits before and behind the point, exponent, unit: one that has no digits says 0."""
DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""The unit's power of ten."""
BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT: Final = re.compile("[eE][+-]?[0-9]")
_INT64: Final = range(-(2**63), 2**63)
ZERO: Final = Fraction(0)


def parse_quantity(value: JsonValue) -> Fraction | None:
    """The number that a quantity says; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = QUANTITY.fullmatch(str(value))
    if match is None or not (match[2] or match[3]):
        return None
    sign, whole, part, exponent, unit = match.groups()
    number = Fraction(int((whole or "") + (part or "")), 10 ** len(part or ""))
    if unit and unit.endswith("i"):
        number *= 1024 ** BINARY.index(unit)
    else:
        number *= Fraction(10) ** int(exponent or DECIMAL[unit or ""])
    return -number if sign == "-" else number


def amount(value: JsonValue) -> Fraction:
    """The number that a quantity says; 0 for what is none."""
    return parse_quantity(value) or ZERO


def whole(value: JsonValue) -> int:
    """A quantity as an integer, rounded up (Go's ``Value``)."""
    return math.ceil(amount(value))


def is_whole(value: JsonValue) -> bool:
    """Whether a quantity, rounded up to thousandths, is an integer (Go's ``MilliValue() % 1000 == 0``).

    Beyond 64 bits of thousandths, a binary one wraps around and seldom is, a decimal one counts as 0.
    """
    thousandths = math.ceil(amount(value) * 1000)
    if thousandths not in _INT64:
        return not str(value).endswith("i") or ((thousandths + 2**63) % 2**64 - 2**63) % 1000 == 0
    return thousandths % 1000 == 0


def format_quantity(number: Fraction, like: JsonValue) -> str:
    """A number as a canonical quantity, in the format (binary, decimal or with an exponent) of another quantity."""
    sign, number = ("-", -number) if number < 0 else ("", number)
    power = 0
    if str(like).endswith("i") and number.denominator == 1 and number >= 1024:
        while number.numerator % 1024 == 0 and power < len(BINARY) - 1:
            number, power = number / 1024, power + 1
        return f"{sign}{number}{BINARY[power]}"
    scaled, unit = math.ceil(number * 10**9), -9
    while scaled and scaled % 1000 == 0 and unit < 18:
        scaled, unit = scaled // 1000, unit + 3
    if not scaled:
        return "0"
    if _EXPONENT.search(str(like)):
        return f"{sign}{scaled}e{unit}" if unit else f"{sign}{scaled}"
    return f"{sign}{scaled}{next(name for name, at in DECIMAL.items() if at == unit)}"
