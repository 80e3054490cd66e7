"""Validation of the conditions and the selectors of PodDisruptionBudgets."""

from wharfinger.control_plane.api.policy.disruption_budgets import budget_update_errors, conditions_errors
from wharfinger.formats.json.value import JsonObject


def test_invalid_conditions_are_reported() -> None:
    bad: JsonObject = {
        "type": "a b",
        "status": "Maybe",
        "observedGeneration": -1,
        "reason": "1",
        "message": "x" * 32769,
    }
    fields = [error.field for error in conditions_errors([bad, {"type": "a b", "reason": "r" * 1025}], "c")]
    assert {"c[0].type", "c[0].status", "c[0].observedGeneration", "c[0].lastTransitionTime", "c[0].reason"} <= {
        *fields
    }
    assert {"c[0].message", "c[1].type", "c[1].reason"} <= {*fields}


def test_invalid_label_values_of_an_old_selector_are_tolerated() -> None:
    obj: JsonObject = {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]}}}
    assert not budget_update_errors(obj, obj)
