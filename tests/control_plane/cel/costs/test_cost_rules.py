"""The estimated costs of library functions that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.cel_evaluating import cost_of


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("[1, 2, 3].slice(0, 2).size() > 1", 25),
        ("[[1]].flatten().size() > 1", 34),
        ("sets.contains([1], [1])", 22),
        ("'aa'.replace('a', 'bb') == 'x'", 2),
        ("strings.quote('a') == 'x'", 2),
        ("string(b'a') == 'x'", 2),
        ("bytes('a') == b'x'", 2),
        ("['b', 'a'].sort().size() > 1", 32),
    ],
)
def test_costs_of_library_functions_are_estimated(text: str, cost: int) -> None:
    assert cost_of(text) == cost
