"""When the ``schedule`` bindings of hooks are due: one clock for all packages (spec hook-protocol §5.2).

The story. A crontab is an *entry*, however many owners (packages) asked for it, and a tick names the crontab only: who has a
binding to it is for the owners to say. One task sleeps until the next entry is due. What is due is decided by the wall clock,
because that is what a crontab means; the sleep is by trio's clock, which neither jumps nor counts the time a machine was
suspended. So the task looks at the wall clock again at least every :data:`LOOK_S`, and judges what it finds:

* it is later than an entry's time: the entry ticks, *once*, and goes on from now. Times that were missed are not made up, so a
  machine that wakes on Monday runs its hourly hooks once, not sixty times;
* it is earlier than when last looked at (the clock was set back): every entry is reckoned anew from now, or they would be silent
  until the old time comes again.

An entry without a next time that could be told (beyond the year 9999) is dropped with a line in the log.
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
"""The longest sleep between two looks at the wall clock."""
SET_BACK: Final = timedelta(seconds=1)
"""By how much the clock must have gone back to count as set; less is a clock that is being slowed to the right time."""


@dataclass(slots=True)
class _Entry:
    """One crontab, who asked for it, and when it is due (UTC)."""

    cron: Cron
    due: datetime
    owners: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ScheduleStatistics:
    """How many crontabs are followed, how many ticks there were, and what comes next."""

    crontabs: int
    ticks: int
    next_due: datetime | None


class Schedules:
    """Made by :func:`open_schedules`."""

    def __init__(self, on_tick: Callable[[str], None], now: Callable[[], datetime], zone: tzinfo) -> None:
        self._on_tick = on_tick
        self._now = now
        self._zone = zone
        self._entries: dict[str, _Entry] = {}
        self._changed = trio.Event()
        self._ticks = 0
        self._looked_at = self._utc()

    def add(self, owner: str, crontab: str) -> None:
        """From now on ``owner`` wants ticks of ``crontab``; asking twice is asking once. Raises CronError."""
        entry = self._entries.get(crontab)
        if entry is None:
            cron = parse_cron(crontab, zone=self._zone)
            due = _after(cron, self._utc())
            if due is None:
                _tell_dropped(crontab)
                return
            entry = self._entries[crontab] = _Entry(cron, due)
            self._changed.set()
        entry.owners.add(owner)

    def remove(self, owner: str) -> None:
        """``owner`` wants no more ticks of anything."""
        for crontab, entry in list(self._entries.items()):
            entry.owners.discard(owner)
            if not entry.owners:
                del self._entries[crontab]

    def statistics(self) -> ScheduleStatistics:
        """What it is doing now."""
        return ScheduleStatistics(len(self._entries), self._ticks, self._next_due())

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self._look()
            self._changed = trio.Event()
            with trio.move_on_after(self._patience_s()):
                await self._changed.wait()

    def _look(self) -> None:
        """Tick what is due. A tick may add and remove: each entry is asked whether it is still there."""
        now = self._utc()
        if now < self._looked_at - SET_BACK:
            log.warning("the clock was set back from %s to %s: schedules go on from there", self._looked_at, now)
            for crontab, entry in list(self._entries.items()):
                self._put_off(crontab, entry, _after(entry.cron, now))
        self._looked_at = now
        for crontab, entry in list(self._entries.items()):
            if entry.due <= now and self._entries.get(crontab) is entry:
                # From when it was due, so that intervals do not drift; from now where that is past, too.
                following = _after(entry.cron, entry.due)
                if following is not None and following <= now:
                    following = _after(entry.cron, now)
                self._put_off(crontab, entry, following)
                self._ticks += 1
                self._on_tick(crontab)

    def _put_off(self, crontab: str, entry: _Entry, due: datetime | None) -> None:
        if due is None:
            del self._entries[crontab]
            _tell_dropped(crontab)
        else:
            entry.due = due

    def _next_due(self) -> datetime | None:
        return min((entry.due for entry in self._entries.values()), default=None)

    def _patience_s(self) -> float:
        due = self._next_due()
        return LOOK_S if due is None else min(LOOK_S, max(0.0, (due - self._utc()).total_seconds()))

    def _utc(self) -> datetime:
        """Now. In UTC, because times of one zone are compared by their digits, of which some come twice a year."""
        return self._now().astimezone(UTC)


def _after(cron: Cron, moment: datetime) -> datetime | None:
    """When it is next due; None where the calendar ends before that."""
    try:
        return cron.next_after(moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _tell_dropped(crontab: str) -> None:
    log.warning("schedule %r: it has no next time before the year 10000; it is dropped", crontab)


@asynccontextmanager
async def open_schedules(
    on_tick: Callable[[str], None], now: Callable[[], datetime], zone: tzinfo
) -> AsyncGenerator[Schedules, None]:
    """Schedules for as long as the block runs.

    ``on_tick`` is told each crontab that is due and must not block; ``now`` is the wall clock, aware; ``zone`` is where crontabs
    that name no zone of their own are meant.
    """
    schedules = Schedules(on_tick, now, zone)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedules.run, name="schedules")
        yield schedules
        nursery.cancel_scope.cancel()
