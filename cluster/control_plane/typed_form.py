"""The form a built-in object has once an API server written in Go has read it: what is printed, left out, rewritten.

Reading JSON into Go structs and printing it again is not nothing. Fields that no struct declares are gone, nulls and
empty values of optional fields are left out, structs held by value are printed even when empty, and quantities come out
canonical. Objects are kept in this form, so that comparing them finds changes of meaning only.

Sources: ``encoding/json``'s omitempty, ``list_types.json`` (what a struct prints when zero), and the canonical form of
``resource.Quantity``.
"""

import re
from fractions import Fraction
from typing import Final

from wharfinger.cluster.control_plane.list_types import ListTypes, Relation, Scalar, has_texts_only
from wharfinger.formats.json_value import JsonObject, JsonValue

_QUANTITY: Final = re.compile(r"([+-]?)(\d{0,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = Fraction(1, 10**9)


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
        if name in lists.zero or name in lists.pointers or not _is_zero(form, inner):
            formed[name] = form
    for name, value in lists.zero.items():
        if name not in formed:
            formed[name] = _form(value, lists.field(name))
    return formed


def _form(value: JsonValue, lists: ListTypes) -> JsonValue:
    if lists.relation is Relation.UNKNOWN:
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


def canonical_quantity(value: JsonValue) -> JsonValue:
    """``0.5Gi`` → ``512Mi``, ``1000m`` → ``1``, ``1000`` → ``1k``, 2 → ``2``; what is no quantity comes back as it is.

    The format (binary, decimal, exponent) stays, the largest unit that leaves a whole number is taken, and what is
    finer than a nano is rounded up.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    match = _QUANTITY.fullmatch(str(value))
    if match is None or not (match[2] or match[3]):
        return value
    sign, whole, part, exponent, unit = match.groups()
    number = Fraction(int((whole or "") + (part or "")), 10 ** len(part or ""))
    unit = unit or ""
    binary = unit.endswith("i")
    scale = Fraction(1024) ** _BINARY.index(unit) if binary else Fraction(10) ** int(exponent or _DECIMAL[unit])
    amount = _at_least_nano(number * scale)
    text = _binary(amount) if binary and amount.denominator == 1 and amount >= 1024 else _decimal(amount, exponent)
    return f"-{text}" if sign == "-" and amount else text


def _at_least_nano(amount: Fraction) -> Fraction:
    """Rounded up to a whole number of nanos."""
    nanos = amount / _NANO
    return -(-nanos.numerator // nanos.denominator) * _NANO


def _binary(amount: Fraction) -> str:
    power = 0
    while amount.numerator % 1024 == 0 and power < len(_BINARY) - 1:
        amount /= 1024
        power += 1
    return f"{amount}{_BINARY[power]}"


def _decimal(amount: Fraction, exponent: str | None) -> str:
    power = -9
    while amount and power < 18 and (amount / Fraction(10) ** (power + 3)).denominator == 1:
        power += 3
    if not amount:
        return "0"
    mantissa = amount / Fraction(10) ** power
    if exponent is not None:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{next(unit for unit, at in _DECIMAL.items() if at == power)}"
