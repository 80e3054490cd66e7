"""Estimates."""

import pytest

from tests.cluster.control_plane.cel.evaluating import cost_of
from wharfinger.cluster.control_plane.cel.costs import MOST, Range


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
def test_estimates(text: str, cost: int) -> None:
    assert cost_of(text) == cost


def test_ranges_end() -> None:
    assert (
        Range(0, MOST).plus(Range(1, 1)).high
        == Range(2, MOST).times(Range(2, 2)).high
        == Range(0, MOST).scaled(2).high
        == MOST
    )
