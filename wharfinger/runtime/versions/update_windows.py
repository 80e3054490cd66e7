"""The times at which a package may be updated: weekly windows in one time zone.

A window has days, a start and an end. Its days are the days on which it starts; without days, it starts every day. If the end
is not after the start, the window ends on the following day. Local times follow the daylight saving time of the zone: a time
that a change of the clock skips is read with the offset before the change; if a time occurs twice, the first occurrence counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, find_list, find_str
from wharfinger.kube.times import zone_of

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MAX_WINDOWS: Final = 50
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\Z")
_END_OF_DAY: Final = "24:00"
_MIDNIGHT: Final = time(0, 0)


@dataclass(frozen=True, slots=True)
class Window:
    """One window; ``days`` are the numbers of the days on which it starts (0: Monday). If ``end`` is midnight, the first
    midnight after the start is meant.
    """

    days: frozenset[int]
    start: time
    end: time


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows of a package, in one time zone; without windows, no window is ever open."""

    each: tuple[Window, ...] = ()
    zone: str = "UTC"

    def opening(self, now: datetime) -> datetime | None:
        """Return the time from which an update may begin: ``now`` if a window is open, otherwise the next start of a window.

        Return None if there are no windows. ``now`` must have a time zone.
        """
        spans = [(start, end) for start, end in self._spans(now) if end > now]
        return max(now, min(start for start, _ in spans)) if spans else None

    def _spans(self, now: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the starts and ends, in UTC, of all windows that start between yesterday and eight days after ``now``."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        for shift in range(-1, 9):
            day = today + timedelta(days=shift)
            for window in self.each:
                if day.weekday() in window.days:
                    last = day if window.start < window.end else day + timedelta(days=1)
                    start = datetime.combine(day, window.start, zone).astimezone(UTC)
                    end = datetime.combine(last, window.end, zone).astimezone(UTC)
                    yield start, max(start, end)


def read_windows(value: JsonValue, where: str) -> Windows:
    """Read ``windows`` and ``timeZone`` of an object; ``where`` is its path for messages. Raises FormatError."""
    entries = find_list(value, "windows")
    if len(entries) > MAX_WINDOWS:
        raise FormatError(f"{where}.windows: expected at most {MAX_WINDOWS} windows, found {len(entries)}")
    zone = find_str(value, "timeZone", default="UTC")
    if zone_of(zone) is None:
        raise FormatError(
            f"{where}.timeZone: expected a time zone such as Europe/Berlin, found {zone!r:.80}; correct it"
        )
    return Windows(tuple(_window(entry, f"{where}.windows[{at}]") for at, entry in enumerate(entries)), zone)


def _window(entry: JsonValue, where: str) -> Window:
    start = _time(find_str(entry, "from", default="00:00"), f"{where}.from")
    last = find_str(entry, "to", default=_END_OF_DAY)
    end = _MIDNIGHT if last == _END_OF_DAY else _time(last, f"{where}.to")
    if start == end and last != _END_OF_DAY:
        raise FormatError(
            f"{where}: expected an end that differs from the start, found {last} for both; correct one of them"
        )
    return Window(_days(find_list(entry, "days"), f"{where}.days"), start, end)


def _days(named: list[JsonValue], where: str) -> frozenset[int]:
    for day in named:
        if day not in DAYS:
            raise FormatError(f"{where}: expected one of {', '.join(DAYS)}, found {day!r:.80}; correct it")
    return frozenset(DAYS.index(str(day)) for day in named) or frozenset(range(len(DAYS)))


def _time(text: str, where: str) -> time:
    found = _TIME.match(text)
    if found is None:
        raise FormatError(f"{where}: expected a time such as 22:30, found {text!r:.80}; correct it")
    return time(int(found[1]), int(found[2]))
