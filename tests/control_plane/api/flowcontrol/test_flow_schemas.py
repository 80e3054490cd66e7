import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.flowcontrol.flow_schemas import FLOW_SCHEMA_RULES, flow_schema_errors
from wharfinger.formats.json.value import JsonObject

GOOD: JsonObject = {"matchingPrecedence": 10, "priorityLevelConfiguration": {"name": "a"}}
ALL: JsonObject = {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "a"}}
PODS: JsonObject = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
RULES = FLOW_SCHEMA_RULES["FlowSchema.flowcontrol.apiserver.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"spec": GOOD}, []),
        ({"spec": {**GOOD, "matchingPrecedence": 1}}, ["spec.matchingPrecedence"]),
        ({"metadata": {"name": "exempt"}, "spec": {**GOOD, "matchingPrecedence": 1}}, []),
        ({"spec": {**GOOD, "rules": [{"subjects": [ALL], "resourceRules": [{**PODS, "clusterScope": True}]}]}}, []),
        (
            {"spec": GOOD, "status": {"conditions": [{}, {}]}},
            ["status.conditions[0].type", *["status.conditions[1].type"] * 2],
        ),
    ],
)
def test_invalid_flow_schema_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in flow_schema_errors(one)] == fields


def test_mandatory_schemas_are_immutable() -> None:
    old: JsonObject = {"metadata": {"name": "catch-all"}, "spec": GOOD}
    (error,) = RULES.update({**old, "spec": {**GOOD, "matchingPrecedence": 3}}, old)

    assert error.message.endswith("spec of 'catch-all' must equal the fixed value")


NAMES = (
    "spec",
    "rules",
    "subjects",
    "kind",
    "user",
    "resourceRules",
    "verbs",
    "nonResourceRules",
    "status",
    "conditions",
)


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
