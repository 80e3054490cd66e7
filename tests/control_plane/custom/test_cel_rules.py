"""The evaluation of CEL rules on custom resources. Recordings of a real API server cover most cases."""

from wharfinger.control_plane.custom.cel_rules import BUDGET, RuleSet
from wharfinger.control_plane.custom.correlation import Pair
from wharfinger.formats.json.value import JsonObject

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "a": {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self > 1", "reason": "FieldValueDuplicate"},
                {"rule": "self == oldSelf"},
            ],
        }
    },
    "x-kubernetes-validations": [
        {
            "rule": "oldSelf.hasValue() || has(self.a)",
            "optionalOldSelf": True,
            "reason": "FieldValueRequired",
            "fieldPath": ".a",
        }
    ],
}


def test_failed_rules_give_errors_and_warnings() -> None:
    rules = RuleSet(SCHEMA, root=False)
    assert rules
    outcome = rules.errors({"a": 1}, {"a": 2}, BUDGET)
    assert [str(error) for error in outcome.errors] == [
        "a: Duplicate value: 1",
        "a: Invalid value: 1: failed rule: self == oldSelf",
    ]
    assert outcome.left < BUDGET
    pair = Pair({"a": 1}, {"a": 1}, SCHEMA)
    assert rules.errors({"a": 1}, {"a": 1}, BUDGET, pair=pair).warnings == ("a: Duplicate value: 1",)
    assert [str(error) for error in rules.errors({}, None, BUDGET).errors] == [
        "a: Required value: failed rule: oldSelf.hasValue() || has(self.a)"
    ]


def test_rules_over_the_cost_budget_are_errors() -> None:
    outcome = RuleSet(SCHEMA, root=False).errors({"a": 1}, {"a": 1}, 1)
    assert outcome.left < 0
    assert "running out of cost budget" in str(outcome.errors[-1])


def test_a_schema_without_rules_costs_nothing() -> None:
    assert not RuleSet({"type": "object"}, root=True)
    assert RuleSet({"type": "object"}, root=True).errors({}, None, 5).left == 5
