import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.storage.csi_drivers import CSI_DRIVER_RULES, csi_node_errors, driver_errors
from wharfinger.formats.json.value import JsonObject

GOOD: JsonObject = {"attachRequired": True, "podInfoOnMount": False, "storageCapacity": False, "seLinuxMount": False}
RULES = CSI_DRIVER_RULES["CSIDriver.storage.k8s.io"]


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        ({"spec": {}}, ["spec.attachedRequired", "spec.podInfoOnMount", "spec.storageCapacity", "spec.seLinuxMount"]),
        ({"spec": GOOD}, []),
        ({"spec": {**GOOD, "nodeAllocatableUpdatePeriodSeconds": 10, "volumeLifecycleModes": ["Ephemeral"]}}, []),
        (
            {"spec": {**GOOD, "tokenRequests": [{"expirationSeconds": 599}]}},
            ["spec.tokenRequests[0].expirationSeconds"],
        ),
    ],
)
def test_invalid_driver_fields_are_reported(one: JsonObject, fields: list[str]) -> None:
    assert [error.field for error in driver_errors(one)] == fields


@pytest.mark.parametrize(
    ("driver", "fields"),
    [
        ({"name": "A.b", "nodeID": "n" * 256}, []),
        (
            {"name": "a" * 64, "nodeID": "n" * 257},
            ["spec.drivers[0].name", "spec.drivers[0].name", "spec.drivers[0].nodeID"],
        ),
        ({"name": "a", "nodeID": "n", "allocatable": {"count": -1}}, ["spec.drivers[0].allocatable.count"]),
    ],
)
def test_invalid_node_driver_fields_are_reported(driver: JsonObject, fields: list[str]) -> None:
    found = [error.field for error in csi_node_errors({"spec": {"drivers": [driver]}})]

    assert sorted(set(found)) == sorted(set(fields))


def test_drivers_of_a_node_are_immutable() -> None:
    rules = CSI_DRIVER_RULES["CSINode.storage.k8s.io"]
    old: JsonObject = {"spec": {"drivers": [{"name": "a", "nodeID": "n", "allocatable": {"count": 1}}]}}

    assert rules.update({"spec": {"drivers": [{"name": "a", "nodeID": "n"}]}}, old) == []
    assert len(rules.update({"spec": {"drivers": [{"name": "a", "nodeID": "m"}]}}, old)) == 1
    assert rules.update({"spec": {"drivers": []}}, old) == []


def test_tokens_in_secrets_are_recommended_once() -> None:
    asked: JsonObject = {"spec": {"tokenRequests": [{"audience": "a"}]}}

    assert len(RULES.warnings(asked, None)) == len(RULES.warnings(asked, {})) == 1
    assert RULES.warnings(asked, asked) == []
    told: JsonObject = {"spec": {"tokenRequests": [{}], "serviceAccountTokenInSecrets": False}}
    assert RULES.warnings(told, None) == []


NAMES = ("spec", "drivers", "name", "topologyKeys", "tokenRequests", "allocatable", "count")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.status(new, old)
    RULES.warnings(new, old)
