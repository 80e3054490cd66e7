"""The package of an Application or a Module: its name, its namespace, its release, and its deletion policy."""

import pytest

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.package_names import (
    deletion_policy,
    identity_of,
    is_ignored,
    package_name,
    releases_of,
)
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, ModuleId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import APPLICATION, MODULE

APP = ObjectKey(APPLICATION, "prod", "shop")
DNS = ObjectKey(MODULE, "", "dns")
DOTTED = ObjectKey(MODULE, "", "prod.shop")


def placed(namespace: str, revision: int = 3) -> JsonObject:
    return {"status": {"release": {"namespace": namespace, "revision": revision}}}


def test_packages_of_both_kinds_have_names() -> None:
    assert (package_name(APP), package_name(DNS)) == ("prod.shop", "dns")
    assert [is_ignored(key) for key in (APP, DNS, DOTTED)] == [False, False, True]


def test_the_namespace_of_a_module_is_the_desired_one_until_it_is_deleted() -> None:
    deleted: JsonObject = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"namespace": "new"}}
    assert identity_of(APP, {}) == AppId("prod", "shop")
    assert identity_of(DNS, {}) == ModuleId("dns", SYSTEM_NAMESPACE)
    assert identity_of(DNS, {"spec": {"namespace": 5}}) == ModuleId("dns", SYSTEM_NAMESPACE)
    assert identity_of(DNS, {"spec": {"namespace": "new"}, **placed("old")}) == ModuleId("dns", "new")
    assert identity_of(DNS, deleted | placed("old")) == ModuleId("dns", "old")
    assert identity_of(DNS, deleted) == ModuleId("dns", "new")


def test_only_installed_packages_have_releases() -> None:
    long = ObjectKey(APPLICATION, "prod", "a" * 54)
    objects = {APP: placed("prod"), DNS: placed("kube-system"), DOTTED: placed("x"), long: placed("prod")}
    assert list(releases_of(objects)) == [
        ("prod.shop", Owner("shop", "prod")),
        ("dns", Owner("dns", "kube-system")),
    ]
    assert list(releases_of({APP: placed("prod", 0), DNS: {}})) == []


def test_an_unreadable_deletion_policy_retains_the_objects(caplog: pytest.LogCaptureFixture) -> None:
    assert deletion_policy(AppId("prod", "shop"), {}) is DeletionPolicy.DELETE
    assert deletion_policy(AppId("prod", "shop"), {"spec": {"deletionPolicy": "Burn"}}) is DeletionPolicy.ORPHAN
    assert "prod/shop" in caplog.text
