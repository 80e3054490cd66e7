import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.storage.attributes_classes import ATTRIBUTES_CLASS_RULES, attributes_class_errors
from wharfinger.formats.json.value import JsonObject

RULES = ATTRIBUTES_CLASS_RULES["VolumeAttributesClass.storage.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"driverName": "a.b", "parameters": {"a": "b"}}, []),
        ({}, ["driverName", "parameters"]),
        ({"driverName": "-", "parameters": {"": "b"}}, ["driverName", "parameters"]),
    ],
)
def test_invalid_attributes_class_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in attributes_class_errors(one)] == fields


NAMES = ("driverName", "parameters")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
