"""CEL durations and timestamps, parsed and formatted."""

import pytest

from wharfinger.control_plane.cel.values.times import format_duration, format_time, parse_date_time, parse_duration


@pytest.mark.parametrize(("text", "value"), [("1h30m", 5400_000_000_000), ("-1.5s", -1_500_000_000), ("0", 0)])
def test_durations_are_parsed(text: str, value: int) -> None:
    assert parse_duration(text) == value


def test_durations_in_words_are_parsed() -> None:
    assert parse_duration("3 days", words=True) == 3 * 86400 * 10**9
    with pytest.raises(ValueError, match="unable to parse"):
        parse_duration("soon", words=True)


def test_times_are_parsed_and_formatted() -> None:
    moment = parse_date_time("2026-01-02T03:04:05.5+01:00")
    assert format_time(moment) == "2026-01-02T02:04:05.5Z"
    assert format_duration(1_500_000_000) == "1.5s"
    with pytest.raises(ValueError, match="parsing time"):
        parse_date_time("x")
