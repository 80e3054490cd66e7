import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.admissionregistration.mutating_policies import (
    MUTATING_POLICY_RULES,
    binding_errors,
    policy_errors,
)
from wharfinger.formats.json.value import JsonObject

RULE: JsonObject = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
MATCH: JsonObject = {
    "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [RULE],
}  # fmt: skip
APPLIED: JsonObject = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
GOOD: JsonObject = {
    "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": MATCH, "mutations": [APPLIED],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({}, []),
        ({"mutations": []}, ["spec.mutations"]),
        ({"reinvocationPolicy": "Odd"}, ["spec.reinvocationPolicy"]),
        ({"reinvocationPolicy": ""}, ["spec.reinvocationPolicy"]),
        ({"mutations": [{**APPLIED, "jsonPatch": {"expression": "[]"}}]}, ["spec.mutations[0].jsonPatch"]),
        ({"mutations": [{"patchType": "JSONPatch"}]}, ["spec.mutations[0].jsonPatch"]),
        ({"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[1]"}}]},
         ["spec.mutations[0].jsonPatch.expression"]),
        ({"matchConstraints": {**MATCH, "resourceRules": [{**RULE, "operations": ["DELETE"]}]}},
         ["spec.matchConstraints.resourceRules.operations"]),
    ],
)  # fmt: skip
def test_invalid_policy_fields_are_reported(changed: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in policy_errors({"spec": {**GOOD, **changed}})] == fields


def test_invalid_binding_fields_are_reported() -> None:
    match: JsonObject = {**MATCH, "resourceRules": [{**RULE, "operations": ["DELETE"]}]}
    spec: JsonObject = {"policyName": "a", "matchResources": match, "paramRef": {}}

    assert [error.field for error in binding_errors({"spec": spec})] == [
        "spec.paramRef", "spec.paramRef.parameterNotFoundAction", "spec.matchResources.resourceRules.operations",
    ]  # fmt: skip
    assert [error.field for error in binding_errors({"spec": {}})] == ["spec.policyName"]


@given(
    shapes("spec", "matchConstraints", "resourceRules", "mutations", "patchType", "applyConfiguration", "expression")
)
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    for rules in MUTATING_POLICY_RULES.values():
        rules.create(obj)
        rules.update(obj, {})
