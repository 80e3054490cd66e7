"""Durations: the cases of Go's own tests, invalid texts, and round trips."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.duration import MAX_CHARACTERS, DurationError, format_duration, parse_duration, parse_time_limit

US = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0", timedelta()),
        ("5s", timedelta(seconds=5)),
        ("30s", timedelta(seconds=30)),
        ("1478s", timedelta(seconds=1478)),
        ("+5s", timedelta(seconds=5)),
        ("-0", timedelta()),
        ("+0", timedelta()),
        ("5.0s", timedelta(seconds=5)),
        ("5.6s", timedelta(seconds=5.6)),
        ("5.s", timedelta(seconds=5)),
        (".5s", timedelta(seconds=0.5)),
        ("1.004s", timedelta(milliseconds=1004)),
        ("100.00100s", timedelta(milliseconds=100_001)),
        ("10ns", timedelta()),
        ("1999ns", US),
        ("11us", 11 * US),
        ("12\u00b5s", 12 * US),
        ("12\u03bcs", 12 * US),
        ("13ms", timedelta(milliseconds=13)),
        ("15m", timedelta(minutes=15)),
        ("16h", timedelta(hours=16)),
        ("3h30m", timedelta(hours=3.5)),
        ("10.5s4m", timedelta(minutes=4, seconds=10.5)),
        ("1h2m3s4ms5us6ns", timedelta(hours=1, minutes=2, seconds=3, milliseconds=4, microseconds=5)),
        ("52763797000ns", timedelta(microseconds=52_763_797)),
        ("0.3333333333333333333h", timedelta(microseconds=1_199_999_999)),
        ("0.100000000000000000000h", timedelta(minutes=6)),
        ("9007199254740993ns", timedelta(microseconds=9_007_199_254_740)),
        ("9223372036854775807ns", timedelta(microseconds=9_223_372_036_854_775)),
        ("1s1s", timedelta(seconds=2)),
    ],
)
def test_durations_are_parsed(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["-5s", "-2m3.4s", "-9223372036854775808ns"])
def test_negative_durations_are_accepted_on_request(text: str) -> None:
    with pytest.raises(DurationError, match="must not be negative"):
        parse_duration(text)
    assert parse_duration(text, negative=True) == -parse_duration(text.replace("8ns", "7ns")[1:])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no number"),
        ("-", "it has no number"),
        ("3", "no unit after '3'"),
        ("00", "no unit"),
        ("3000h3", "no unit after '3'"),
        ("s", "expected a number"),
        (".", "expected a number"),
        ("-.", "expected a number"),
        (".s", "expected a number"),
        ("+.s", "expected a number"),
        ("--5s", "expected a number"),
        (" 5s", "expected a number"),
        ("1d", "unknown unit 'd'"),
        ("1.2.3s", "no unit after '1.2'"),
        ("5s ", "unknown unit 's '"),
        ("1e3s", "unknown unit 'e'"),
        ("\u0661s", "expected a number"),
        ("3000000h", "292 years"),
        ("9223372036854775808ns", "292 years"),
        ("9223372036854775.808us", "292 years"),
        ("1" * (MAX_CHARACTERS - 1) + "s", "292 years"),
        ("1" * MAX_CHARACTERS + "s", "over the limit"),
    ],
)
def test_invalid_durations_are_refused(text: str, why: str) -> None:
    with pytest.raises(DurationError, match=why):
        parse_duration(text)


def test_negative_durations_over_the_limit_are_refused() -> None:
    with pytest.raises(DurationError, match="292 years"):
        parse_duration("-9223372036854775809ns", negative=True)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(), "0s"),
        (US, "1\u00b5s"),
        (1100 * US, "1.1ms"),
        (timedelta(milliseconds=300), "300ms"),
        (timedelta(seconds=2.2), "2.2s"),
        (timedelta(minutes=3, seconds=3.03), "3m3.03s"),
        (timedelta(minutes=5), "5m0s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(hours=100, microseconds=1), "100h0m0.000001s"),
        (-timedelta(minutes=1, milliseconds=1), "-1m0.001s"),
    ],
)
def test_durations_are_formatted_as_in_go(length: timedelta, text: str) -> None:
    assert format_duration(length) == text


@given(st.integers(-(2**62) // 1000, 2**62 // 1000).map(lambda count: count * US))
def test_durations_round_trip(length: timedelta) -> None:
    assert parse_duration(format_duration(length), negative=True) == length


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["us", "ms", "s", "m"])), min_size=1, max_size=5))
def test_terms_of_a_duration_add_up(terms: list[tuple[int, str]]) -> None:
    whole = parse_duration("".join(f"{count}{unit}" for count, unit in terms))
    assert whole == sum((parse_duration(f"{count}{unit}") for count, unit in terms), timedelta())


@pytest.mark.parametrize(
    ("text", "seconds"), [("15", 15), ("0", 0), ("1.5", 1.5), (".5", 0.5), ("15s", 15), ("1m30s", 90), ("2m", 120)]
)
def test_a_time_limit_may_be_a_bare_number_of_seconds(text: str, seconds: float) -> None:
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize("text", ["-1", "1e3", "nan", "inf", "", "5 m", "1m30", "\u0661"])
def test_invalid_time_limits_are_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_time_limit(text)
