import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.admissionregistration.admission_policies import (
    ADMISSION_POLICY_RULES,
    binding_errors,
    policy_errors,
)
from wharfinger.formats.json.value import JsonObject

RULE: JsonObject = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
MATCH: JsonObject = {
    "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [RULE],
}  # fmt: skip
GOOD: JsonObject = {"failurePolicy": "Fail", "matchConstraints": MATCH, "validations": [{"expression": "true"}]}


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({}, []),
        ({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, []),
        ({"paramKind": {"apiVersion": "a/b/c", "kind": "A"}}, ["spec.paramKind.apiVersion"]),
        ({"paramKind": {"apiVersion": "a/", "kind": "A"}}, ["spec.paramKind.apiVersion"]),
        ({"matchConstraints": None}, ["spec.matchConstraints"]),
        ({"failurePolicy": None}, ["spec.failurePolicy"]),
        ({"validations": []}, ["spec.validations", "spec.auditAnnotations"]),
        ({"variables": [{"name": "a", "expression": "1"}]}, []),
        ({"auditAnnotations": [{"key": "b", "valueExpression": ""}]}, ["spec.auditAnnotations[0].valueExpression"]),
    ],
)
def test_invalid_policy_fields_are_reported(changed: JsonObject, fields: list[str]) -> None:
    policy: JsonObject = {"metadata": {"name": "a"}, "spec": {**GOOD, **changed}}

    assert [error.field for error in policy_errors(policy)] == fields


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"policyName": "a", "validationActions": ["Deny", "Audit"]}, []),
        ({"policyName": "a", "validationActions": ["Deny", "Warn"]}, ["spec.validationActions"]),
        ({"policyName": "a", "validationActions": ["Deny"], "paramRef": {"selector": {}}},
         ["spec.paramRef.parameterNotFoundAction"]),
        ({"policyName": "a", "validationActions": ["Deny"], "matchResources": {}},
         [f"spec.matchResources.{name}" for name in ("matchPolicy", "namespaceSelector", "objectSelector")]),
    ],
)  # fmt: skip
def test_invalid_binding_fields_are_reported(spec: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in binding_errors({"spec": spec})] == fields


@given(
    shapes("spec", "paramKind", "apiVersion", "matchConstraints", "resourceRules", "validations", "variables", "name")
)
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    for rules in ADMISSION_POLICY_RULES.values():
        rules.create(obj)
        rules.update(obj, {})
