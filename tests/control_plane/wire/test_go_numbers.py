"""Numbers, as Go formats and converts them."""

import math

import pytest

from wharfinger.control_plane.wire.go_numbers import go_float, go_number, is_multiple, is_whole, native


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1000000.0, "1e+06"),
        (123456.0, "123456"),
        (0.0001, "0.0001"),
        (1e-5, "1e-05"),
        (-2.5, "-2.5"),
        (math.inf, "+Inf"),
        (0.0, "0"),
    ],
)
def test_floats_are_formatted_as_in_go(value: float, text: str) -> None:
    assert go_float(value) == go_number(value) == text


def test_numbers_are_converted_and_classified_as_in_go() -> None:
    assert (native(2**63), native(5), native(10**400)) == (float(2**63), 5, math.inf)
    assert (
        is_whole(2.0),
        is_whole(2.5),
        is_whole(math.nan),
        is_multiple(6, 3),
        is_multiple(0.75, 0.25),
        is_multiple(5.5, 2.0),
    ) == (True, False, False, True, True, False)
