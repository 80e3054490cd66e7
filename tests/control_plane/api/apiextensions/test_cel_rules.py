"""The estimated costs of CEL rules in the schemas of CustomResourceDefinitions."""

import pytest

from wharfinger.control_plane.api.apiextensions.cel_rules import MAX_COST, RuleScope, TotalCost, cost_text


@pytest.mark.parametrize(
    ("cost", "factor"), [(10_100_000, "1.010000x"), (25_000_000, "2.5x"), (MAX_COST, "more than 100x")]
)
def test_messages_show_by_which_factor_a_cost_is_exceeded(cost: int, factor: str) -> None:
    assert f"by factor of {factor} " in cost_text("x", cost, 10_000_000)


def test_cardinality_is_known_below_bounded_lists() -> None:
    root = RuleScope.root({"type": "array", "maxItems": 3})
    assert root.child({"type": "object", "additionalProperties": True}).cardinality == 3
    assert root.child({"type": "array"}).child({}).cardinality is None


def test_the_four_most_expensive_rules_are_listed() -> None:
    total = TotalCost()
    for cost in (1, 5_000_000, 2_000_000, 9_000_000, 3_000_000, 4_000_000):
        total.add(str(cost), cost)
    assert [cost for cost, _ in total.dearest] == [9_000_000, 5_000_000, 4_000_000, 3_000_000]
