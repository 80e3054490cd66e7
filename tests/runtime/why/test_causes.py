"""The functions and types from which the causes of `wharfinger why` are composed."""

from datetime import UTC, datetime

import pytest

from tests.runtime.support.explained import forbidden, known, node
from wharfinger.runtime.why.causes import MAX_TEXT, Cause, moment_after, one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a", "a"),
        (" a\n\tb  c ", "a b c"),
        ("x" * MAX_TEXT, "x" * MAX_TEXT),
        ("x" * (MAX_TEXT + 1), "x" * (MAX_TEXT - 1) + "…"),
        ("a " * 10 * MAX_TEXT, ("a " * MAX_TEXT)[: MAX_TEXT - 1] + "…"),
    ],
)
def test_messages_are_one_line_of_limited_length(text: str, line: str) -> None:
    assert one_line(text) == line


def test_future_times_are_printed_with_the_remaining_time() -> None:
    assert moment_after(datetime(2026, 5, 17, 23, 59, 50, tzinfo=UTC), 13.4) == "00:00:03 UTC (in 13 s)"
    assert moment_after(datetime(2026, 5, 17, 12, tzinfo=UTC), -1) == "11:59:59 UTC (in 0 s)"


def test_a_cause_is_printed_in_one_line() -> None:
    assert Cause("fails", "for a reason").line == "fails: for a reason"
    assert Cause("waits for db").line == "waits for db"


def test_known_packages_are_on_or_off() -> None:
    here = known(node("on"), node("off", votes=(forbidden("DynamicallyDisabled"),)))
    assert [name for name in ("on", "off", "absent") if here.is_on(name)] == ["on"]
