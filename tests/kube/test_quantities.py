"""The conversion of quantities to numbers and back."""

from fractions import Fraction

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.quantity import parse_quantity
from wharfinger.kube.quantities import amount, format_quantity, is_whole, whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", Fraction(1, 2)),
        ("1Ki", Fraction(1024)),
        ("-2e3", Fraction(-2000)),
        (".5", Fraction(1, 2)),
        (3, Fraction(3)),
        ("", None),
        ("x", None),
        (True, None),
        (None, None),
    ],
)
def test_quantities_are_parsed(text: JsonValue, number: Fraction | None) -> None:
    assert parse_quantity(text) == number


def test_whole_numbers_are_rounded_up() -> None:
    assert whole("1500m") == 2
    assert is_whole("2")
    assert not is_whole("0.5")
    assert amount("none") == 0


@pytest.mark.parametrize(
    ("number", "like", "text"),
    [
        (Fraction(2048), "1Ki", "2Ki"),
        (Fraction(1000), "1Ki", "1k"),
        (Fraction(1, 2), "1", "500m"),
        (Fraction(0), "1", "0"),
        (Fraction(-3000), "1", "-3k"),
    ],
)
def test_quantities_are_formatted(number: Fraction, like: str, text: str) -> None:
    assert format_quantity(number, like) == text
