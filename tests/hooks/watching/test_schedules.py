"""Ticks of schedules, which follow a wall clock. The wall clock of the tests advances with trio's clock, and the tests also set
it forward and back.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
import trio
from trio.testing import MockClock

from wharfinger.formats.cron import CronError
from wharfinger.hooks.watching.schedules import LOOK_S, Schedules, open_schedules

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
MINUTE, HOUR = 60.0, 3600.0


@dataclass(slots=True)
class Wall:
    """A wall clock that is ahead of trio's clock by ``off``. It also records the ticks with their times."""

    off: timedelta = timedelta()
    began: float = field(default_factory=trio.current_time)
    ticks: list[tuple[str, str]] = field(default_factory=list)
    looks: int = 0

    def now(self) -> datetime:
        self.looks += 1
        return EPOCH + self.off + timedelta(seconds=trio.current_time() - self.began)

    def tick(self, crontab: str) -> None:
        now = EPOCH + self.off + timedelta(seconds=trio.current_time() - self.began)
        self.ticks.append((crontab, f"{now:%H:%M:%S}"))

    def take(self) -> list[tuple[str, str]]:
        taken, self.ticks = self.ticks, []
        return taken


@asynccontextmanager
async def scheduled(zone: timezone | ZoneInfo = UTC) -> AsyncIterator[tuple[Schedules, Wall]]:
    wall = Wall()
    async with open_schedules(wall.tick, wall.now, zone) as schedules:
        yield schedules, wall


async def test_crontabs_tick_at_their_times(autojump_clock: MockClock) -> None:
    async with scheduled() as (schedules, wall):
        schedules.add("a", "*/20 * * * *")
        schedules.add("b", "30 * * * *")
        await trio.sleep(HOUR + 1)
        assert wall.take() == [
            ("*/20 * * * *", "00:20:00"),
            ("30 * * * *", "00:30:00"),
            ("*/20 * * * *", "00:40:00"),
            ("*/20 * * * *", "01:00:00"),
        ]
        assert (schedules.statistics().crontabs, schedules.statistics().ticks) == (2, 4)
        assert schedules.statistics().next_due == EPOCH + timedelta(minutes=80)


async def test_a_crontab_ticks_once_for_all_its_owners(autojump_clock: MockClock) -> None:
    async with scheduled() as (schedules, wall):
        for owner in ("a", "b", "a"):
            schedules.add(owner, "0 * * * *")
        await trio.sleep(HOUR + 1)
        assert wall.take() == [("0 * * * *", "01:00:00")]
        schedules.remove("a")
        await trio.sleep(HOUR)
        assert wall.take() == [("0 * * * *", "02:00:00")]
        schedules.remove("b")
        schedules.remove("nobody")
        await trio.sleep(HOUR)
        assert wall.take() == []
        assert (schedules.statistics().crontabs, schedules.statistics().next_due) == (0, None)


async def test_crontab_added_during_a_sleep_ticks_on_time(autojump_clock: MockClock) -> None:
    async with scheduled() as (schedules, wall):
        await trio.sleep(7)
        schedules.add("a", "@every 5s")
        await trio.sleep(11)
        assert wall.take() == [("@every 5s", "00:00:12"), ("@every 5s", "00:00:17")]


async def test_crontabs_are_evaluated_in_the_time_zone(autojump_clock: MockClock) -> None:
    async with scheduled(timezone(timedelta(hours=2))) as (schedules, wall):
        schedules.add("a", "0 6 * * *")
        await trio.sleep(24 * HOUR)
        assert wall.take() == [("0 6 * * *", "04:00:00")]


async def test_end_of_daylight_saving_time_causes_no_extra_ticks(autojump_clock: MockClock) -> None:
    """The wall clock is in local time, where 02:00 to 03:00 occurs twice. No tick is early, late or repeated."""
    berlin = ZoneInfo("Europe/Berlin")
    wall = Wall(off=datetime(2024, 10, 26, 22, 45, tzinfo=UTC) - EPOCH)
    async with open_schedules(wall.tick, lambda: wall.now().astimezone(berlin), berlin) as schedules:
        schedules.add("a", "@every 30m")
        schedules.add("a", "30 3 * * *")
        await trio.sleep(4 * HOUR + 1)
    assert [at for crontab, at in wall.ticks if crontab == "30 3 * * *"] == ["02:30:00"]
    assert [at for crontab, at in wall.ticks if crontab == "@every 30m"] == [
        "23:15:00", "23:45:00", "00:15:00", "00:45:00", "01:15:00", "01:45:00", "02:15:00", "02:45:00"
    ]  # fmt: skip
    assert wall.looks < 2000


