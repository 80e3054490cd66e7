from datetime import UTC, datetime, timedelta, timezone

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.kube.times import (
    age,
    format_exact_time,
    format_micro_time,
    format_time,
    human_duration,
    parse_time,
    transition_time,
)

NOW = datetime(2026, 11, 21, 4, 3, 2, 999_999, tzinfo=UTC)


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    assert format_time(NOW) == "2026-11-21T04:03:02Z"
    assert format_time(NOW.astimezone(timezone(timedelta(hours=2)))) == "2026-11-21T04:03:02Z"


def test_times_are_written_with_their_fraction() -> None:
    assert format_micro_time(NOW.astimezone(timezone(timedelta(hours=2)))) == "2026-11-21T04:03:02.999999Z"
    assert format_micro_time(NOW.replace(microsecond=0)) == "2026-11-21T04:03:02.000000Z"
    assert format_exact_time(NOW.astimezone(timezone(timedelta(hours=2)))) == "2026-11-21T04:03:02.999999Z"
    assert format_exact_time(NOW.replace(microsecond=0)) == "2026-11-21T04:03:02Z"


def test_fractions_of_nine_digits_are_read() -> None:
    assert parse_time("2026-11-21T04:03:02.999999123Z") == NOW


def test_written_times_are_read_back() -> None:
    assert parse_time(format_time(NOW)) == NOW.replace(microsecond=0)
    assert parse_time("2026-11-21T04:03:02.5+01:00") is not None
    assert parse_time("2026-11-21T04:03:02") is None
    assert parse_time("soon") is None


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_100, "3h5m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (8 * 86_400, "8d"),
        (729 * 86_400, "729d"),
        (730 * 86_400, "2y"),
        (800 * 86_400, "2y70d"),
        (3000 * 86_400, "8y"),
    ],
)
def test_durations_are_formatted(seconds: int, shown: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == shown


def test_ages_are_formatted() -> None:
    assert age("2026-11-21T04:03:00Z", NOW) == "2s"
    assert age("", NOW) == "<unknown>"
    assert age("nonsense", NOW) == "<unknown>"


_SET = "2026-02-02T00:00:00Z"
_SINCE = "2026-01-01T00:00:00Z"
_OTHER: JsonValue = {"type": "Other", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("before", "time"),
    [
        ([], _SET),
        ([_OTHER], _SET),
        ([_OTHER, {"type": "Ready", "status": "True", "lastTransitionTime": _SINCE}], _SINCE),
        ([{"type": "Ready", "status": "False", "lastTransitionTime": _SINCE}], _SET),
        ([{"type": "Ready", "status": "True"}, "no condition"], _SET),
    ],
)
def test_a_condition_with_the_same_status_retains_its_time(before: list[JsonValue], time: str) -> None:
    assert transition_time(before, "Ready", "True", _SET) == time
