from fractions import Fraction

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.quantity import parse_quantity


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1", Fraction(1)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("1.5Gi", Fraction(3, 2) * 2**30),
        (".5k", Fraction(500)),
        ("5.", Fraction(5)),
        ("2e3", Fraction(2000)),
        ("2E-3", Fraction(2, 1000)),
        ("2E", Fraction(2 * 10**18)),
        ("+1", Fraction(1)),
        ("-1n", Fraction(-1, 10**9)),
    ],
)
def test_quantities_are_parsed_to_exact_numbers(value: JsonValue, number: Fraction) -> None:
    assert parse_quantity(value) == number


@pytest.mark.parametrize("value", ["", ".", "-", "Ki", "1 Ki", "1kB", "1e", "1e1000", "٣", True, None, [], {}])
def test_invalid_quantities_are_none(value: JsonValue) -> None:
    assert parse_quantity(value) is None
