"""Validation of the request policies of device capacities.

The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover the messages.
"""

import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.resource.device_capacities import capacity_errors
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        ({}, []),
        ({"default": "1", "validValues": ["1", "2"]}, []),
        ({"default": "3", "validValues": ["1", "2"]}, ["validValues"]),
        ({"default": "1", "validValues": [str(number) for number in range(1, 12)]}, ["validValues", "validValues"]),
        ({"default": "2", "validRange": {"min": "1", "max": "3", "step": "1"}}, []),
        ({"default": "2", "validRange": {"min": "1", "step": "0"}}, ["validRange.step"]),
        ({"default": "2", "validRange": {"min": "1", "step": "9"}}, ["validRange.step", "validRange.step"]),
    ],
)
def test_invalid_request_policies_are_reported(policy: JsonObject, fields: list[str]) -> None:
    found = capacity_errors({"value": "8", "requestPolicy": policy}, "c", shared=True)

    assert [error.field.removeprefix("c.requestPolicy.") for error in found] == fields


def test_only_shared_devices_have_policies() -> None:
    assert len(capacity_errors({"value": "8", "requestPolicy": {}}, "c", shared=False)) == 1
    assert capacity_errors({"value": "8"}, "c", shared=False) == []


@given(shapes("value", "requestPolicy", "default", "validValues", "validRange", "min", "max", "step"))
def test_arbitrary_objects_do_not_crash(capacity: JsonObject) -> None:
    capacity_errors(capacity, "c", shared=True)
