"""Numbers as in Go: integers are int64, all other numbers are float64, and both are printed in Go's format."""

import json
import math
from typing import Final, TypeGuard

from wharfinger.formats.json.value import JsonValue

_EPSILON: Final = 1e-9
_EXPONENT: Final = 6
"""The power of ten from which floats are printed with an exponent."""
_LARGEST: Final = float(2**53 - 1)


def native(value: JsonValue) -> JsonValue:
    """Return a value as Go reads it: an integer beyond 64 bits becomes a float, other values are unchanged."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return value


def is_float(value: JsonValue) -> TypeGuard[float]:
    """Return whether Go holds a value as a float64."""
    return isinstance(value, float)


def is_whole(value: float) -> bool:
    """Return whether a float is an integer in JSON, within the precision of floats."""
    if not math.isfinite(value) or abs(value) > _LARGEST:
        return False
    whole = math.trunc(value)
    return value == whole or (whole != 0 and abs(value - whole) / (abs(value) + abs(whole)) < _EPSILON)


def is_multiple(value: float, factor: float) -> bool:
    """Return whether a number is a multiple of ``factor``, which must be positive."""
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return is_whole(value / factor if factor >= 1 else 1 / factor * value)


def go_float(value: float) -> str:
    """Return a float in the format of Go's ``%v``, such as ``1e+06``: the shortest text that parses to the same float."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    shortest = next(text for text in (f"{value:.{count}e}" for count in range(18)) if float(text) == value)
    digits, _, exponent = shortest.partition("e")
    power = int(exponent)
    if -4 <= power < _EXPONENT:
        return f"{value:.{max(0, len(digits.replace('.', '').lstrip('-')) - 1 - power)}f}"
    return f"{digits}e{'-' if power < 0 else '+'}{abs(power):02d}"


def go_number(value: JsonValue) -> str:
    """Return a number as errors show it."""
    return go_float(value) if isinstance(value, float) else json.dumps(value)
