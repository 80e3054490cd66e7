"""Schedules, durations, integers and time zones, parsed as a real API server parses them in Go."""

import pytest

from wharfinger.control_plane.api.batch.cron_schedules import (
    duration_problem,
    integer_problem,
    schedule_problem,
    zone_problem,
)


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-3 1,15 JAN-mar sun",
        "? ? ? ? ?",
        "@hourly",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
        "1/2 * * * *",
        ", * * * *",
    ],
)
def test_valid_schedules_are_accepted(schedule: str) -> None:
    assert schedule_problem(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("* *", "expected exactly 5 fields, found 2: [* *]"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("TZ=x", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
    ],
)
def test_invalid_schedules_are_refused(schedule: str, problem: str) -> None:
    assert schedule_problem(schedule) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0", ""),
        ("-1.5h", ""),
        ("", 'time: invalid duration ""'),
        ("1", 'time: missing unit in duration "1"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        (".h", 'time: invalid duration ".h"'),
        ("9" * 40 + "h", f'time: invalid duration "{"9" * 40}h"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
    ],
)
def test_durations_are_parsed_as_in_go(text: str, problem: str) -> None:
    assert duration_problem(text) == problem


def test_integers_out_of_range_are_refused() -> None:
    assert integer_problem("9" * 19).endswith("value out of range")
    assert integer_problem("-12") == ""


@pytest.mark.parametrize(
    ("zone", "problem"),
    [
        ("", ""),
        ("Local", ""),
        ("Europe/Berlin", ""),
        ("../x", "time: invalid location name"),
        ("No/Where", "unknown time zone No/Where"),
        ("a/" * 5000 + "a", f"unknown time zone {'a/' * 5000}a"),
    ],
)
def test_unknown_time_zones_are_refused(zone: str, problem: str) -> None:
    assert zone_problem(zone) == problem
