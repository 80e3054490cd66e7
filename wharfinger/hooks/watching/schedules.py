"""The ticks of the ``schedule`` bindings of hooks, from one clock for all packages (spec hook-protocol §5.2). Each crontab is one
*entry*, even if several owners (packages) use it. A tick names only the crontab; each owner knows its bindings with this crontab.
One task sleeps until the next entry is due. The wall clock decides what is due, because crontabs are about wall-clock time. The
sleep is by trio's clock, which neither jumps nor counts the time during which a machine was suspended. So the task checks the
wall clock at least every :data:`LOOK_S`:

* If the wall clock has passed the due time of an entry, the entry ticks *once*, and its next due time is after now. Missed times
  are not made up, so a machine that wakes on Monday runs its hourly hooks once, not sixty times.
* If the wall clock shows an earlier time than at the last check (the clock was set back), the due time of every entry is
  computed anew from now. Otherwise no entry would tick until the old time is reached again.

If the next time of an entry is after the year 9999, it cannot be represented, and the entry is dropped with a line in the log.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import trio

from wharfinger.formats.cron import Cron, parse_cron

log = logging.getLogger(__name__)

LOOK_S: Final = 30.0
"""The longest sleep between two checks of the wall clock."""
SET_BACK: Final = timedelta(seconds=1)
"""The smallest backward step at which the clock counts as set back; smaller steps come from gradual corrections of a clock."""


@dataclass(slots=True)
class _Entry:
    """One crontab, its owners, and the time when it is due (UTC)."""

    cron: Cron
    due: datetime
    owners: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ScheduleStatistics:
    """The number of crontabs, the number of ticks so far, and the time of the next one."""

    crontabs: int
    ticks: int
    next_due: datetime | None


class Schedules:
    """The schedules of all packages, made by :func:`open_schedules`."""

    def __init__(self, on_tick: Callable[[str], None], now: Callable[[], datetime], zone: tzinfo) -> None:
        self._on_tick = on_tick
        self._now = now
        self._zone = zone
        self._entries: dict[str, _Entry] = {}
        self._changed = trio.Event()
        self._ticks = 0
        self._looked_at = self._utc()

    def add(self, owner: str, crontab: str) -> None:
        """Add a crontab that ``owner`` needs. ``on_tick`` is called with a crontab at its times as long as an owner needs it. A
        second call with the same arguments changes nothing. Raises CronError.
        """
        entry = self._entries.get(crontab)
        if entry is None:
            cron = parse_cron(crontab, zone=self._zone)
            due = _after(cron, self._utc())
            if due is None:
                _report_dropped(crontab)
                return
            entry = self._entries[crontab] = _Entry(cron, due)
            self._changed.set()
        entry.owners.add(owner)

    def remove(self, owner: str) -> None:
        """Remove all crontabs of ``owner``."""
        for crontab, entry in list(self._entries.items()):
            entry.owners.discard(owner)
            if not entry.owners:
                del self._entries[crontab]

    def statistics(self) -> ScheduleStatistics:
        """Return the current statistics."""
        return ScheduleStatistics(len(self._entries), self._ticks, self._next_due())

    async def run(self) -> None:
        """Tick for each schedule when it is due, until cancelled."""
        while True:
            self._look()
            self._changed = trio.Event()
            with trio.move_on_after(self._patience_s()):
                await self._changed.wait()

    def _look(self) -> None:
        """Tick for all crontabs that are due. A tick calls ``on_tick``, which may add and remove crontabs, so each crontab is
        checked just before its tick.
        """
        now = self._utc()
        if now < self._looked_at - SET_BACK:
            log.warning(
                "the clock was set back from %s to %s; schedules continue from the new time", self._looked_at, now
            )
            for crontab, entry in list(self._entries.items()):
                self._put_off(crontab, entry, _after(entry.cron, now))
        self._looked_at = now
        for crontab, entry in list(self._entries.items()):
            if entry.due <= now and self._entries.get(crontab) is entry:
                # Count from the time when the entry was due, so that intervals do not drift, or from now if that result is past.
                following = _after(entry.cron, entry.due)
                if following is not None and following <= now:
                    following = _after(entry.cron, now)
                self._put_off(crontab, entry, following)
                self._ticks += 1
                self._on_tick(crontab)

    def _put_off(self, crontab: str, entry: _Entry, due: datetime | None) -> None:
        if due is None:
            del self._entries[crontab]
            _report_dropped(crontab)
        else:
            entry.due = due

    def _next_due(self) -> datetime | None:
        return min((entry.due for entry in self._entries.values()), default=None)

    def _patience_s(self) -> float:
        due = self._next_due()
        return LOOK_S if due is None else min(LOOK_S, max(0.0, (due - self._utc()).total_seconds()))

    def _utc(self) -> datetime:
        """Return the time in UTC, in which no time occurs twice. In other time zones, a wall-clock time may occur twice, and
        Python compares times of one zone by their wall-clock digits.
        """
        return self._now().astimezone(UTC)


def _after(cron: Cron, moment: datetime) -> datetime | None:
    """Return the next time when a crontab is due; None if it is not due before the year 10000, where Python's calendar ends."""
    try:
        return cron.next_after(moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _report_dropped(crontab: str) -> None:
    log.warning("schedule %r: dropped, because it has no next time before the year 10000", crontab)


@asynccontextmanager
async def open_schedules(
    on_tick: Callable[[str], None], now: Callable[[], datetime], zone: tzinfo
) -> AsyncGenerator[Schedules, None]:
    """Run schedules while the block runs.

    ``on_tick`` is called with each crontab that is due, and must not block. ``now`` returns the wall-clock time with a time zone.
    ``zone`` is the time zone of crontabs that name none.
    """
    schedules = Schedules(on_tick, now, zone)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedules.run, name="schedules")
        yield schedules
        nursery.cancel_scope.cancel()
