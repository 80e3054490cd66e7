"""The parsing of `spec.upgrade`, and of the annotation that requests a rollback."""

from datetime import timedelta

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.upgrade_policy import (
    ROLLBACK,
    RollbackRequest,
    UpgradePolicy,
    read_rollback_request,
    read_upgrade_policy,
)


def test_an_upgrade_policy_is_read() -> None:
    assert read_upgrade_policy({}) == UpgradePolicy()
    assert not UpgradePolicy().digest
    spec: JsonObject = {"upgrade": {"rollbackOnFailure": True, "timeout": "1m30s", "retries": 0}}
    policy = read_upgrade_policy(spec)
    assert policy == UpgradePolicy(rollback=True, timeout=timedelta(seconds=90), retries=0)
    assert policy.digest
    assert policy.digest != UpgradePolicy(rollback=True).digest


@pytest.mark.parametrize(
    ("upgrade", "message"),
    [
        ({"rollbackOnFailure": "yes"}, r"spec\.upgrade\.rollbackOnFailure: expected true or false"),
        ({"timeout": "soon"}, r"spec\.upgrade\.timeout: duration 'soon'"),
        ({"timeout": "0s"}, "expected more than 0 and at most 7 days"),
        ({"timeout": "169h"}, "expected more than 0 and at most 7 days"),
        ({"retries": -1}, r"spec\.upgrade\.retries: expected an integer from 0 to 1000"),
        ({"rollback": True}, r"spec\.upgrade\.rollback: unknown key"),
    ],
)
def test_an_invalid_upgrade_policy_is_refused(upgrade: JsonObject, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_upgrade_policy({"upgrade": upgrade})


@pytest.mark.parametrize(
    ("text", "revision"), [("3", 3), ("former", 0), ("12@2026-01-02T03:04:05Z", 12), ("former@x", 0)]
)
def test_a_rollback_request_is_read(text: str, revision: int) -> None:
    assert read_rollback_request({ROLLBACK: text}) == RollbackRequest(text, revision)


def test_a_resource_without_the_annotation_has_no_request() -> None:
    assert read_rollback_request({}) is None


@pytest.mark.parametrize("text", ["0", "-1", "v1", "former2", "1234567890", "3 "])
def test_an_invalid_rollback_request_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="expected the number of a revision or former"):
        read_rollback_request({ROLLBACK: text})
