"""Validation of requests for devices.

The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover most rules.
"""

import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.resource.device_requests import (
    PARAMETERS_BYTES,
    device_claim_errors,
    document_errors,
    reference_errors,
    request_names,
)
from wharfinger.formats.json.value import JsonObject, JsonValue

DEVICES: JsonObject = {
    "requests": [{"name": "a"}, {"name": "b", "firstAvailable": [{"name": "c"}]}],
}


@pytest.mark.parametrize(
    ("name", "fine"), [("a", True), ("b", True), ("b/c", True), ("c", False), ("a/c", False), ("b/c/d", False)]
)
def test_references_must_name_an_existing_request(name: str, fine: bool) -> None:
    assert (reference_errors(name, "f", request_names(DEVICES)) == []) == fine


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        ({}, []),
        (None, ["FieldValueRequired"]),
        ([], ["FieldValueInvalid"]),
        ("a" * PARAMETERS_BYTES, ["FieldValueTooLong"]),
    ],
)
def test_invalid_parameter_documents_are_refused(value: JsonValue, reasons: list[str]) -> None:
    assert [error.reason for error in document_errors(value, "f", PARAMETERS_BYTES)] == reasons


NAMES = ("requests", "constraints", "config", "exactly", "firstAvailable", "selectors", "cel", "name", "tolerations")


@given(shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(devices: JsonObject) -> None:
    device_claim_errors(devices, "spec.devices")
