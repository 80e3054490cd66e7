"""Cron schedules: the dialect (measured with robfig/cron v2), invalid texts, and both clock changes.

One test contains a second implementation of schedules, which checks every minute of two days around a clock change.
"""

from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wharfinger.formats.cron import MAX_CHARACTERS, Cron, CronError, parse_cron

BERLIN: Final = ZoneInfo("Europe/Berlin")
NEW_YEAR: Final = datetime(2026, 1, 1, tzinfo=UTC)
DUE: Final[dict[str, str]] = {
    # Each schedule has its first three times after midnight of 1 January 2026 (a Thursday), without the year and trailing zeros.
    "* * * * *": "01-01T00:01 01-01T00:02 01-01T00:03",
    "? ? ? ? ?": "01-01T00:01 01-01T00:02 01-01T00:03",
    "* * * * * *": "01-01T00:00:01 01-01T00:00:02 01-01T00:00:03",
    "*/20 0 0 1 1 *": "01-01T00:00:20 01-01T00:00:40 2027-01-01T00:00",
    "30 4 * * *": "01-01T04:30 01-02T04:30 01-03T04:30",
    "01 * * * *": "01-01T00:01 01-01T01:01 01-01T02:01",
    "5/15 * * * *": "01-01T00:05 01-01T00:20 01-01T00:35",
    "1-30/7 * * * *": "01-01T00:01 01-01T00:08 01-01T00:15",
    "*/100 * * * *": "01-01T01:00 01-01T02:00 01-01T03:00",
    "*/15,3 * * * *": "01-01T00:03 01-01T00:15 01-01T00:30",
    "0 */2 * * *": "01-01T02:00 01-01T04:00 01-01T06:00",
    "0 0 * JAN-mar mon-FRI": "01-02T00:00 01-05T00:00 01-06T00:00",
    "0 0 * * sun,3": "01-04T00:00 01-07T00:00 01-11T00:00",
    "0 0 * * 7": "01-04T00:00 01-11T00:00 01-18T00:00",
    "0 0 * * 5-7": "01-02T00:00 01-03T00:00 01-04T00:00",
    # If both days are restricted, either is enough; a star with a step does not count as restricted.
    "0 0 13 * 5": "01-02T00:00 01-09T00:00 01-13T00:00",
    "0 0 30 2 1": "02-02T00:00 02-09T00:00 02-16T00:00",
    "0 0 13 * ?": "01-13T00:00 02-13T00:00 03-13T00:00",
    "0 0 ? * 5": "01-02T00:00 01-09T00:00 01-16T00:00",
    "0 0 */2 * 1": "01-05T00:00 01-19T00:00 02-09T00:00",
    "0 0 29 2 *": "2028-02-29T00:00 2032-02-29T00:00 2036-02-29T00:00",
    "0 0 29 2 */7": "2032-02-29T00:00 2060-02-29T00:00 2088-02-29T00:00",
    "@hourly": "01-01T01:00 01-01T02:00 01-01T03:00",
    "@daily": "01-02T00:00 01-03T00:00 01-04T00:00",
    "@midnight ": "01-02T00:00 01-03T00:00 01-04T00:00",
    "@weekly": "01-04T00:00 01-11T00:00 01-18T00:00",
    "@monthly": "02-01T00:00 03-01T00:00 04-01T00:00",
    "@yearly": "2027-01-01T00:00 2028-01-01T00:00 2029-01-01T00:00",
    "@annually": "2027-01-01T00:00 2028-01-01T00:00 2029-01-01T00:00",
    "@every 5m": "01-01T00:05 01-01T00:10 01-01T00:15",
    "@every 1h30m10s": "01-01T01:30:10 01-01T03:00:20 01-01T04:30:30",
    "@every 1.9s": "01-01T00:00:01 01-01T00:00:02 01-01T00:00:03",
    "@every  10ms": "01-01T00:00:01 01-01T00:00:02 01-01T00:00:03",
    "TZ=Asia/Tokyo 30 8 * * *": "01-01T23:30 01-02T23:30 01-03T23:30",
    "CRON_TZ=Asia/Tokyo @daily": "01-01T15:00 01-02T15:00 01-03T15:00",
    "TZ=Local 0 0 * * *": "01-02T00:00 01-03T00:00 01-04T00:00",
    "  0  0\t* * *\n": "01-02T00:00 01-03T00:00 01-04T00:00",
}
REFUSED: Final[dict[str, str]] = {
    "": "expected 5 or 6 fields, found 0",
    "* * * *": "found 4",
    "* * * * * * 2030": "found 7",
    "60 * * * *": "minute: 60 is not between 0 and 59",
    "60 * * * * *": "second: 60",
    "* 24 * * *": "hour: 24",
    "* * 0 * *": "day of month: 0",
    "* * 32 * *": "day of month: 32",
    "* * * 13 *": "month: 13",
    "* * * * 8": "day of week: 8 is not between 0 and 7",
    "R * * * *": "minute: 'R' is neither a number nor a name",
    "H * * * *": "neither",
    "H/5 * * * *": "neither",
    "R(1-5) * * * *": "expected a value, a range or a step",
    "* * L * *": "neither",
    "* * 15W * *": "neither",
    "* * * * 5#2": "expected a value, a range or a step",
    "MON * * * *": "neither",
    "* * * * Sunday": "expected a value, a range or a step",
    "* * MON * *": "neither",
    "-1 * * * *": "expected a value, a range or a step",
    "+1 * * * *": "expected a value, a range or a step",
    "1- * * * *": "expected a value, a range or a step",
    "1-5-7 * * * *": "expected a value, a range or a step",
    "*-5 * * * *": "expected a value, a range or a step",
    "1,,2 * * * *": "expected a value, a range or a step",
    "*/0 * * * *": "a step of 0",
    "*/5/2 * * * *": "expected a value, a range or a step",
    "*/x * * * *": "expected a value, a range or a step",
    "5-1 * * * *": "'5-1' runs backwards",
    "* * * * fri-mon": "runs backwards",
    "\u0663 * * * *": "expected a value, a range or a step",
    "0 0 31 2 *": "never due",
    "0 0 31 4,6 ?": "never due",
    "0 0 30 2 */2": "never due",
    "@reboot": "unknown '@reboot'",
    "@Hourly": "unknown '@Hourly'",
    "@every": "unknown '@every'",
    "@every 5": "no unit",
    "@every -5m": "negative",
    "@every 5m 5m": "unknown unit",
    "TZ=Nope/X 0 0 * * *": "there is no time zone 'Nope/X'",
    "TZ=Europe 0 0 * * *": "there is no time zone 'Europe'",
    "TZ=../../etc/passwd 0 0 * * *": "there is no time zone",
    "TZ= 0 0 * * *": "there is no time zone ''",
    "TZ=UTC": "found 0",
    "tz=UTC 0 0 * * *": "expected a value, a range or a step",
    "*" * (MAX_CHARACTERS + 1): "over the limit",
}


