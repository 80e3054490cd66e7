"""Durations as Go writes and reads them (``time.ParseDuration``, ``Duration.String``): ``1h30m``, ``2.5s``, ``300ms``.

Kubernetes objects, hook settings and ``@every`` schedules use this format. A duration is a sequence of decimal numbers, each with
a unit. The units are ns, us (µs with either of Unicode's two letters mu), ms, s, m, h; there are no days and weeks, because
they vary in length. A bare ``0`` needs no unit. Text that Go refuses is refused here, too: a duration of more nanoseconds than
fit into 64 bits (about 292 years), white space, and a number without a unit.

A :class:`~datetime.timedelta` counts microseconds, so finer parts are cut off, toward zero. Pure.
"""

import re
from datetime import timedelta
from typing import Final

from wharfinger.formats.errors import FormatError

MAX_CHARACTERS: Final = 128
_MAX_NS: Final = 2**63 - 1
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
}
_BARE: Final = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_TERM: Final = re.compile("(?P<whole>[0-9]*)(?:\\.(?P<part>[0-9]*))?(?P<unit>[^0-9.]*)")


class DurationError(FormatError):
    """A text is not a valid duration. The message quotes the text unless it is too long."""


def parse_duration(text: str, *, negative: bool = False) -> timedelta:
    """Read a duration. Raises DurationError, also for a negative duration unless ``negative`` is set."""
    if len(text) > MAX_CHARACTERS:
        raise DurationError(f"a duration of {len(text)} characters is over the limit of {MAX_CHARACTERS}")
    below = text.startswith("-")
    rest = text[1:] if below or text.startswith("+") else text
    nanoseconds = 0 if rest == "0" else _nanoseconds(rest, text)
    if nanoseconds > _MAX_NS + below:
        raise DurationError(f"duration {text!r}: over the limit of 64 bits of nanoseconds (about 292 years)")
    if below and nanoseconds and not negative:
        raise DurationError(f"duration {text!r}: it must not be negative")
    length = timedelta(microseconds=nanoseconds // 1000)
    return -length if below else length


def parse_time_limit(text: str) -> float:
    """Return the seconds that the value of an option such as ``--timeout`` stands for.

    The value is a duration (``90s``, ``1h30m``) or a bare number of seconds. Raises DurationError.
    """
    return parse_duration(f"{text}s" if _BARE.fullmatch(text) else text).total_seconds()


def _nanoseconds(rest: str, text: str) -> int:
    if not rest:
        raise DurationError(f"duration {text!r}: it has no number; write one like 1h30m or 500ms")
    total = position = 0
    while position < len(rest):
        term = _TERM.match(rest, position)
        if term is None or not (term["whole"] or term["part"]):
            raise DurationError(f"duration {text!r}: expected a number at {rest[position:]!r}")
        if term["unit"] not in _UNITS:
            what = f"unknown unit {term['unit']!r}" if term["unit"] else f"no unit after {term[0]!r}"
            raise DurationError(f"duration {text!r}: {what}; the units are ns, us, ms, s, m, h")
        unit, part = _UNITS[term["unit"]], term["part"] or "0"
        total += int(term["whole"] or "0") * unit + int(part) * unit // 10 ** len(part)
        position = term.end()
    return total


def format_duration(duration: timedelta) -> str:
    """Format a duration as Go prints it: ``1h0m0s``, ``1.5s``, ``20ms``, ``0s``.

    Below a second, the unit is the largest one in which the number is at least 1.
    """
    microseconds = duration // timedelta(microseconds=1)
    sign = "-" if microseconds < 0 else ""
    microseconds = abs(microseconds)
    if microseconds == 0:
        return "0s"
    if microseconds < 1_000:
        return f"{sign}{microseconds}\u00b5s"
    if microseconds < 1_000_000:
        return f"{sign}{_decimal(microseconds, 1_000)}ms"
    minutes, rest = divmod(microseconds, 60_000_000)
    seconds = f"{_decimal(rest, 1_000_000)}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(value: int, unit: int) -> str:
    """Return ``value / unit`` exactly, without trailing zeros; ``unit`` is a power of ten."""
    whole, part = divmod(value, unit)
    return f"{whole}.{part:0{len(str(unit)) - 1}d}".rstrip("0").rstrip(".") if part else str(whole)