async def test_missed_times_become_one_tick(autojump_clock: MockClock) -> None:
    """The wall clock jumps ahead of trio's clock, as after the machine was suspended. All due times in the gap together cause
    one tick.
    """
    async with scheduled() as (schedules, wall):
        schedules.add("a", "* * * * *")
        schedules.add("a", "0 12 * * *")
        schedules.add("a", "0 23 * * *")
        await trio.sleep(LOOK_S + 1)
        wall.off = timedelta(hours=14)
        await trio.sleep(LOOK_S)
        assert wall.take() == [("* * * * *", "14:01:00"), ("0 12 * * *", "14:01:00")]
        await trio.sleep(MINUTE)
        assert wall.take() == [("* * * * *", "14:02:00")]


async def test_clock_set_back_does_not_suppress_ticks(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with scheduled() as (schedules, wall):
        wall.off = timedelta(hours=14)
        await trio.sleep(LOOK_S)
        schedules.add("a", "*/10 * * * *")
        await trio.sleep(5 * MINUTE)
        wall.off = timedelta(0)
        await trio.sleep(6 * MINUTE)
        assert wall.take() == [("*/10 * * * *", "00:10:00")]
        assert "the clock was set back" in caplog.text
        await trio.sleep(10 * MINUTE)
        assert wall.take() == [("*/10 * * * *", "00:20:00")]


async def test_slowed_clock_does_not_tick_twice(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    async with scheduled() as (schedules, wall):
        schedules.add("a", "* * * * *")
        for _ in range(50):
            await trio.sleep(6)
            wall.off -= timedelta(seconds=0.5)
        assert [at for _, at in wall.take()] == ["00:01:00", "00:02:00", "00:03:00", "00:04:00"]
        assert caplog.text == ""


async def test_tick_callback_may_add_and_remove_crontabs(autojump_clock: MockClock) -> None:
    ticks: list[str] = []

    def tick(crontab: str) -> None:
        ticks.append(crontab)
        if crontab == "@every 10s":
            schedules.remove("b")
            schedules.add("c", "@every 3s")

    wall = Wall()
    async with open_schedules(tick, wall.now, UTC) as schedules:
        schedules.add("a", "@every 10s")
        schedules.add("b", "@every 5s")
        await trio.sleep(14)
    assert ticks == ["@every 5s", "@every 10s", "@every 3s"]


async def test_intervals_do_not_drift(autojump_clock: MockClock) -> None:
    async with scheduled() as (schedules, wall):
        schedules.add("a", "@every 10s")
        await trio.sleep(9)
        wall.off += timedelta(seconds=4)
        await trio.sleep(20)
        assert wall.take() == [("@every 10s", "00:00:14"), ("@every 10s", "00:00:20"), ("@every 10s", "00:00:30")]


async def test_scheduler_sleeps_between_ticks(autojump_clock: MockClock) -> None:
    async with scheduled() as (schedules, wall):
        schedules.add("a", "0 0 1 1 *")
        wall.looks = 0
        await trio.sleep(24 * HOUR)
        assert wall.looks < 3 * 24 * HOUR / LOOK_S
        assert wall.take() == []


async def test_invalid_crontab_is_refused() -> None:
    async with scheduled() as (schedules, _):
        with pytest.raises(CronError):
            schedules.add("a", "every hour")
        assert schedules.statistics().crontabs == 0


@pytest.mark.parametrize("crontab", ["0 0 29 2 1", "@every 2562047h", "0 0 1 1 *"])
def test_crontab_without_a_next_time_is_dropped(crontab: str, caplog: pytest.LogCaptureFixture) -> None:
    schedules = Schedules(lambda _: None, lambda: datetime(9999, 12, 30, tzinfo=UTC), UTC)
    schedules.add("a", crontab)
    assert schedules.statistics().crontabs == 0
    assert f"schedule {crontab!r}: dropped, because it has no next time before the year 10000" in caplog.text


async def test_crontab_is_dropped_after_its_last_tick(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with scheduled() as (schedules, wall):
        wall.off = datetime(9999, 12, 31, 22, 59, 30, tzinfo=UTC) - EPOCH
        schedules.add("a", "0 23 * * *")
        await trio.sleep(MINUTE)
        assert wall.take() == [("0 23 * * *", "23:00:00")]
        assert schedules.statistics().crontabs == 0
    assert "dropped, because it has no next time" in caplog.text
