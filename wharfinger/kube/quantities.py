"""Quantities of resources (apimachinery's ``resource.Quantity``), rounded and written in canonical form as Go does it."""

import math
import re
from fractions import Fraction
from typing import Final

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.quantity import BINARY, DECIMAL, QUANTITY, parse_quantity

_EXPONENT: Final = re.compile("[eE][+-]?[0-9]")
_INT64: Final = range(-(2**63), 2**63)
ZERO: Final = Fraction(0)
_NANO: Final = Fraction(1, 10**9)
MILLI: Final = Fraction(1, 10**3)
_MOST: Final = 2**63 - 1
"""The largest amount of a quantity with a binary unit, such as ``Ki``; a larger amount is replaced by this one."""
_FAST_DIGITS: Final = 18
"""The largest number of digits for which the server uses a 64-bit integer, and may keep a spelling that is not canonical."""
_FAST_BINARY_DIGITS: Final = 14


def amount(value: JsonValue) -> Fraction:
    """Return the number of a quantity; 0 for a value that is not a quantity."""
    return parse_quantity(value) or ZERO


def whole(value: JsonValue) -> int:
    """Return a quantity as an integer, rounded up (Go's ``Value``)."""
    return math.ceil(amount(value))


def is_whole(value: JsonValue) -> bool:
    """Return whether a quantity, rounded up to thousandths, is an integer (Go's ``MilliValue() % 1000 == 0``).

    If the number of thousandths exceeds 64 bits, a binary quantity wraps around, so the result is seldom True. A decimal quantity
    then counts as 0, so the result is True.
    """
    thousandths = math.ceil(amount(value) * 1000)
    if thousandths not in _INT64:
        return not str(value).endswith("i") or ((thousandths + 2**63) % 2**64 - 2**63) % 1000 == 0
    return thousandths % 1000 == 0


def format_quantity(number: Fraction, like: JsonValue) -> str:
    """Return a number as a canonical quantity, in the format (binary, decimal or with an exponent) of another quantity."""
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


def canonical_quantity(value: JsonValue, *, finest: Fraction = _NANO) -> JsonValue:
    """Return a quantity in canonical form: ``0.5Gi`` → ``512Mi``, ``1000m`` → ``1``, ``1000`` → ``1k``, 2 → ``2``.

    A value that is not a quantity is returned unchanged, and so are some short quantities with a sign ``+`` or leading zeros,
    as in Go. The format (binary, decimal, exponent) is kept. The unit is the largest one that leaves a whole number. Any part
    finer than a nano (or than ``finest``) is rounded up.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = str(value)
    match = QUANTITY.fullmatch(text)
    if match is None or not text:
        return value
    sign, whole, part, exponent, unit = match.groups()
    part, unit = part or "", unit or ""
    binary = unit.endswith("i")
    power = BINARY.index(unit) if binary else int(exponent or DECIMAL[unit])
    if _keeps_spelling(whole.lstrip("0"), part, power, binary=binary, finest=finest):
        return text
    number = Fraction(int(whole + part or "0"), 10 ** len(part)) * Fraction(1024 if binary else 10) ** power
    amount = _rounded_up(number, finest)
    if binary:
        amount = min(amount, Fraction(_MOST))
    text = _binary(amount) if binary and amount.denominator == 1 and amount >= 1024 else _decimal(amount, exponent)
    return f"-{text}" if sign == "-" and amount else text


def _keeps_spelling(whole: str, part: str, power: int, *, binary: bool, finest: Fraction) -> bool:
    """Return whether Go's ParseQuantity keeps a quantity as it is spelled, including its sign, leading zeros and exponent."""
    digits = (whole or "0") + part
    if binary:
        return not part and len(digits) + 3 * power <= _FAST_BINARY_DIGITS and int(digits) % 8 != 0
    scale = power - len(part)
    if len(digits) > _FAST_DIGITS or scale % 3 or scale < (-3 if finest == MILLI else -9):
        return False
    return not digits.endswith("000") and digits[0] != "0"


def _rounded_up(amount: Fraction, unit: Fraction) -> Fraction:
    """Return the amount rounded up to a whole number of units."""
    units = amount / unit
    return -(-units.numerator // units.denominator) * unit


def _binary(amount: Fraction) -> str:
    power = 0
    while amount.numerator % 1024 == 0 and power < len(BINARY) - 1:
        amount /= 1024
        power += 1
    return f"{amount}{BINARY[power]}"


def _decimal(amount: Fraction, exponent: str | None) -> str:
    power = -9
    while amount and (amount / Fraction(10) ** (power + 3)).denominator == 1:
        power += 3
    if not amount:
        return "0"
    mantissa = amount / Fraction(10) ** power
    if exponent is not None:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{next((unit for unit, at in DECIMAL.items() if at == power), '')}"  # no unit beyond E, as in Go
