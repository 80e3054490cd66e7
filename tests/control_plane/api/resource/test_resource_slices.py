"""Validation of ResourceSlices. The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover most rules."""

import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.resource.resource_slices import RESOURCE_SLICE_RULES, slice_errors
from wharfinger.formats.json.value import JsonObject, JsonValue

RULES = RESOURCE_SLICE_RULES["ResourceSlice.resource.k8s.io"]


def one(**spec: JsonValue) -> JsonObject:
    pool: JsonObject = {"name": "p", "resourceSliceCount": 1}
    return {"spec": {"driver": "a", "pool": pool, "allNodes": True, **spec}}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, []),
        ({"devices": [{"name": f"d{number}"} for number in range(129)]}, ["spec.devices"]),
        (
            {"devices": [{"name": "a", "attributes": {f"a{number}": {"int": 1} for number in range(33)}}]},
            ["spec.devices[0]"],
        ),
        (
            {"devices": [{"name": "a", "attributes": {f"a{number}": {"int": 1} for number in range(49)}}]},
            ["spec.devices[0]", "spec.devices[0]"],
        ),
        (
            {"devices": [{"name": "a", "attributes": {"x": {"string": "s" * 65}}}]},
            ["spec.devices[0].attributes[x].string"],
        ),
        ({"devices": [{"name": "a", "nodeName": "n"}]}, ["spec.devices[0]"]),
        (
            {"sharedCounters": [{"name": "a", "counters": {f"c{number}": {"value": "1"} for number in range(33)}}]},
            ["spec.sharedCounters[0].counters"],
        ),
        (
            {"sharedCounters": [{"name": "a", "counters": {"a": {"value": "1"}}}], "devices": [{"name": "a"}]},
            ["spec"],
        ),
    ],
)
def test_invalid_slice_fields_are_reported(fields: JsonObject, found: list[str]) -> None:
    assert [error.field for error in slice_errors(one(**fields))] == found


def test_unchanged_taints_are_not_checked() -> None:
    tainted = one(devices=[{"name": "a", "taints": [{"key": "a b"}]}])

    assert slice_errors(tainted)
    assert RULES.update(tainted, tainted) == []


NAMES = (
    "spec",
    "pool",
    "devices",
    "attributes",
    "capacity",
    "taints",
    "sharedCounters",
    "counters",
    "nodeSelector",
    "name",
)


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    RULES.create(new)
    RULES.update(new, old)
    RULES.warnings(new, old)
