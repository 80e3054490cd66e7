"""Schedules of hooks in the crontab dialect of the Go library robfig/cron v2.

This module reads no clock: the caller passes in the time.

A schedule has five fields (minute, hour, day of month, month, day of week), or six with seconds first. A field may contain ``*``,
``?``, lists, ranges, steps, and names of months and days. Sunday may be 7 as well. The words ``@hourly``, ``@daily`` or
``@midnight``, ``@weekly``, ``@monthly``, ``@yearly`` or ``@annually``, and ``@every 1h30m`` are allowed in place of the fields. A
time zone may come first, as ``TZ=Area/City`` or ``CRON_TZ=Area/City``. A step of 0 and a date that does not exist
(``0 0 31 2 *``) are refused when the schedule is read.

**Days.** If both day fields are restricted, a day has to match only one of them: ``0 0 13 * 5`` is every Friday and every 13th.
A field that starts with ``*`` does not count as restricted, even with a step: ``0 0 */2 * 1`` is every Monday whose day of the
month is odd.

**Clock changes.** If the hour field is not ``*``, the schedule means wall-clock times. If a time does not exist because the
clock goes forward, the hook runs at the first moment after the gap, and only once, even if several times are in the gap. If a
time occurs twice because the clock goes back, the hook runs at the first of the two. If the hour field is ``*``, the schedule
means every hour that really passes. Times that the clock skips have no run. If the clock repeats an hour (on Lord Howe Island,
half an hour), the hook runs in both passes.

**@every** counts from the moment that the caller gives, which should be the time of the last run: ``next_after(moment)`` is one
interval later. The interval is cut to whole seconds, and is at least one second.

croniter does the calendar's arithmetic. The grammar is this module's own, because croniter also accepts random and hashed fields,
years, and ranges that run backwards. Pure, except that a zone's name is looked up when a schedule is read.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter

from wharfinger.formats.duration import DurationError, parse_duration
from wharfinger.formats.errors import FormatError

MAX_CHARACTERS: Final = 256
_MAX_YEARS: Final = 50
"""The number of years in which the next match is searched. 29 February on a certain day of the week may be forty years away,
because 2100 is not a leap year."""
_SECOND: Final = timedelta(seconds=1)
_PROBE: Final = datetime(2000, 1, 1, tzinfo=UTC)

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(?P<name>\S*)\s*(?P<rest>.*)", re.ASCII | re.DOTALL)
_ITEM: Final = re.compile(r"(?:[*?]|(?P<low>\w{1,3})(?:-(?P<high>\w{1,3}))?)(?:/(?P<step>[0-9]{1,3}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the six fields of a crontab: its name, its range of numbers, and the words that may replace numbers."""

    name: str
    lowest: int
    highest: int
    words: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        """Return the number that a text of digits or a word stands for. Raises ValueError with the reason."""
        if text.isdecimal():
            value = int(text)
        elif text.lower() in self.words:
            value = self.words.index(text.lower()) + self.lowest
        else:
            raise ValueError(f"{self.name}: {text!r} is neither a number nor a name")
        if not self.lowest <= value <= self.highest:
            raise ValueError(f"{self.name}: {value} is not between {self.lowest} and {self.highest}")
        return value


_FIELDS: Final = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)
_HOUR: Final = 2


class CronError(FormatError):
    """A text is not a valid schedule, or the schedule is never due. The message quotes the text unless it is too long."""


@dataclass(frozen=True, slots=True)
class _Calendar:
    """A schedule of six fields, in the notation that croniter reads."""

    expression: str
    hour_fixed: bool
    zone: tzinfo

    def after(self, moment: datetime) -> datetime:
        due = self._after_by_wall_clock(moment) if self.hour_fixed else self._after_by_elapsed_time(moment)
        return due.astimezone(self.zone)

    def _after_by_wall_clock(self, moment: datetime) -> datetime:
        due = self._match(moment, self.zone)
        while repeated := _repeated(due, self.zone):
            due = self._match(_last_repeated(due, repeated, self.zone), self.zone)
        return due

    def _after_by_elapsed_time(self, moment: datetime) -> datetime:
        """Return the next match. Search with a fixed offset from UTC; at a clock change, continue with the new offset.

        The hour field is ``*``, so a day that matches has matches in every hour, whatever the offset is. Therefore the search
        with one offset cannot miss such a day, even if the day is between two clock changes.
        """
        since, offset = moment, _offset(moment, self.zone)
        while True:
            due = self._match(moment, timezone(offset))
            if _offset(due, self.zone) == offset:
                return due
            since = _first_of_other_offset(since, due, offset, self.zone)
            moment, offset = since - _SECOND, _offset(since, self.zone)

    def _match(self, moment: datetime, zone: tzinfo) -> datetime:
        """Return the next match in a zone. Raises CroniterError if nothing matches for _MAX_YEARS."""
        found: datetime = croniter(
            self.expression,
            moment.astimezone(zone),
            second_at_beginning=True,
            implement_cron_bug=True,  # croniter's name for the rule about fields that start with `*`
            max_years_between_matches=_MAX_YEARS,
        ).get_next(datetime)
        return found.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class _Every:
    interval: timedelta
    zone: tzinfo

    def after(self, moment: datetime) -> datetime:
        return (moment.replace(microsecond=0) + self.interval).astimezone(self.zone)


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule; ``text`` is its original text."""

    text: str
    _rule: _Calendar | _Every = field(repr=False)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first due time after ``moment``, in the schedule's time zone. ``moment`` must have a time zone, too."""
        if moment.tzinfo is None:
            raise AssertionError("the moment must have a time zone")
        return self._rule.after(moment.astimezone(UTC))  # in other zones, an addition counts wall-clock hours

    def __str__(self) -> str:
        return self.text


