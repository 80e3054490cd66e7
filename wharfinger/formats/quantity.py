"""A parser for amounts of resources (``resource.Quantity``): ``500m``, ``1Gi``, ``2e3``, as exact numbers."""

import re
from fractions import Fraction
from typing import Final

from wharfinger.formats.json.value import JsonValue

QUANTITY: Final = re.compile(
    r"([+-]?)([0-9]{0,400})(?:\.([0-9]{0,400}))?(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)"
)
"""The pattern of a quantity: sign, digits before and after the point, and an exponent or a unit. All parts are optional."""
DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""The power of ten of each decimal unit."""
BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def parse_quantity(value: JsonValue) -> Fraction | None:
    """Return the number of a quantity; None for a value that is not a quantity."""
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
