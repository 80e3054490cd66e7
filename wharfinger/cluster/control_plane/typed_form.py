"""The form a built-in object has once an API server written in Go has read it: what is printed, left out, rewritten.

Reading JSON into Go structs and printing it again is not nothing. Fields that no struct declares are gone, nulls and
empty values of optional fields are left out, structs held by value are printed even when empty, and quantities come out
canonical. Objects are kept in this form, so that comparing them finds changes of meaning only.

Sources: ``encoding/json``'s omitempty, ``list_types.json`` (what a struct prints when zero), and the canonical form of
``resource.Quantity``.
"""

from fractions import Fraction
from typing import Final

from wharfinger.cluster.control_plane.list_types import ListTypes, Relation, Scalar, has_texts_only, schema_types
from wharfinger.cluster.control_plane.quantities import BINARY, DECIMAL, QUANTITY
from wharfinger.formats.json_value import JsonObject, JsonValue

_NANO: Final = Fraction(1, 10**9)
_MILLI: Final = Fraction(1, 10**3)
_MOST: Final = 2**63 - 1
"""The largest amount in a unit of the binary ones."""
_FAST_DIGITS: Final = 18
"""Of a number that is held as 64 bits, and as it was spelled where that is canonical enough."""
_FAST_BINARY_DIGITS: Final = 14
_AMOUNTS: Final = "v1.ResourceList"
_UNROUNDED: Final = "v1.Overhead"
"""What holds amounts of resources whose kind has no defaults, so that nothing rounds them."""


def typed_form(obj: JsonObject, lists: ListTypes) -> JsonObject:
    """A copy of an object as its Go type prints it; ``lists`` of a custom kind only shapes its metadata."""
    return _struct_form(obj, lists)


def _struct_form(obj: JsonObject, lists: ListTypes) -> JsonObject:
    formed: JsonObject = {}
    plain = lists.plain_fields
    for name, value in obj.items():
        if type(value) is str and name in plain:  # most of what there is
            if value or plain[name]:
                formed[name] = value
            continue
        if value is None or not lists.declares(name):
            continue
        inner = lists.field(name)
        form = _form(value, inner)
        if inner.go_type == _AMOUNTS and lists.go_type != _UNROUNDED and isinstance(form, dict):
            form = {resource: _in_milli(amount) for resource, amount in form.items()}
        if name in lists.zero or name in lists.pointers or not _is_zero(form, inner):
            formed[name] = form
    for name, value in lists.zero.items():
        if name not in formed:
            formed[name] = _form(value, lists.field(name))
    return formed


def _form(value: JsonValue, lists: ListTypes) -> JsonValue:
    if lists.relation is Relation.UNKNOWN:
        if lists.scalar is not Scalar.ANY and isinstance(value, dict):
            return _struct_form(value, schema_types())
        return value
    if lists.relation is Relation.QUANTITY:
        return canonical_quantity(value)
    if isinstance(value, list):
        return [_form(item, lists.item) for item in value]
    if isinstance(value, dict):
        if lists.fields or lists.zero:
            return _struct_form(value, lists)
        of_texts = lists.element is not None and lists.element.scalar is Scalar.STRING
        if of_texts and has_texts_only(value):
            return dict(value)
        return {
            name: "" if item is None and of_texts else _form(item, lists.field(name)) for name, item in value.items()
        }
    return value


def _is_zero(value: JsonValue, lists: ListTypes) -> bool:
    """Whether ``omitempty`` leaves the value out; an empty struct that is set is held by pointer, and stays."""
    if isinstance(value, dict):
        return not value and lists.relation in {Relation.MAP, Relation.ATOMIC_MAP} and not lists.fields
    return lists.relation is not Relation.UNKNOWN and not value


def _in_milli(amount: JsonValue) -> JsonValue:
    """An amount of a resource in its canonical form, rounded up to thousandths."""
    is_finer = isinstance(amount, str) and (amount.endswith(("n", "u")) or "." in amount or "e-" in amount.lower())
    return canonical_quantity(amount, finest=_MILLI) if is_finer else amount


def canonical_quantity(value: JsonValue, *, finest: Fraction = _NANO) -> JsonValue:
    """``0.5Gi`` → ``512Mi``, ``1000m`` → ``1``, ``1000`` → ``1k``, 2 → ``2``; what is no quantity comes back as it is.

    The format (binary, decimal, exponent) stays, the largest unit that leaves a whole number is taken, and what is
    finer than a nano (or what is said) is rounded up.
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
    if _stays(whole.lstrip("0"), part, power, binary=binary, finest=finest):
        return text
    number = Fraction(int(whole + part or "0"), 10 ** len(part)) * Fraction(1024 if binary else 10) ** power
    amount = _rounded_up(number, finest)
    if binary:
        amount = min(amount, Fraction(_MOST))
    text = _binary(amount) if binary and amount.denominator == 1 and amount >= 1024 else _decimal(amount, exponent)
    return f"-{text}" if sign == "-" and amount else text


def _stays(whole: str, part: str, power: int, *, binary: bool, finest: Fraction) -> bool:
    """Whether a quantity stays as it is spelled, sign, leading zeros and exponent included, as ParseQuantity has it."""
    digits = (whole or "0") + part
    if binary:
        return not part and len(digits) + 3 * power <= _FAST_BINARY_DIGITS and int(digits) % 8 != 0
    scale = power - len(part)
    if len(digits) > _FAST_DIGITS or scale % 3 or scale < (-3 if finest == _MILLI else -9):
        return False
    return not digits.endswith("000") and digits[0] != "0"


def _rounded_up(amount: Fraction, unit: Fraction) -> Fraction:
    """Rounded up to a whole number of units."""
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
    return f"{mantissa}{next((unit for unit, at in DECIMAL.items() if at == power), '')}"  # beyond E none, as in Go
