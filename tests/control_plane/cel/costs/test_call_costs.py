"""The costs of function calls in CEL expressions."""

import pytest

from wharfinger.control_plane.cel.costs.call_costs import call_cost
from wharfinger.control_plane.cel.values.values import Opaque, Value


@pytest.mark.parametrize(
    ("function", "given", "cost"),
    [
        ("_==_", ["a" * 50, "b" * 20], 2),
        ("_+_", ["a" * 50, "b" * 20], 7),
        ("_+_", [1, 2], 1),
        ("@in", [1, [1, 2, 3]], 3),
        ("matches", ["a" * 9, "b" * 8], 2),
        ("contains", ["a" * 20, "b" * 20], 4),
        ("sum", [[1, 2, 3]], 3),
        ("split", ["a" * 20, ","], 4),
        ("url", ["a" * 20], 2),
        ("ip", [Opaque("net.IP", "::1")], 2),
        ("validate", [Opaque("kubernetes.NamedFormat", "x"), "a" * 10], 32),
        ("optional.none", [], 1),
    ],
)
def test_the_cost_of_a_call_depends_on_its_arguments(function: str, given: list[Value], cost: int) -> None:
    assert call_cost(function, (), given, None) == cost
