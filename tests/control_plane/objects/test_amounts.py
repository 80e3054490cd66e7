"""Counts and percentages in fields such as ``maxSurge``."""

import pytest

from wharfinger.control_plane.objects.amounts import (
    above_hundred_percent,
    count_of,
    count_or_percent_errors,
    none_negative,
    not_above,
    number,
    optional_number,
    text,
)
from wharfinger.formats.json.value import JsonValue


@pytest.mark.parametrize(
    ("value", "count"), [("25%", 25), ("x", 0), ("7", 7), (3, 3), (None, 0), ("9" * 25 + "%", 2**63 - 1)]
)
def test_counts_are_read_from_any_value(value: JsonValue, count: int) -> None:
    assert count_of(value) == count


@pytest.mark.parametrize(("value", "wrong"), [("25%", 0), ("x", 1), ("-1%", 1), (-1, 1), (0, 0), (None, 0)])
def test_invalid_counts_and_percentages_are_reported(value: JsonValue, wrong: int) -> None:
    assert len(count_or_percent_errors(value, "p")) == wrong


def test_percentages_above_a_hundred_are_refused() -> None:
    assert not above_hundred_percent("100%", "p")
    assert not above_hundred_percent(101, "p")
    assert [str(error) for error in above_hundred_percent("101%", "p")] == [
        'p: Invalid value: "101%": must not be greater than 100%'
    ]


def test_members_of_other_types_read_as_absent() -> None:
    assert (number({"a": True}, "a"), optional_number({"a": "1"}, "a"), text({"a": 1}, "a")) == (0, None, "")
    assert not none_negative(None, "status", ["a"])
    assert not none_negative({"a": "-1"}, "status", ["a"])


def test_a_member_above_its_bound_is_refused() -> None:
    found = not_above({"a": 2, "b": 1}, "status", [("a", "b", "status.b"), ("b", "a", "status.a")])
    assert [str(error) for error in found] == ["status.a: Invalid value: 2: cannot be greater than status.b"]
