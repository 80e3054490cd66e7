"""The release policy: fields of a spec that are read, and fields that are refused."""

import pytest

from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.release_policy import DeletionPolicy, ReleasePolicy, read_release_policy

RULE: JsonObject = {"apiVersion": "example.com/v1", "kind": "Thing", "current": "object.status.done == true"}


def test_an_empty_spec_has_the_default_policy() -> None:
    assert read_release_policy({}) == ReleasePolicy()
    assert ReleasePolicy().drift == DriftPolicy()
    assert ReleasePolicy().drift.mode is DriftMode.CORRECT
    assert ReleasePolicy().deletion is DeletionPolicy.DELETE


def test_all_fields_of_the_policy_are_read() -> None:
    ignore: JsonObject = {"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}
    found = read_release_policy(
        {"drift": {"mode": "warn", "ignore": [ignore]}, "healthChecks": [RULE], "deletionPolicy": "Orphan"}
    )
    assert found.drift.mode is DriftMode.WARN
    assert [rule.paths for rule in found.drift.ignore] == [("/spec/replicas",)]
    assert [rule.kind for rule in found.health] == ["Thing"]
    assert found.deletion is DeletionPolicy.ORPHAN
    assert read_release_policy({"allowEmpty": True}).allow_empty
    assert not found.allow_empty


def test_the_digest_covers_all_fields_but_the_deletion_policy() -> None:
    warn, off = read_release_policy({"drift": {"mode": "warn"}}), read_release_policy({"drift": {"mode": "off"}})
    health, empty = read_release_policy({"healthChecks": [RULE]}), read_release_policy({"allowEmpty": True})
    assert len({warn.digest, off.digest, ReleasePolicy().digest, health.digest, empty.digest}) == 5
    assert warn.digest == read_release_policy({"drift": {"mode": "warn"}}).digest
    # The deletion policy only has an effect when the package is removed.
    assert read_release_policy({"deletionPolicy": "DeleteAll"}).digest == ReleasePolicy().digest


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"drift": {"mode": "fix"}}, r"spec\.drift"),
        ({"drift": "off"}, r"spec\.drift"),
        ({"healthChecks": [{"kind": "Thing"}]}, r"spec\.healthChecks"),
        ({"healthChecks": {}}, r"spec\.healthChecks"),
        ({"deletionPolicy": "Keep"}, r"spec\.deletionPolicy: 'Keep' is not one of Delete, DeleteAll, Orphan"),
        ({"deletionPolicy": 1}, r"deletionPolicy"),
        ({"allowEmpty": "yes"}, r"spec\.allowEmpty: expected true or false"),
    ],
)
def test_invalid_fields_are_refused_with_their_path(spec: JsonObject, field: str) -> None:
    with pytest.raises(FormatError, match=field):
        read_release_policy(spec)
