"""Durations and timestamps in nanoseconds, in Go's text formats."""

import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_WORDS: Final = (
    ("nano", 1), ("micro", 1000), ("milli", 1_000_000), ("sec", SECOND), ("min", 60 * SECOND), ("hour", 3600 * SECOND),
    ("day", 86400 * SECOND), ("week", 7 * 86400 * SECOND),
)  # fmt: skip
_SHORT: Final = {**_UNITS, "hr": 3600 * SECOND, "d": 86400 * SECOND, "w": 7 * 86400 * SECOND, "wk": 7 * 86400 * SECOND}
_DURATION: Final = re.compile(r"([-+]?)((?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|0)")
_PART: Final = re.compile(r"([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)")
_WORD: Final = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)", re.ASCII)
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
LARGEST: Final = 2**63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str, *, words: bool = False) -> int:
    """Parse ``1h30m`` to nanoseconds; with ``words`` also ``3 days``. Raises ValueError."""
    found = _DURATION.fullmatch(text) if len(text) < 200 else None
    if found is not None:
        total = sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(found[2])), Fraction(0))
        whole = int(total)
        if whole >= LARGEST:
            raise ValueError(f'time: invalid duration "{text}"')
        return -whole if found[1] == "-" else whole
    total_words = None
    for number, unit in _WORD.findall(text) if words and len(text) < 200 else ():
        factor = _SHORT.get(unit.lower()) or next(
            (size for word, size in _WORDS if unit.lower().startswith(word)), None
        )
        if factor is None and unit.lower().startswith("s"):
            factor = SECOND
        if factor is not None:
            total_words = (total_words or 0) + int(number) * factor
    if total_words is None:
        raise ValueError(f"unable to parse {text} as duration")
    return total_words


def format_duration(nanoseconds: int) -> str:
    """Format a duration in seconds, as CEL does: ``90s``, ``1.5s``."""
    sign, value = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    whole, rest = divmod(value, SECOND)
    return f"{sign}{whole}{f'.{rest:09d}'.rstrip('0') if rest else ''}s"


def parse_date_time(text: str, *, date: bool = False) -> int:
    """Parse an RFC 3339 timestamp to nanoseconds since 1970. Raises ValueError."""
    found = _TIME.fullmatch(f"{text}T00:00:00Z" if date else text.upper().replace(" ", "?"))
    if found is None:
        raise ValueError(f'parsing time "{text}"')
    year, month, day, hour, minute, second = (int(found[index]) for index in range(1, 7))
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    seconds = int((moment - _EPOCH).total_seconds())
    if found[8] != "Z":
        hours, minutes = found[8][1:].split(":")
        offset = int(hours) * 3600 + int(minutes) * 60
        seconds += offset if found[8][0] == "-" else -offset
    return seconds * SECOND + int((found[7] or "").ljust(9, "0")[:9] or "0")


def format_time(nanoseconds: int) -> str:
    """Format a timestamp by RFC 3339, in UTC."""
    whole, rest = divmod(nanoseconds, SECOND)
    text = datetime.fromtimestamp(whole, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text.rjust(19, '0')}{f'.{rest:09d}'.rstrip('0') if rest else ''}Z"
