"""The estimated costs of CEL expressions."""

import pytest

from tests.control_plane.support.cel_evaluating import cost_of


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("1 + 2 == 3", 2),
        ("'aaaaaaaaaa'.contains('a')", 1),
        ("[1, 2].all(x, x > 0)", 21),
        ("['a'].map(x, x + x)", 35),
        ("lists.range(5).size() > 1", 18),
    ],
)
def test_costs_of_expressions_are_estimated(text: str, cost: int) -> None:
    assert cost_of(text) == cost
