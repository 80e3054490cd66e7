"""Validation of the fields of a custom resource that its ``scale`` subresource reads."""

import pytest

from wharfinger.control_plane.custom.replicas import scale_errors
from wharfinger.formats.json.value import JsonObject

PATHS: JsonObject = {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r", "labelSelectorPath": ".status.s"}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (
            {"spec": 5},
            ".spec.r: Invalid value: 0: .spec.r accessor error: 5 is of the type int64, expected map[string]interface{}",
        ),
        (
            {"spec": {"r": {"a": [1, None]}}},
            (
                ".spec.r: Invalid value: 0: .spec.r accessor error: map[a:[1 <nil>]] is of the type"
                " map[string]interface {}, expected int64"
            ),
        ),
        (
            {"status": {"s": 1}},
            '.status.s: Invalid value: "": .status.s accessor error: 1 is of the type int64, expected string',
        ),
    ],
)
def test_invalid_replica_fields_are_reported(obj: JsonObject, said: str) -> None:
    assert said in [str(error) for error in scale_errors(PATHS, obj)]
