"""Validation of whole CustomResourceDefinitions: checks that an update skips. No recording of a real API server covers these."""

from tests.control_plane.support.samples import definition
from wharfinger.control_plane.api.apiextensions.validation import definition_errors, update_errors, warnings
from wharfinger.formats.json.value import JsonObject


def held(schema: JsonObject) -> JsonObject:
    """Return a stored CustomResourceDefinition with this schema."""
    obj = definition(schema={"openAPIV3Schema": schema})
    return {**obj, "status": {"storedVersions": ["v1"]}}


def test_an_update_tolerates_old_violations() -> None:
    lacking: JsonObject = {
        "type": "object",
        "properties": {"l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}},
    }
    said = [str(error) for error in definition_errors(held(lacking)) if "must be atomic" in str(error)]
    assert len(said) == 1
    assert not [error for error in update_errors(held(lacking), held(lacking)) if "must be atomic" in str(error)]


def test_warnings_about_formats_are_not_repeated() -> None:
    odd = held({"type": "object", "properties": {"a": {"type": "string", "format": "odd"}}})
    assert warnings(odd, None) == ['unrecognized format "odd"']
    assert warnings(odd, odd) == []


def test_definitions_of_wrong_types_do_not_crash() -> None:
    wrong: list[JsonObject] = [{}, {"spec": 5}, {"spec": {"versions": [5]}}, {"spec": {"versions": [{"schema": []}]}}]
    for obj in wrong:
        assert definition_errors(obj)
