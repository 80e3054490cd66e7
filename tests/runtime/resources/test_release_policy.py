"""How what is applied is kept: three fields of a spec, read and refused."""

import pytest

from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.release_policy import DeletionPolicy, ReleasePolicy, read_release_policy

RULE: JsonObject = {"apiVersion": "example.com/v1", "kind": "Thing", "current": "object.status.done == true"}


def test_what_says_nothing_is_as_usual() -> None:
    assert read_release_policy({}) == ReleasePolicy()
    assert ReleasePolicy().drift == DriftPolicy()
    assert ReleasePolicy().drift.mode is DriftMode.CORRECT
    assert ReleasePolicy().deletion is DeletionPolicy.DELETE


def test_all_of_it_is_read() -> None:
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


def test_the_digest_is_of_what_changes_how_it_is_kept() -> None:
    warn, off = read_release_policy({"drift": {"mode": "warn"}}), read_release_policy({"drift": {"mode": "off"}})
    health, empty = read_release_policy({"healthChecks": [RULE]}), read_release_policy({"allowEmpty": True})
    assert len({warn.digest, off.digest, ReleasePolicy().digest, health.digest, empty.digest}) == 5
    assert warn.digest == read_release_policy({"drift": {"mode": "warn"}}).digest
    # It counts when the package is removed, and calls for nothing before.
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
def test_what_cannot_be_is_refused_with_the_field(spec: JsonObject, field: str) -> None:
    with pytest.raises(FormatError, match=field):
        read_release_policy(spec)
