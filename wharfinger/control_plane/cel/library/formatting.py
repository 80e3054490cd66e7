"""The function ``format``: ``'%s is %d'.format([…])``."""

import math
from collections.abc import Iterable
from typing import Final

from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values import times as moments
from wharfinger.control_plane.cel.values.objects import ObjectView
from wharfinger.control_plane.cel.values.values import (
    CelError,
    CelMap,
    Duration,
    Timestamp,
    TypeValue,
    Value,
    type_name,
)
from wharfinger.control_plane.wire.go_numbers import go_float

_LONGEST: Final = 1024 * 1024


def formatted(template: Value, values: Value) -> Value:
    """Return the template with its clauses replaced by the formatted values. Raises CelError."""
    items = operations.as_items(values)
    if not isinstance(template, str) or items is None:
        raise CelError(operations.NO_OVERLOAD)
    given, used, out, at = list(items), 0, list[str](), 0
    while at < len(template):
        mark = template.find("%", at)
        if mark < 0:
            out.append(template[at:])
            break
        out.append(template[at:mark])
        if template.startswith("%%", mark):
            out.append("%")
            at = mark + 2
            continue
        clause, precision, at = _clause(template, mark + 1)
        if used >= len(given):
            raise CelError(f"index {used} out of range")
        out.append(_one(clause, precision, given[used]))
        used += 1
        if sum(map(len, out)) > _LONGEST:
            raise CelError("format: the result is too long")
    return "".join(out)


def _clause(template: str, at: int) -> tuple[str, int | None, int]:
    precision: int | None = None
    if template.startswith(".", at):
        end = at + 1
        while end < len(template) and "0" <= template[end] <= "9":
            end += 1
        precision = min(int(template[at + 1 : end][:400] or "0"), 100)
        at = end
    if at >= len(template):
        raise CelError("could not parse formatting clause: unexpected end of string")
    return template[at], precision, at + 1


def _one(clause: str, precision: int | None, value: Value) -> str:
    if clause == "s":
        return shown(value)
    if clause == "d":
        return _decimal(value)
    if clause in "fe":
        return _floating(clause, 6 if precision is None else precision, value)
    if clause in "xXob":
        return _based(clause, value)
    raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')


def _wrong_type(what: str, value: Value) -> CelError:
    return CelError(f"error during formatting: {what} clause can only be used on numbers, was given {type_name(value)}")


def _decimal(value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _special(value)
    raise CelError(
        f"error during formatting: decimal clause can only be used on integers, was given {type_name(value)}"
    )


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _floating(clause: str, precision: int, value: Value) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        name = "fixed-point" if clause == "f" else "scientific"
        raise CelError(
            f"error during formatting: {name} clause can only be used on doubles, was given {type_name(value)}"
        )
    number = float(value)
    return f"{number:.{precision}{clause}}" if math.isfinite(number) else _special(number)


def _based(clause: str, value: Value) -> str:
    if isinstance(value, bool) and clause == "b":
        return "1" if value else "0"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):{clause}}"
    if isinstance(value, str | bytes) and clause in "xX":
        data = value.encode() if isinstance(value, str) else value
        return data.hex() if clause == "x" else data.hex().upper()
    raise _wrong_type(
        "only integers, byte buffers, and strings can be formatted as hex; the" if clause in "xX" else clause, value
    )


def shown(value: Value) -> str:
    """Return a value as the format ``%s`` shows it. Raises CelError."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return go_float(value) if math.isfinite(value) else _special(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Duration):
        return moments.format_duration(value.nanoseconds)
    if isinstance(value, Timestamp):
        return moments.format_time(value.nanoseconds)
    if isinstance(value, TypeValue):
        return value.name
    items = operations.as_items(value)
    if items is not None:
        return f"[{_listed(items)}]"
    if isinstance(value, CelMap | ObjectView):
        pairs = sorted(f"{shown(key)}: {shown(value.find(key)[1])}" for key in value.keys())  # noqa: SIM118 - not a Python mapping
        return "{" + ", ".join(pairs) + "}"
    raise CelError(
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
        f"durations, and timestamps, was given {type_name(value)}"
    )


def _listed(items: Iterable[Value]) -> str:
    return ", ".join(map(shown, items))
