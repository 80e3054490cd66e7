import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.apiregistration.api_services import API_SERVICE_RULES, api_service_errors
from wharfinger.formats.json.value import JsonObject, find_object

GOOD: JsonObject = {"group": "a.b", "version": "v1", "groupPriorityMinimum": 20000, "versionPriority": 1000}
RULES = API_SERVICE_RULES["APIService.apiregistration.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"metadata": {"name": "v1.a.b"}, "spec": GOOD}, []),
        ({"metadata": {"name": "v1.c"}, "spec": GOOD}, ["metadata.name"]),
        ({"spec": {**GOOD, "group": "", "version": "v1"}}, []),
        ({"spec": {**GOOD, "group": "", "version": "v2"}}, ["spec.group"]),
        (
            {"spec": {**GOOD, "caBundle": "eA==", "insecureSkipTLSVerify": True}},
            ["spec.caBundle", "spec.insecureSkipTLSVerify"],
        ),
        (
            {"spec": {**GOOD, "service": {"port": 0}}},
            ["spec.service.namespace", "spec.service.name", "spec.service.port"],
        ),
    ],
)
def test_invalid_api_service_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    spec = find_object(one, "spec")
    named: JsonObject = {"metadata": {"name": f"{spec['version']}.{spec['group']}"}, **one}
    assert [error.field for error in api_service_errors(named)] == fields


def test_conditions_have_a_status() -> None:
    new: JsonObject = {"status": {"conditions": [{"status": "True"}, {"status": "Odd"}]}}

    assert [error.field for error in RULES.status(new, {})] == ["status.conditions[1].status"]


NAMES = ("metadata", "name", "spec", "service", "status", "conditions", "group", "version")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
