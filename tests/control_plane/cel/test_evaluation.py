"""The evaluation of CEL expressions."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && true", "division by zero"),
        ("[1, 2].exists(x, 1 / (x - 1) == 1)", True),
        ("{'a': 1}.b", "no such key: b"),
        ("has({'a': 1}.a)", True),
        ("{'a': 1}.?b.orValue(2)", 2),
        ("[1][?3].hasValue()", False),
        ("[?optional.none(), 1]", [1]),
        ("[1, 2].map(x, x * 2)", [2, 4]),
        ("{'a': 1}.all(k, k == 'a')", True),
        ("[3, 1].transformList(i, v, i + v)", [3, 2]),
        ("optional.of(1).optMap(x, x + 1).value()", 2),
        ("optional.none().or(optional.of(3)).value()", 3),
        (
            "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
            "operation cancelled: actual cost limit exceeded",
        ),
        ("dyn(1) ? 1 : 2", "no such overload"),
        ("type(1) == int", True),
    ],
)
def test_expressions_evaluate_to_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value
