"""The option for the duration of a profile."""

import pytest

from wharfinger.debug.profile.profile import MAX_SECONDS, read_seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("1", 1.0), ("60", MAX_SECONDS), ("0.25", 0.25), ("2.", 2.0), ("07", 7.0), ("30.000", 30.0)]
)
def test_valid_durations_are_parsed(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "0", "0.0", ".5", "61", "60.01", "-1", "+1", "1e1", "nan", "inf", "1,5", "1_0", " 1", "٣", "1.0.0", "1" * 7],
)
def test_invalid_durations_are_refused(text: str) -> None:
    assert read_seconds(text) is None
