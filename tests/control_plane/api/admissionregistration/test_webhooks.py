import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.admissionregistration.webhooks import configuration_errors
from wharfinger.formats.json.value import JsonObject, JsonValue

RULE: JsonObject = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def hook(**fields: JsonValue) -> JsonObject:
    given: JsonObject = {
        "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://a"},
    }  # fmt: skip
    return {"webhooks": [{**given, **fields}]}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, []),
        ({"name": ""}, ["webhooks[0].name"]),
        ({"name": "a.b"}, ["webhooks[0].name"]),
        ({"timeoutSeconds": 0}, ["webhooks[0].timeoutSeconds"]),
        ({"timeoutSeconds": 30}, []),
        ({"sideEffects": None}, ["webhooks[0].sideEffects"]),
        ({"reinvocationPolicy": "Odd"}, ["webhooks[0].reinvocationPolicy"]),
        ({"admissionReviewVersions": []}, ["webhooks[0].admissionReviewVersions"]),
        ({"admissionReviewVersions": ["v9"]}, ["webhooks[0].admissionReviewVersions"]),
        ({"admissionReviewVersions": ["v9", "v1"]}, []),
        ({"matchConditions": [{"name": "a", "expression": "true"}] * 2}, ["webhooks[0].matchConditions[1].name"]),
        (
            {"matchConditions": [{"name": str(n), "expression": "true"} for n in range(65)]},
            ["webhooks[0].matchConditions"],
        ),
        ({"rules": [{**RULE, "scope": "*"}]}, []),
        ({"rules": [{**RULE, "scope": "Odd"}]}, ["webhooks[0].rules[0].scope"]),
        ({"rules": [{**RULE, "resources": ["*", "*/status"]}]}, []),
        ({"rules": [{**RULE, "resources": ["*", "pods"]}]}, ["webhooks[0].rules[0].resources"]),
        ({"rules": [{**RULE, "resources": ["pods/*", "pods/log"]}]}, ["webhooks[0].rules[0].resources[1]"]),
        ({"rules": [{**RULE, "operations": ["*", "CREATE"]}]}, ["webhooks[0].rules[0].operations"]),
    ],
)
def test_invalid_webhook_fields_are_reported(fields: JsonObject, found: list[str]) -> None:
    assert [error.field for error in configuration_errors(hook(**fields))] == found


@given(shapes("webhooks", "rules", "resources", "operations", "clientConfig", "matchConditions", "name"))
def test_arbitrary_objects_do_not_crash(configuration: JsonObject) -> None:
    configuration_errors(configuration)
