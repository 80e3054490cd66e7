"""Packages that act as service accounts: the namespace's default account, missing rules, a change of the account, and removal."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.support.clusters import memory_cluster
from tests.runtime.support.world import one_error, open_ground, open_world
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import InvalidError
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.resources.default_accounts import ACCOUNT_LABEL, open_default_accounts
from wharfinger.runtime.resources.resources import CONFIG_MAP

ROLE = ResourceType("rbac.authorization.k8s.io", "v1", "Role", "roles", namespaced=True)
VERBS = ("get", "create", "patch", "delete")


async def grant(client: ClusterClient, account: str, verbs: tuple[str, ...], namespace: str = "prod") -> None:
    """Allow a service account to use these verbs on the ConfigMaps of a namespace."""
    meta: JsonObject = {"name": account, "namespace": namespace}
    rule: JsonObject = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}
    api = "rbac.authorization.k8s.io/v1"
    role: JsonObject = {"apiVersion": api, "kind": "Role", "metadata": meta, "rules": [rule]}
    await client.apply(role, field_manager="admin", force=True)
    binding: JsonObject = {
        "apiVersion": api,
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "prod"}],
    }
    await client.apply(binding, field_manager="admin", force=True)


async def label(client: ClusterClient, account: str | None) -> None:
    labels: JsonObject = {ACCOUNT_LABEL: account}
    await client.merge_patch(ObjectKey(NAMESPACE, "", "prod"), {"metadata": {"labels": labels}})


def misses(obj: JsonObject, account: str, verb: str) -> bool:
    """Return whether the status names the verb, the resource, the account, and the missing rule."""
    said = find_str(obj, "status", "summary", "message")
    return (
        f'User "system:serviceaccount:prod:{account}" cannot {verb} resource "configmaps"' in said
        and f'bound to the ServiceAccount prod/{account}: - {{apiGroups: [""], resources: [configmaps], verbs: [{verb}]}}'
        in said
    )


def is_refused(obj: JsonObject) -> bool:
    return "spec.serviceAccountName: required" in find_str(obj, "status", "summary", "message")


async def test_a_package_acts_as_its_account_and_names_each_missing_rule(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "app", more={"serviceAccountName": "deployer"})
        await world.until("prod", "app", lambda obj: misses(obj, "deployer", "get"))
        assert await world.config_map("prod", "app") is None
        await grant(world.client, "deployer", ("get", "patch"))
        await world.request("prod", "app")
        await world.until("prod", "app", lambda obj: misses(obj, "deployer", "create"))
        await grant(world.client, "deployer", ("get", "create", "patch"))
        await world.request("prod", "app")
        obj = await world.until_state("prod", "app", "Ready")
        made = await world.config_map("prod", "app")
        assert made is not None
        assert find_list(made, "metadata", "managedFields")
        # The removal needs a rule of its own, and the status names it.
        await world.delete("prod", "app")
        obj = await world.until("prod", "app", lambda obj: misses(obj, "deployer", "delete"))
        assert find_str(obj, "metadata", "deletionTimestamp")
        await grant(world.client, "deployer", VERBS)
        await world.until_gone("prod", "app")
        assert await world.config_map("prod", "app") is None


async def test_changed_accounts_of_namespace_or_resource_are_applied(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await grant(world.client, "first", VERBS)
        await label(world.client, "first")
        await world.create("prod", "app")
        await world.until_state("prod", "app", "Ready")
        # Only the account of the package has changed. Its objects are applied again, as the new account.
        await label(world.client, "second")
        await world.until("prod", "app", lambda obj: misses(obj, "second", "get"))
        await grant(world.client, "second", VERBS)
        await world.request("prod", "app")
        await world.until_state("prod", "app", "Ready")
        # The account in the resource takes precedence over that of the namespace.
        await world.change("prod", "app", {"serviceAccountName": "third"})
        await world.until("prod", "app", lambda obj: misses(obj, "third", "get"))
        await world.change("prod", "app", {"serviceAccountName": None})
        await world.until_state("prod", "app", "Ready")


async def test_packages_without_a_required_account_are_refused(tmp_path: Path) -> None:
    with one_error():
        async with (
            open_ground(tmp_path) as ground,
            replace(ground, require_account=True).open_world() as world,
        ):
            await world.push("web", "1.0.0")
            await world.repository()
            await world.create("prod", "app")
            obj = await world.until("prod", "app", is_refused)
            said = find_str(obj, "status", "summary", "message")
            assert f"label that namespace {ACCOUNT_LABEL}=NAME" in said
            assert await world.config_map("prod", "app") is None
            await grant(world.client, "deployer", VERBS)
            await label(world.client, "deployer")
            await world.until_state("prod", "app", "Ready")
            # If the account is gone again, the daemon does not use its own rights for the removal either.
            await label(world.client, None)
            await world.until("prod", "app", is_refused)
            await world.delete("prod", "app")
            await world.until(
                "prod", "app", lambda obj: "has no service account" in find_str(obj, "status", "summary", "message")
            )
            assert await world.config_map("prod", "app") is not None
            await label(world.client, "deployer")
            await world.until_gone("prod", "app")


async def test_drift_is_corrected_with_the_rights_of_the_account(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await grant(world.client, "deployer", VERBS)
        await world.create("prod", "app", more={"serviceAccountName": "deployer"})
        await world.until_state("prod", "app", "Ready")
        await grant(world.client, "deployer", ("get",))
        key = ObjectKey(CONFIG_MAP, "prod", "app")
        await world.client.delete(key)
        await world.until(
            "prod",
            "app",
            lambda obj: any("verbs: [" in str(warning) for warning in find_list(obj, "status", "warnings")),
        )
        assert await world.config_map("prod", "app") is None
        await grant(world.client, "deployer", VERBS)
        await world.until_object(key, lambda obj: True)


async def test_a_module_acts_as_an_account_of_its_namespace(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await grant(world.client, "deployer", VERBS)
        spec: JsonObject = {"namespace": "prod", "serviceAccountName": "deployer"}
        await world.create_module("roles", package="web", spec=spec)
        await world.until_state("", "roles", "Ready")
        await world.delete("", "roles")
        await world.until_gone("", "roles")


async def test_changes_of_namespace_labels_are_observed() -> None:
    async with memory_cluster() as client, open_default_accounts(client) as accounts:
        await accounts.informer.wait_synced()
        assert accounts.of("default") == ""
        with accounts.informer.changes() as changes:
            for name in ("deployer", "other", None):
                labels: JsonObject = {"metadata": {"labels": {ACCOUNT_LABEL: name}}}
                await client.merge_patch(ObjectKey(NAMESPACE, "", "default"), labels)
                await changes.wait()
                assert accounts.of("default") == (name or "")


async def test_an_invalid_account_name_is_refused(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        with pytest.raises(InvalidError, match=r"spec\.serviceAccountName"):
            await world.create("prod", "app", more={"serviceAccountName": "kube-system/admin"})