def parse_cron(text: str, *, zone: tzinfo) -> Cron:
    """Read a schedule; ``zone`` is used if the schedule does not name a time zone itself. Raises CronError."""
    if len(text) > MAX_CHARACTERS:
        raise CronError(f"a schedule of {len(text)} characters is over the limit of {MAX_CHARACTERS}")
    rest = text
    if (found := _ZONE.fullmatch(text)) is not None:
        rest = found["rest"]
        zone = _named_zone(found["name"], text) if found["name"] != "Local" else zone
    if rest.startswith("@every "):
        return Cron(text, _Every(_interval(rest.removeprefix("@every "), text), zone))
    if rest.startswith("@"):
        if rest.rstrip() not in _DESCRIPTORS:
            raise CronError(f"schedule {text!r}: unknown {rest!r}; known: {', '.join(_DESCRIPTORS)} and @every 1h30m")
        rest = _DESCRIPTORS[rest.rstrip()]
    rule = _calendar(rest, text, zone)
    try:
        _Calendar(rule.expression, hour_fixed=False, zone=UTC).after(_PROBE)
    except CroniterError as error:
        raise CronError(f"schedule {text!r}: never due, because no such date exists") from error
    return Cron(text, rule)


def _named_zone(name: str, text: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise CronError(
            f"schedule {text!r}: there is no time zone {name!r}; write one like TZ=Europe/Berlin"
        ) from error


def _interval(written: str, text: str) -> timedelta:
    try:
        interval = parse_duration(written.strip())
    except DurationError as error:
        raise CronError(f"schedule {text!r}: {error}") from error
    return max(_SECOND, interval // _SECOND * _SECOND)


def _calendar(rest: str, text: str, zone: tzinfo) -> _Calendar:
    written = rest.split()
    if len(written) not in {5, 6}:
        raise CronError(f"schedule {text!r}: expected 5 or 6 fields, found {len(written)}")
    if len(written) == 5:
        written.insert(0, "0")
    try:
        fields = [_read_field(which, one) for which, one in zip(_FIELDS, written, strict=True)]
    except ValueError as error:
        raise CronError(f"schedule {text!r}: {error}") from error
    return _Calendar(" ".join(fields), hour_fixed=fields[_HOUR] != "*", zone=zone)


def _read_field(which: _Field, written: str) -> str:
    """Return the field with numbers for names and ``*`` for ``?``. Raises ValueError with the reason."""
    items: list[str] = []
    for item in written.split(","):
        found = _ITEM.fullmatch(item)
        if found is None:
            raise ValueError(
                f"{which.name}: expected a value, a range or a step such as 5, 1-5 or */10, found {item!r}"
            )
        span = "*"
        if found["low"] is not None:
            low, high = which.number(found["low"]), which.number(found["high"] or found["low"])
            if low > high:
                raise ValueError(f"{which.name}: the range {item!r} runs backwards")
            span = str(low) if found["high"] is None else f"{low}-{high}"
        if found["step"] is not None and int(found["step"]) == 0:
            raise ValueError(f"{which.name}: a step of 0 in {item!r}")
        items.append(span if found["step"] is None else f"{span}/{int(found['step'])}")
    return ",".join(items)


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _first_of_other_offset(before: datetime, after: datetime, offset: timedelta, zone: tzinfo) -> datetime:
    """Return the first second that has another UTC offset than ``offset``. It lies between ``before``, which has this offset,
    and ``after``, which has another one.
    """
    before = before.replace(microsecond=0)
    while after - before > _SECOND:
        middle = before + (after - before) // 2 // _SECOND * _SECOND
        if _offset(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after


def _repeated(moment: datetime, zone: tzinfo) -> timedelta | None:
    """Return how long ago a clock in this zone showed the same time before, because the clock was set back since then; None if
    it did not show this time before.
    """
    local = moment.astimezone(zone)
    return moment - local.replace(fold=0).astimezone(UTC) if local.fold else None


def _last_repeated(moment: datetime, length: timedelta, zone: tzinfo) -> datetime:
    """Return the last second of the repeated period that contains ``moment``. In this period, a clock in this zone shows the
    same times again, because it was set back. The period ends less than ``length`` after ``moment``.
    """
    inside, beyond = moment, moment + length
    while beyond - inside > _SECOND:
        middle = inside + (beyond - inside) // 2 // _SECOND * _SECOND
        if middle.astimezone(zone).fold:
            inside = middle
        else:
            beyond = middle
    return inside
