"""Fields of encoded snapshots: durations as text for users, and fields with a fixed type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.debug.fields import duration, find_texts, read_flag, read_time
from wharfinger.formats.json.value import JsonValue, ShapeError
from wharfinger.kube.times import format_exact_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (0.9994, "999ms"),
        (0.9996, "1.0s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (245, "4m05s"),
        (3599.6, "1h00m"),
        (10_940, "3h02m"),
        (86_400 * 2 + 3600 * 7, "2d07h"),
        (-14.2, "-14.2s"),
    ],
)
def test_durations_are_printed_with_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e9))
def test_printed_durations_are_accurate_to_five_percent(seconds: float) -> None:
    text = duration(seconds)
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    read = 0.0
    if text.endswith("ms"):
        read = float(text[:-2]) / 1000
    else:
        number = ""
        for character in text:
            if character in units:
                read += float(number) * units[character]
                number = ""
            else:
                number += character
    assert read == pytest.approx(seconds, rel=0.05, abs=0.001)


def test_times_are_read_in_utc() -> None:
    moment = read_time({"at": "2026-05-17T15:30:45.123456+03:00"}, "at")
    assert format_exact_time(moment) == "2026-05-17T12:30:45.123456Z"
    for wrong, why in (
        ("yesterday", "at: expected a time with a time zone, found 'yesterday'"),
        ("2026-05-17T12:30:45", "expected a time with a time zone"),
    ):
        with pytest.raises(ShapeError, match=why):
            read_time({"at": wrong}, "at")


def test_flags_and_texts_may_be_missing_but_not_of_another_type() -> None:
    document: JsonValue = {"a": {"on": True, "names": ["x", "y"]}, "odd": [1]}
    assert find_texts(document, "a", "names") == ("x", "y")
    assert find_texts(document, "a", "others") == ()
    with pytest.raises(ShapeError, match="odd: expected a string, found an integer"):
        find_texts(document, "odd")
    with pytest.raises(ShapeError, match="odd: expected a boolean, found a list"):
        read_flag(document, "odd")
    with pytest.raises(ShapeError, match="off: expected a boolean"):
        read_flag(document, "off")
