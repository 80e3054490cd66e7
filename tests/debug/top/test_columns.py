"""The widths of columns that share a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.debug.top.columns import fitted_widths

PAIRS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("natural", "least", "room", "widths"),
    [
        ([5, 5], [1, 1], 20, [5, 5]),
        ([5, 50], [1, 10], 20, [5, 15]),
        ([50, 50], [1, 1], 20, [10, 10]),
        ([50, 12, 3], [5, 5, 3], 20, [9, 8, 3]),
        ([50, 50], [15, 15], 20, [15, 15]),
        ([3, 50], [10, 10], 8, [3, 8]),
    ],
)
def test_the_widest_column_shrinks_first(natural: list[int], least: list[int], room: int, widths: list[int]) -> None:
    assert fitted_widths(natural, least, room) == widths


@given(PAIRS, st.integers(1, 200))
def test_columns_fit_unless_their_minimum_widths_do_not(pairs: list[tuple[int, int]], room: int) -> None:
    natural, least = [one for one, _ in pairs], [other for _, other in pairs]
    widths = fitted_widths(natural, least, room)
    assert all(width <= whole for width, whole in zip(widths, natural, strict=True))
    assert all(width >= min(pair, room) for width, pair in zip(widths, map(min, pairs), strict=True))
    assert sum(widths) <= max(room, sum(map(min, pairs)))
    if sum(natural) <= room:
        assert widths == natural
