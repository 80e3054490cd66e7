"""The standard functions."""

import pytest

from tests.cluster.control_plane.cel.evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ("optional.none().value()", "optional.none() dereference"),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("{'a': 1}.transformMap(k, v, v + 1)['a']", 2),
        ("1 != 2", True),
        ("!false", True),
        ("optional.of([1])[0].value()", 1),
    ],
)
def test_values(text: str, value: object) -> None:
    assert value_of(text) == value
