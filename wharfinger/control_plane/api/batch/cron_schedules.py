"""The validation of CronJob schedules and time zone names, with the messages of the parser that Kubernetes uses.

The format is the one of ``robfig/cron`` (five fields, or ``@daily`` and the like, or ``@every 1h30m``). The errors have the
words of that parser and of Go's number parser, because kube-apiserver's refusals contain them verbatim.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.kube.times import zone_of

_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY: Final = "@every "
_MAX_INT: Final = 2**63 - 1
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DURATION_PART: Final = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)")
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_GO_SPACES: Final = re.compile(r"[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


class ScheduleError(Exception):
    """The schedule cannot be read."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_FIELDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def schedule_problem(schedule: str) -> str:
    """Return the reason why a schedule cannot be read, or ""."""
    try:
        _check(schedule)
    except ScheduleError as error:
        return str(error)
    return ""


def _check(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, space, rest = schedule.partition("=")[2].partition(" ")
        if not space:
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        if problem := zone_problem(zone):
            raise ScheduleError(f"provided bad location {zone}: {problem}")
        schedule = rest.strip()
    if schedule.startswith("@"):
        _check_descriptor(schedule)
        return
    fields = [part for part in _GO_SPACES.split(schedule) if part]
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, bounds in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, text.split(",")):
            _check_range(expression, bounds)


def _check_descriptor(schedule: str) -> None:
    if schedule in _DESCRIPTORS:
        return
    if not schedule.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {schedule}")
    if problem := duration_problem(schedule.removeprefix(_EVERY)):
        raise ScheduleError(f"failed to parse duration {schedule}: {problem}")


def _check_range(expression: str, bounds: _Bounds) -> None:
    span, *steps = expression.split("/")
    low, *high = span.split("-")
    if low in {"*", "?"}:
        start, end = bounds.low, bounds.high
    else:
        start = end = _named(low, bounds)
        if len(high) > 1:
            raise ScheduleError(f"too many hyphens: {expression}")
        if high:
            end = _named(high[0], bounds)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {expression}")
    step = _number(steps[0]) if steps else 1
    if steps and not high:
        end = bounds.high
    if start < bounds.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {expression}")


def _named(text: str, bounds: _Bounds) -> int:
    found = bounds.names.get(text.lower())
    return _number(text) if found is None else found


def _number(text: str) -> int:
    if problem := integer_problem(text):
        raise ScheduleError(f"failed to parse int from {text}: {problem}")
    value = int(text)
    if value < 0:
        raise ScheduleError(f"negative number ({value}) not allowed: {text}")
    return value


def integer_problem(text: str, function: str = "Atoi") -> str:
    """Return the reason why Go's ``strconv`` does not read a text as a number of 64 bits, or ""."""
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return f"strconv.{function}: parsing {quoted(text)}: invalid syntax"
    if len(text) > 40 or not -_MAX_INT - 1 <= int(text) <= _MAX_INT:
        return f"strconv.{function}: parsing {quoted(text)}: value out of range"
    return ""


def duration_problem(text: str) -> str:
    """Return the reason why Go's ``time.ParseDuration`` does not read a text such as ``1h30m``, or ""."""
    invalid = f"time: invalid duration {quoted(text)}"
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return ""
    if not rest:
        return invalid
    total = 0
    while rest:
        match = _DURATION_PART.match(rest)
        if match is None or not (match[1] or (match[2] or "").strip(".")):
            return invalid
        unit = match[3]
        if not unit:
            return f"time: missing unit in duration {quoted(text)}"
        if unit not in _UNITS:
            return f"time: unknown unit {quoted(unit)} in duration {quoted(text)}"
        if len(match[1]) > 30:
            return invalid
        fraction = (match[2] or ".")[1:31]
        total += int(match[1] or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
        if total > _MAX_INT:
            return invalid
        rest = rest[match.end() :]
    return ""


def zone_problem(zone: str) -> str:
    """Return the reason why a time zone is unknown, or ""; ``UTC``, ``Local`` and the zones of the tz database are known."""
    if zone in {"", "UTC", "Local"}:
        return ""
    if ".." in zone or zone.startswith(("/", "\\")):
        return "time: invalid location name"
    return "" if zone_of(zone) is not None else f"unknown time zone {zone}"