def due(cron: Cron, start: datetime, count: int) -> list[datetime]:
    """Return the next due times in UTC. Each is computed from the one before."""
    found = [start]
    for _ in range(count):
        found.append(cron.next_after(found[-1]).astimezone(UTC))
    return found[1:]


def local(cron: str, start: str, count: int) -> list[str]:
    """Return the next due times after a local time in Berlin, as local times with offsets."""
    moment, times = datetime.fromisoformat(start), []
    for _ in range(count):
        moment = parse_cron(cron, zone=BERLIN).next_after(moment)
        times.append(f"{moment:%dT%H:%M%z}")
    return times


@pytest.mark.parametrize("text", DUE)
def test_due_times_follow_the_schedule(text: str) -> None:
    times = [
        time.isoformat().removesuffix("+00:00").removesuffix(":00")
        for time in due(parse_cron(text, zone=UTC), NEW_YEAR, 3)
    ]
    assert " ".join(time.removeprefix("2026-") for time in times) == DUE[text]


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_schedules_are_refused(text: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(text, zone=UTC)
    assert REFUSED[text] in str(caught.value)


def test_schedules_are_equal_by_text_and_zone() -> None:
    cron = parse_cron("@every 5m", zone=UTC)
    assert (str(cron), repr(cron)) == ("@every 5m", "Cron(text='@every 5m')")
    assert cron == parse_cron("@every 5m", zone=UTC)
    assert parse_cron("@daily", zone=UTC) != parse_cron("@daily", zone=BERLIN)


def test_due_times_of_every_are_whole_seconds() -> None:
    moment = datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    assert parse_cron("@every 5m", zone=UTC).next_after(moment) == NEW_YEAR + timedelta(minutes=5)


def test_every_counts_elapsed_time() -> None:
    assert local("@every 1h", "2026-03-29T01:30:00+01:00", 2) == ["29T03:30+0200", "29T04:30+0200"]
    assert local("@every 1h", "2026-10-25T02:30:00+02:00", 2) == ["25T02:30+0100", "25T03:30+0100"]


def test_a_start_time_without_a_zone_is_refused() -> None:
    with pytest.raises(AssertionError, match="time zone"):
        parse_cron("@daily", zone=UTC).next_after(datetime(2026, 1, 1))  # noqa: DTZ001 - what is tested


def test_the_due_time_is_in_the_schedules_zone() -> None:
    assert (
        parse_cron("TZ=Europe/Berlin @daily", zone=UTC).next_after(NEW_YEAR).isoformat() == "2026-01-02T00:00:00+01:00"
    )
    assert (
        parse_cron("@daily", zone=timezone(timedelta(hours=3))).next_after(NEW_YEAR).isoformat()
        == "2026-01-02T00:00:00+03:00"
    )


@pytest.mark.parametrize(
    ("cron", "times"),
    [
        ("30 2 * * *", ["29T03:00+0200", "30T02:30+0200", "31T02:30+0200"]),
        ("*/10 2 * * *", ["29T03:00+0200", "30T02:00+0200", "30T02:10+0200"]),
        ("30 2,3 * * *", ["29T03:00+0200", "29T03:30+0200", "30T02:30+0200"]),
        ("0 2,3 * * *", ["29T03:00+0200", "30T02:00+0200", "30T03:00+0200"]),
        ("30 2 29 3 *", ["29T03:00+0200", "29T02:30+0200", "29T02:30+0200"]),
        ("0 */2 * * *", ["29T03:00+0200", "29T04:00+0200", "29T06:00+0200"]),
        ("30 * * * *", ["29T01:30+0100", "29T03:30+0200", "29T04:30+0200"]),
        ("*/30 * * * *", ["29T01:30+0100", "29T03:00+0200", "29T03:30+0200"]),
    ],
)
def test_fixed_hour_runs_skipped_by_a_clock_change_are_made_up(cron: str, times: list[str]) -> None:
    """On 29 March 2026 in Berlin, 03:00:00 follows 01:59:59. A run with a fixed hour that would fall into the missing hour
    takes place at 03:00.
    """
    assert local(cron, "2026-03-29T01:00:00+01:00", 3) == times


@pytest.mark.parametrize(
    ("cron", "times"),
    [
        ("30 2 * * *", ["25T02:30+0200", "26T02:30+0100"]),
        ("0,30 2 * * *", ["25T02:00+0200", "25T02:30+0200", "26T02:00+0100"]),
        ("30 2,3 * * *", ["25T02:30+0200", "25T03:30+0100", "26T02:30+0100"]),
        ("0 */2 * * *", ["25T02:00+0200", "25T04:00+0100"]),
        ("30 * * * *", ["25T01:30+0200", "25T02:30+0200", "25T02:30+0100", "25T03:30+0100"]),
        ("*/30 * * * *", ["25T01:30+0200", "25T02:00+0200", "25T02:30+0200", "25T02:00+0100", "25T02:30+0100"]),
    ],
)
def test_fixed_hour_runs_are_not_repeated_when_the_clock_goes_back(cron: str, times: list[str]) -> None:
    """On 25 October 2026 in Berlin, 02:00:00 follows 02:59:59. Runs with a fixed hour use the first of two equal times."""
    assert local(cron, "2026-10-25T01:00:00+02:00", len(times)) == times


def test_the_second_pass_of_a_repeated_hour_is_skipped_at_once() -> None:
    """A schedule for every second from two to three o'clock does not run in the second pass of this hour."""
    assert local("* * 2 * * *", "2026-10-25T02:20:00+01:00", 2) == ["26T02:00+0100", "26T02:00+0100"]
    assert local("59 59 2 * * *", "2026-10-25T02:59:59+02:00", 1) == ["26T02:59+0100"]


CHANGES: Final = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),  # both clock changes are at midnight
    ("America/Sao_Paulo", datetime(2019, 2, 17, 2, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),  # the clock changes by half an hour
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),  # the clock goes back for Ramadan, at 3 a.m.
    ("Africa/Casablanca", datetime(2026, 3, 22, 2, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # the clock changes by a day
    ("Asia/Kolkata", datetime(2026, 1, 1, tzinfo=UTC)),
]
AROUND: Final = timedelta(hours=24)
MINUTE: Final = timedelta(minutes=1)
MINUTES: Final = {
    "*": range(60),
    "*/20": range(0, 60, 20),
    "30": [30],
    "15,45": [15, 45],
    "10-40/10": range(10, 50, 10),
}
HOURS: Final = {"*": range(24), "*/2": range(0, 24, 2), "0": [0], "1,2": [1, 2], "2-4": [2, 3, 4], "23": [23]}
DAYS: Final = {"*": range(1, 32), "30": [30], "29,4,8": [29, 4, 8]}


@pytest.mark.slow
@pytest.mark.unmeasured
@given(st.sampled_from(CHANGES), st.sampled_from([*MINUTES]), st.sampled_from([*HOURS]), st.sampled_from([*DAYS]))
@example(CHANGES[0], "30", "2-4", "*")
@example(CHANGES[1], "15,45", "1,2", "*")
@example(CHANGES[5], "*", "23", "*")
@example(CHANGES[10], "30", "2-4", "30")
def test_due_times_around_a_clock_change_agree_with_a_model(
    change: tuple[str, datetime], minute: str, hour: str, day: str
) -> None:
    zone, middle = ZoneInfo(change[0]), change[1]

    def matches(time: datetime) -> bool:
        return time.minute in MINUTES[minute] and time.hour in HOURS[hour] and time.day in DAYS[day]

    expected = []
    before = (middle - AROUND).astimezone(zone).replace(tzinfo=None)
    for count in range(1, 2 * AROUND // MINUTE):
        moment = middle - AROUND + count * MINUTE
        now = moment.astimezone(zone)
        shown = now.replace(tzinfo=None, fold=0)
        skipped = [before + n * MINUTE for n in range(1, (shown - before) // MINUTE)]
        made_up_for = hour != "*" and any(map(matches, skipped))
        if made_up_for or (matches(shown) and (hour == "*" or not now.fold)):
            expected.append(moment)
        before = shown

    found = []
    cron, moment = parse_cron(f"{minute} {hour} {day} * *", zone=zone), middle - AROUND
    while (moment := cron.next_after(moment).astimezone(UTC)) < middle + AROUND:
        found.append(moment)
    assert found == expected


@given(
    st.sampled_from([text for text in DUE if "TZ" not in text]),
    st.datetimes(datetime(2000, 1, 1), datetime(2080, 1, 1), timezones=st.sampled_from([UTC, BERLIN])),  # noqa: DTZ001
)
@example("@every 5m", datetime(2000, 3, 26, 2, 55, tzinfo=BERLIN))  # this local time does not exist
@example("*/10 2 * * *", datetime(2000, 3, 26, 2, 55, tzinfo=BERLIN))
def test_the_due_time_is_always_later(text: str, moment: datetime) -> None:
    cron = parse_cron(text, zone=BERLIN)
    following = cron.next_after(moment)
    assert following.astimezone(UTC) > moment.astimezone(UTC)
    assert following.microsecond == 0
    # From a moment just before the due time, the next due time is the same.
    if not text.startswith("@every"):
        assert cron.next_after(following.astimezone(UTC) - timedelta(microseconds=1)).astimezone(
            UTC
        ) == following.astimezone(UTC)
