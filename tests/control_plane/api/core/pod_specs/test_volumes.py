"""Validation of volumes, in cases that no recording of a real API server covers."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.volumes import VolumeRules, pull_policy_errors, volume_errors
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject


def no_claim_errors(_spec: JsonObject, _path: str) -> list[FieldError]:
    return []


def test_valid_volumes_are_indexed_by_name() -> None:
    volumes: JsonObject = {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}, {"name": "b"}]}
    found, errors = volume_errors(volumes, "spec", VolumeRules("p", True, no_claim_errors))
    assert list(found) == ["a"]
    assert [error.field for error in errors] == ["spec.volumes[1].name", "spec.volumes[2]"]


def test_a_reference_to_the_claim_of_an_ephemeral_volume_is_refused() -> None:
    claim: JsonObject = {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    volumes: JsonObject = {"volumes": [claim, {"name": "c", "persistentVolumeClaim": {"claimName": "p-b"}}]}
    _, errors = volume_errors(volumes, "spec", VolumeRules("p", True, no_claim_errors))
    assert [error.field for error in errors] == ["spec.volumes[1].persistentVolumeClaim.claimName"]


@pytest.mark.parametrize(("policy", "count"), [("Always", 0), ("", 1), ("Often", 1)])
def test_invalid_pull_policies_are_refused(policy: str, count: int) -> None:
    assert len(pull_policy_errors(policy, "p")) == count
