"""Rows of the table of wanted objects."""

import pytest

from tests.cluster.support.client_contract import config_map, key
from wharfinger.cluster.objects.desired import Identity, check_free, desired_object, desired_table, identity_of
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.install_order import Wave
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner
from wharfinger.cluster.tables.transaction import write
from wharfinger.formats.json.value import find
from wharfinger.kube.resource import ObjectKey, ResourceType

OWNER = Owner("web", "default")
POLICY = DriftPolicy(DriftMode.WARN)


def test_an_identity_has_no_version() -> None:
    beta = ObjectKey(ResourceType("apps", "v1beta1", "Deployment", "deployments", namespaced=True), "prod", "web")
    stable = ObjectKey(ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True), "prod", "web")
    assert identity_of(beta) == identity_of(stable) == Identity("Deployment.apps", "prod", "web")
    assert str(identity_of(beta)) == "Deployment.apps prod/web"
    assert str(Identity("Namespace", "", "prod")) == "Namespace prod"


def test_a_row_contains_the_object_to_apply() -> None:
    row = desired_object(key("a"), OWNER, config_map("a", v="1"), POLICY)
    assert (row.owner, row.wave, row.drift, row.orphan) == (OWNER, Wave.DATA, POLICY, False)
    assert row.group == (OWNER, Wave.DATA)
    body = row.object()
    assert find(body, "metadata", "namespace") == "default"
    assert find(body, "metadata", "labels", "wharfinger.dev/release") == "web"
    assert find(body, "data", "v") == "1"
    same, other = (desired_object(key("a"), OWNER, config_map("a", v=v), POLICY) for v in ("1", "2"))
    assert (row.digest, row.body) == (same.digest, same.body)
    assert row.digest != other.digest
    left = row.as_orphan()
    assert (left.orphan, left.identity, left.body) == (True, row.identity, row.body)


def test_rows_are_found_by_owner_and_key_and_belong_to_one_owner() -> None:
    table = desired_table()
    with write(table) as transaction:
        for name in ("a", "b"):
            transaction.insert(table, desired_object(key(name), OWNER, config_map(name), POLICY))
    rows = table.snapshot()
    assert [entry.row.key.name for entry in rows.find("owner", OWNER)] == ["a", "b"]
    assert [entry.row.key.name for entry in rows.find("key", key("b"))] == ["b"]
    check_free(rows, identity_of(key("a")), OWNER)
    check_free(rows, identity_of(key("c")), Owner("db", "default"))
    with pytest.raises(ForeignObjectError, match="ConfigMap default/a belongs to the release default/web"):
        check_free(rows, identity_of(key("a")), Owner("db", "default"))
