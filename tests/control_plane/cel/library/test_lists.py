"""CEL functions of lists and sets."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[2, 1].sort()", [1, 2]),
        ("[1, 2].isSorted()", True),
        ("[1, 2].sum()", 3),
        ("[].max()", "max called on empty list"),
        ("['b', 'a'].sortBy(x, x)", ["a", "b"]),
        ("[[1], [2]].flatten()", [1, 2]),
        ("[1, 1].distinct()", [1]),
        ("[1, 2, 3].slice(1, 2)", [2]),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
        ("[1, 2].reverse()", [2, 1]),
        ("[1].first().value()", 1),
        ("[].last().hasValue()", False),
        ("sets.equivalent([1], [1, 1])", True),
        ("sets.intersects([1], [2])", False),
        ("[1, 2, 1].lastIndexOf(1)", 2),
    ],
)
def test_list_functions_return_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value
