"""Schedules around clock changes, as a table with four zones, both directions, and every kind of schedule.

The rule is in :mod:`wharfinger.formats.cron`. A schedule with a fixed hour means wall-clock times. If a time is skipped,
the run is right after the gap. If a time is repeated, the run is at its first occurrence. If the hour is ``*``, every elapsed
hour counts. ``@every`` does not depend on the wall clock.
"""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from wharfinger.formats.cron import parse_cron

# Each row has a zone with its clock change, and the moment from which the due times are computed.
CHANGES: Final[dict[str, tuple[str, str]]] = {
    "Europe/Berlin forward": ("02:00 -> 03:00", "2026-03-29T01:00:00+01:00"),
    "Europe/Berlin back": ("03:00 -> 02:00", "2026-10-25T01:00:00+02:00"),
    "America/New_York forward": ("02:00 -> 03:00", "2026-03-08T01:00:00-05:00"),
    "America/New_York back": ("02:00 -> 01:00", "2026-11-01T00:00:00-04:00"),
    "Australia/Lord_Howe forward": ("02:00 -> 02:30", "2026-10-04T01:00:00+10:30"),
    "Australia/Lord_Howe back": ("02:00 -> 01:30", "2026-04-05T01:00:00+11:00"),
    "Africa/Casablanca forward": ("02:00 -> 03:00", "2026-03-22T01:00:00+00:00"),
    "Africa/Casablanca back": ("03:00 -> 02:00", "2026-02-15T01:00:00+01:00"),
}
DUE: Final[dict[str, dict[str, str]]] = {
    "Europe/Berlin forward": {
        "30 2 * * *": "29T03:00+02 30T02:30+02",
        "0 */2 * * *": "29T03:00+02 29T04:00+02",
        "30 * * * *": "29T01:30+01 29T03:30+02",
        "*/20 30 2 * * *": "29T03:00+02 30T02:30+02",
        "0 2 29 * 1": "29T03:00+02 30T02:00+02",
        "@every 1h": "29T03:00+02 29T04:00+02",
        "@daily": "30T00:00+02 31T00:00+02",
    },
    "Europe/Berlin back": {
        "30 2 * * *": "25T02:30+02 26T02:30+01",
        "0 */2 * * *": "25T02:00+02 25T04:00+01",
        "30 * * * *": "25T01:30+02 25T02:30+02 25T02:30+01 25T03:30+01",
        "*/30 30 2 * * *": "25T02:30+02 25T02:30:30+02 26T02:30+01",
        "@every 1h": "25T02:00+02 25T02:00+01 25T03:00+01",
        "@hourly": "25T02:00+02 25T02:00+01 25T03:00+01",
    },
    "America/New_York forward": {
        "30 2 * * *": "08T03:00-04 09T02:30-04",
        "15,45 * * * *": "08T01:15-05 08T01:45-05 08T03:15-04",
        "0 2 ? * SUN": "08T03:00-04 15T02:00-04",
    },
    "America/New_York back": {
        "30 1 * * *": "01T01:30-04 02T01:30-05",
        "30 * ? NOV *": "01T00:30-04 01T01:30-04 01T01:30-05 01T02:30-05",
        "0 1-2 * * *": "01T01:00-04 01T02:00-05",
    },
    "Australia/Lord_Howe forward": {
        "15 2 * * *": "04T02:30+11 05T02:15+11",
        "*/20 * * * *": "04T01:20+1030 04T01:40+1030 04T02:40+11",
        "0,30 2 * * *": "04T02:30+11 05T02:00+11",
    },
    "Australia/Lord_Howe back": {
        "45 1 * * *": "05T01:45+11 06T01:45+1030",
        "*/20 * * * *": "05T01:20+11 05T01:40+11 05T01:40+1030 05T02:00+1030",
        "45 * * * *": "05T01:45+11 05T01:45+1030 05T02:45+1030",
        "@every 30m": "05T01:30+11 05T01:30+1030 05T02:00+1030",
    },
    "Africa/Casablanca forward": {
        "30 2 * * *": "22T03:00+01 23T02:30+01",
        "0 * * * *": "22T03:00+01 22T04:00+01",
    },
    "Africa/Casablanca back": {
        "30 2 * * *": "15T02:30+01 16T02:30+00",
        "30 * * * *": "15T01:30+01 15T02:30+01 15T02:30+00 15T03:30+00",
    },
}


def shown(moment: datetime) -> str:
    offset = f"{moment:%z}"
    seconds = f":{moment:%S}" if moment.second else ""
    return f"{moment:%dT%H:%M}{seconds}{offset.removesuffix('00') if len(offset) == 5 else offset}"


@pytest.mark.parametrize(("change", "cron"), [(change, cron) for change, table in DUE.items() for cron in table])
def test_due_times_around_a_clock_change(change: str, cron: str) -> None:
    expected = DUE[change][cron].split()
    moment, found = datetime.fromisoformat(CHANGES[change][1]), []
    for _ in expected:
        moment = parse_cron(cron, zone=ZoneInfo(change.partition(" ")[0])).next_after(moment)
        found.append(shown(moment))
    assert found == expected


@pytest.mark.parametrize("change", CHANGES)
def test_the_table_has_real_clock_changes(change: str) -> None:
    """The clock of each zone changes as the table states, soon after the moment in the table."""
    zone = ZoneInfo(change.partition(" ")[0])
    before, _, after = CHANGES[change][0].partition(" -> ")
    start = datetime.fromisoformat(CHANGES[change][1]).astimezone(UTC)
    minutes = [start + timedelta(minutes=count) for count in range(181)]
    jumps = [
        (f"{(one.astimezone(zone) + timedelta(minutes=1)).replace(fold=0):%H:%M}", f"{other.astimezone(zone):%H:%M}")
        for one, other in itertools.pairwise(minutes)
        if one.astimezone(zone).utcoffset() != other.astimezone(zone).utcoffset()
    ]
    assert jumps == [(before, after)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cron", ["* * * * *", "*/7 * * * *", "30 2 * * *", "@every 90s", "*/10 * * * * *"])
def test_a_clock_change_neither_repeats_nor_omits_runs(change: str, cron: str) -> None:
    """In the four hours around a clock change, no schedule runs twice in one second, and no run is omitted."""
    zone = ZoneInfo(change.partition(" ")[0])
    start = datetime.fromisoformat(CHANGES[change][1]).astimezone(UTC)
    schedule, moment, times = parse_cron(cron, zone=zone), start, list[datetime]()
    while (moment := schedule.next_after(moment).astimezone(UTC)) <= start + timedelta(hours=4):
        times.append(moment)
    assert len(set(times)) == len(times) == len({time.replace(microsecond=0) for time in times})
    most = {"* * * * *": 240, "30 2 * * *": 1, "@every 90s": 160, "*/10 * * * * *": 1440}.get(cron)
    assert most is None or len(times) == most
