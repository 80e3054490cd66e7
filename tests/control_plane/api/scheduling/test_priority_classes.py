import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.scheduling.priority_classes import HIGHEST, PRIORITY_RULES, priority_class_errors
from wharfinger.formats.json.value import JsonObject, JsonValue

RULES = PRIORITY_RULES["PriorityClass.scheduling.k8s.io"]


def priority_class(name: str, value: int, **fields: JsonValue) -> JsonObject:
    return {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never", **fields}


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (priority_class("a", HIGHEST), ""),
        (priority_class("a", -HIGHEST), ""),
        (priority_class("a", HIGHEST + 1), "value: Forbidden: maximum allowed value"),
        (priority_class("a", 0, preemptionPolicy="Odd"), 'preemptionPolicy: Unsupported value: "Odd"'),
        (priority_class("system-node-critical", 2_000_001_000), ""),
        (priority_class("system-node-critical", 1), "must be 2000001000"),
        (priority_class("system-cluster-critical", 2_000_000_000, globalDefault=True), "must be false"),
        (priority_class("system-own", 1), "system-own is not a known system priority class"),
    ],
)
def test_invalid_priority_classes_are_refused(one: JsonObject, said: str) -> None:
    errors = [str(error) for error in priority_class_errors(one)]

    assert not errors if not said else said in errors[0]


def test_value_and_preemption_policy_are_immutable() -> None:
    new, old = priority_class("a", 2, preemptionPolicy="PreemptLowerPriority"), priority_class("a", 1)

    assert [error.field for error in RULES.update(new, old)] == ["value", "preemptionPolicy"]
    assert RULES.update({**old, "description": "x"}, old) == []


@given(shapes("metadata", "name", "value", "preemptionPolicy", "globalDefault"))
def test_arbitrary_objects_do_not_crash(one: JsonObject) -> None:
    RULES.create(one)
    RULES.update(one, {})
