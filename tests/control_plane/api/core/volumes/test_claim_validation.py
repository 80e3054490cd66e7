import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.core.volumes.claim_validation import CLAIM_RULES
from wharfinger.formats.json.value import JsonObject, JsonValue


def claim(size: str = "1Gi", status: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    whole: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": "a", "namespace": "n"}, "spec": whole, "status": status or {"phase": "Pending"}}


BOUND: JsonObject = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "currentVolumeAttributesClassName": "a"}


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (claim(), claim(), ""),
        (claim(volumeName="v"), claim(), ""),
        (claim(storageClassName="a"), claim(), ""),
        (claim("2Gi", BOUND), claim("1Gi", BOUND), ""),
        (claim("2Gi", BOUND, volumeAttributesClassName="a"), claim("3Gi", BOUND, volumeAttributesClassName="b"), ""),
        (claim("1Gi", BOUND), claim("3Gi", BOUND), "field can not be less than status.capacity"),
        (claim("2Gi"), claim("1Gi"), "spec is immutable after creation"),
        (claim(volumeName="v"), claim(volumeName="w"), "spec is immutable after creation"),
        (claim(volumeMode="Block"), claim(volumeMode="Filesystem"), "volumeMode: Invalid value"),
        (claim("1Gi", BOUND), claim("1Gi", BOUND, volumeAttributesClassName="b"), "update to nil is forbidden"),
        (
            claim("1Gi", BOUND, volumeAttributesClassName=""),
            claim("1Gi", BOUND, volumeAttributesClassName="b"),
            "update to empty string is forbidden",
        ),
    ],
)
def test_forbidden_changes_of_claims_are_refused(new: JsonObject, old: JsonObject, said: str) -> None:
    errors = [str(error) for error in CLAIM_RULES.update(new, old)]

    assert not errors if not said else any(said in error for error in errors)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"capacity": {"storage": "-1"}}, "must be a valid resource quantity"),
        ({"allocatedResourceStatuses": {"storage": "Odd"}}, "status.allocatedResourceStatuses: Unsupported value"),
        ({"allocatedResourceStatuses": {"a b": "NodeResizePending"}}, "name part"),
        ({"allocatedResources": {"cpu": "1"}}, 'Unsupported value: "cpu": supported values: "storage"'),
        ({"allocatedResources": {"storage": "-1"}}, "must be a valid resource quantity"),
        ({"allocatedResources": {"storage": "1"}}, ""),
    ],
)
def test_invalid_claim_statuses_are_refused(status: JsonObject, said: str) -> None:
    errors = [str(error) for error in CLAIM_RULES.status(claim(status=status), claim())]

    assert not errors if not said else any(said in error for error in errors)


@given(shapes("spec", "status", "resources", "requests", "storage", "phase", "storageClassName", "dataSource"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    CLAIM_RULES.create(obj), CLAIM_RULES.update(obj, {}), CLAIM_RULES.status(obj, {}), CLAIM_RULES.warnings(obj, None)
