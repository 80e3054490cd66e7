import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.storage.storage_classes import STORAGE_CLASS_RULES, storage_class_errors
from wharfinger.formats.json.value import JsonObject

RULES = STORAGE_CLASS_RULES["StorageClass.storage.k8s.io"]
GOOD: JsonObject = {"provisioner": "A.b/c", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({}, []),
        ({"provisioner": ""}, ["provisioner"]),
        ({"reclaimPolicy": "Recycle"}, ["reclaimPolicy"]),
        ({"volumeBindingMode": None}, ["volumeBindingMode"]),
        ({"volumeBindingMode": "Odd"}, ["volumeBindingMode"]),
        ({"parameters": {"": "x"}}, ["parameters"]),
        ({"parameters": {str(n): "" for n in range(512)}}, []),
        ({"parameters": {str(n): "" for n in range(513)}}, ["parameters"]),
        ({"parameters": {"a": "x" * 256 * 1024}}, ["parameters"]),
    ],
)
def test_invalid_storage_class_fields_are_reported(changed: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in storage_class_errors({**GOOD, **changed})] == fields


def test_parameters_and_provisioner_are_immutable() -> None:
    new: JsonObject = {**GOOD, "parameters": {"a": "b"}, "provisioner": "x", "allowVolumeExpansion": True}

    assert [error.field for error in RULES.update(new, GOOD)] == ["parameters", "provisioner"]


@given(shapes("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"))
def test_arbitrary_objects_do_not_crash(one: JsonObject) -> None:
    RULES.create(one)
    RULES.update(one, {})
