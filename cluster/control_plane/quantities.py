"""Amounts of resources (``resource.Quantity``): ``500m``, ``1Gi``, ``2e3``, as exact numbers."""

import math
import re
from fractions import Fraction
from typing import Final

from wharfinger.formats.json_value import JsonValue

_QUANTITY: Final = re.compile(r"([+-]?)(\d{0,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
ZERO: Final = Fraction(0)


def parse_quantity(value: JsonValue) -> Fraction | None:
    """The number that a quantity says; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None or not (match[2] or match[3]):
        return None
    sign, whole, part, exponent, unit = match.groups()
    number = Fraction(int((whole or "") + (part or "")), 10 ** len(part or ""))
    if unit and unit.endswith("i"):
        number *= 1024 ** _BINARY.index(unit)
    else:
        number *= Fraction(10) ** int(exponent or _DECIMAL[unit or ""])
    return -number if sign == "-" else number


def amount(value: JsonValue) -> Fraction:
    """The number that a quantity says; 0 for what is none."""
    return parse_quantity(value) or ZERO


def whole(value: JsonValue) -> int:
    """A quantity as an integer, rounded up (Go's ``Value``)."""
    return math.ceil(amount(value))


def is_whole(value: JsonValue) -> bool:
    """Whether a quantity, rounded up to thousandths, is an integer (Go's ``MilliValue() % 1000 == 0``)."""
    return math.ceil(amount(value) * 1000) % 1000 == 0


def format_quantity(number: Fraction, like: JsonValue) -> str:
    """A number as a canonical quantity, in the format (binary or decimal) of another quantity."""
    sign, number = ("-", -number) if number < 0 else ("", number)
    power = 0
    if str(like).endswith("i") and number.denominator == 1 and number >= 1024:
        while number.numerator % 1024 == 0 and power < len(_BINARY) - 1:
            number, power = number / 1024, power + 1
        return f"{sign}{number}{_BINARY[power]}"
    scaled, unit = math.ceil(number * 10**9), -9
    while scaled and scaled % 1000 == 0 and unit < 18:
        scaled, unit = scaled // 1000, unit + 3
    return f"{sign}{scaled}{next(name for name, at in _DECIMAL.items() if at == unit)}" if scaled else "0"
