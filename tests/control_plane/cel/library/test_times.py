"""CEL functions that return the parts of timestamps and durations."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("timestamp('2026-01-02T03:04:05.006Z').getFullYear()", 2026),
        ("timestamp('2026-01-02T03:04:05Z').getMonth()", 0),
        ("timestamp('2026-01-02T03:04:05Z').getDayOfWeek()", 5),
        ("timestamp('2026-01-02T03:04:05Z').getHours('+02:00')", 5),
        ("timestamp('2026-01-02T03:04:05Z').getHours('Europe/Nowhere')", "unknown time zone Europe/Nowhere"),
        ("timestamp('2026-01-02T03:04:05Z').getHours('²:00')", "unknown time zone ²:00"),
        ("timestamp('2026-01-02T03:04:05Z').getHours('99:99')", "unknown time zone 99:99"),
        ("timestamp('2026-01-02T03:04:05.006Z').getMilliseconds()", 6),
        ("duration('90m').getHours()", 1),
        ("duration('1.5s').getMilliseconds()", 1500),
        ("timestamp('2026-01-02T03:04:05Z').getDayOfYear()", 1),
    ],
)
def test_time_functions_return_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value
