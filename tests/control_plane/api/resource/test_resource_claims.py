"""Validation of ResourceClaims, their templates, and DeviceClasses.

The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover most rules.
"""

import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.resource.resource_claims import RESOURCE_CLAIM_RULES
from wharfinger.formats.json.value import JsonObject, find_object

UID = "123e4567-e89b-12d3-a456-426614174000"
CLAIMS = RESOURCE_CLAIM_RULES["ResourceClaim.resource.k8s.io"]
DEVICE: JsonObject = {"driver": "a", "pool": "p", "device": "d"}


def given_claim(**device: str) -> JsonObject:
    results: JsonObject = {"results": [{**DEVICE, "request": "r", **device}]}
    return {"spec": {"devices": {"requests": [{"name": "r"}]}}, "status": {"allocation": {"devices": results}}}


@pytest.mark.parametrize(
    ("share", "fine"),
    [
        (UID, True),
        (UID.upper(), False),
        (UID.replace("-", ""), False),
        (f"{{{UID}}}", False),
        (f"({UID})", False),
        (f"urn:uuid:{UID}", False),
        (f"urn:odds:{UID}", False),
        (f"{UID[:-1]}g", False),
        ("x", False),
    ],
)
def test_a_share_id_must_be_a_lowercase_uuid(share: str, fine: bool) -> None:
    found = [error.field for error in CLAIMS.status(given_claim(shareID=share), {})]

    assert found == ([] if fine else ["status.allocation.devices.results[0].shareID"])


def test_a_deleted_claim_gets_no_new_consumers() -> None:
    user: JsonObject = {"resource": "pods", "name": "a", "uid": "u"}
    old: JsonObject = {**given_claim(), "metadata": {"deletionTimestamp": "2026-11-21T04:00:00Z"}}
    new: JsonObject = {**old, "status": {**find_object(old, "status"), "reservedFor": [user]}}

    assert [error.field for error in CLAIMS.status(new, old)] == ["status.reservedFor"]
    assert CLAIMS.status(new, new) == []


NAMES = (
    "spec",
    "status",
    "devices",
    "results",
    "allocation",
    "reservedFor",
    "networkData",
    "ips",
    "config",
    "metadata",
)


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    for rules in RESOURCE_CLAIM_RULES.values():
        rules.create(new)
        rules.update(new, old)
        rules.status(new, old)
