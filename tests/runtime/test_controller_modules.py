"""Modules in the controller, and conflicts between packages that would have the same release."""

import logging
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.controllers.test_controller import refusing
from tests.runtime.support.objects import module
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.cluster.api.errors import ClusterError, InvalidError, api_error
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import find_int, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId
from wharfinger.runtime.resources.resources import APPLICATION, FINALIZER

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
SECRET = ResourceType("", "v1", "Secret", "secrets", namespaced=True)
CLUSTER_ROLES = ResourceType("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE = (
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: of-the-module}\nrules: []\n"
)

pytestmark = pytest.mark.unmeasured


async def test_a_module_is_installed_in_its_namespace_and_removed_completely(tmp_path: Path) -> None:
    """The daemon creates the namespace for the release, and nothing of the release is left after the removal."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        ready = await world.until_state("", "web", "Ready")
        assert find_list(ready, "metadata", "finalizers") == [FINALIZER]
        assert await world.config_map(SYSTEM_NAMESPACE, "web") is not None
        assert world.runtime.packages.global_values()["enabledModules"] == ["web"]
        await world.delete("", "web")
        await world.until_gone("", "web")
        assert await world.config_map(SYSTEM_NAMESPACE, "web") is None
        assert world.runtime.packages.global_values()["enabledModules"] == []
        assert world.runtime.instances == {}


async def movable(world: World) -> None:
    """Remove the CRD's rule that a Module must not change its namespace. Kubernetes before 1.25 does not support such rules."""
    definitions = await world.client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/namespace/x-kubernetes-validations"
    await world.client.json_patch(
        ObjectKey(definitions, "", "modules.wharfinger.dev"), [{"op": "remove", "path": rules}]
    )


async def test_the_api_refuses_to_move_a_module(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.create_module("web")
        with pytest.raises(InvalidError, match=r"spec\.namespace: .*the release cannot be moved"):
            await world.change("", "web", {"namespace": "prod"})


async def test_an_installed_module_cannot_be_moved(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await movable(world)
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        await world.until_state("", "web", "Ready")
        await world.change("", "web", {"namespace": "prod"})
        refused = await world.until("", "web", has_reason("SpecInvalid"))
        assert f"the release is in {SYSTEM_NAMESPACE}" in find_str(refused, "status", "summary", "message")
        assert await world.config_map(SYSTEM_NAMESPACE, "web") is not None
        assert await world.config_map("prod", "web") is None
        await world.change("", "web", {"namespace": SYSTEM_NAMESPACE})
        await world.until_state("", "web", "Ready")
        # The removal deletes the release from its actual namespace, whatever namespace the spec names.
        await world.change("", "web", {"namespace": "prod"})
        await world.until("", "web", has_reason("SpecInvalid"))
        await world.delete("", "web")
        await world.until_gone("", "web")
        assert await world.config_map(SYSTEM_NAMESPACE, "web") is None


async def test_a_module_without_a_release_may_be_moved(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await movable(world)
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web", version="2.0.0")
        await world.until("", "web", has_reason("ArtifactNotFound"))
        await world.change("", "web", {"namespace": "prod", "packageVersion": "1.0.0"})
        await world.until_state("", "web", "Ready")
        assert await world.config_map("prod", "web") is not None


async def conflict(world: World) -> None:
    """Install a Module, and create an Application with the same release name and namespace. Wait until the Application is
    refused.
    """
    await world.push("web", "1.0.0")
    await world.repository()
    await world.create_module("web", spec={"namespace": "prod", "settings": {"text": "module"}})
    await world.until_state("", "web", "Ready")
    await world.create("prod", "web")
    await world.until("prod", "web", has_reason("SpecInvalid"))


@pytest.mark.slow
async def test_a_freed_release_goes_to_the_waiting_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await conflict(world)
        await world.delete("", "web")
        await world.until_gone("", "web")
        await world.until_state("prod", "web", "Ready")
        await world.delete("prod", "web")
        await world.until_gone("prod", "web")
        assert await world.config_map("prod", "web") is None


@pytest.mark.slow
async def test_a_refused_application_does_not_confine_the_owner_of_the_release(tmp_path: Path) -> None:
    """A user creates an Application in the namespace of a Module's release, with the name of this release. The Application is
    refused, and the Module may still install cluster-scoped objects.
    """
    async with open_world(tmp_path) as world:
        await conflict(world)
        assert not world.runtime.confinement(Owner("web", "prod"))
        await world.push("web", "2.0.0", {"templates/role.yaml": CLUSTER_ROLE})
        await world.change("", "web", {"packageVersion": "2.0.0"})
        await world.until_state("", "web", "Ready")
        assert await world.client.get(ObjectKey(CLUSTER_ROLES, "", "of-the-module"))


@pytest.mark.slow
async def test_deleting_a_refused_application_deletes_nothing_of_the_release(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await conflict(world)
        await world.delete("prod", "web")
        await world.until_gone("prod", "web")
        kept = await world.config_map("prod", "web")
        assert find_str(kept, "data", "text") == "module"
        ready = await world.until_state("", "web", "Ready")
        assert find_int(ready, "status", "release", "revision") == 1
        # The release of the other package is still reconciled.
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", "web"))
        await world.until_object(ObjectKey(CONFIG_MAP, "prod", "web"), lambda _obj: True)


@pytest.mark.sampled
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_refused_package_deletes_nothing_of_a_release_without_records(tmp_path: Path, restarted: bool) -> None:
    """A user who may write only Secrets and Applications in a namespace must not be able to delete the objects of a Module."""
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0", {"templates/role.yaml": CLUSTER_ROLE})
            await world.repository()
            await world.create_module("web", spec={"namespace": "prod"})
            await world.until_state("", "web", "Ready")
            await world.create("prod", "web", more={"deletionPolicy": "DeleteAll"})
            await world.until("prod", "web", has_reason("SpecInvalid"))
            for secret in (await world.client.list(SECRET, "prod")).items:
                if find_str(secret, "type") == "helm.sh/release.v1":
                    await world.client.delete(ObjectKey(SECRET, "prod", find_str(secret, "metadata", "name")))
            if not restarted:
                await world.delete("prod", "web")
                await world.until_gone("prod", "web")
        if restarted:
            await ground.client.delete(ObjectKey(APPLICATION, "prod", "web"))
            async with ground.open_world() as world:
                await world.until_gone("prod", "web")
        assert await ground.client.get(ObjectKey(CLUSTER_ROLES, "", "of-the-module"))


@pytest.mark.slow
async def test_a_release_has_the_same_owner_after_a_restart(tmp_path: Path) -> None:
    """The Module still owns the release, and the Application is refused again."""
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await conflict(world)
        async with ground.open_world() as world:
            await trio.testing.wait_all_tasks_blocked()
            await world.until_runtime(lambda: world.runtime.status("prod.web") is not None)
            refused = await world.until("prod", "web", has_reason("SpecInvalid"))
            assert "Module web already has the release web" in find_str(refused, "status", "summary", "message")
            await world.until_runtime(lambda: world.runtime.status("web") is not None)
            await world.until_state("", "web", "Ready")
            kept = await world.config_map("prod", "web")
            assert find_str(kept, "data", "text") == "module"


async def test_a_resource_deleted_before_its_first_reconciliation_leaves_nothing(tmp_path: Path) -> None:
    wrap, made = refusing(api_error(409, "Conflict", "changed meanwhile"))
    async with open_world(tmp_path, wrap) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await made[0].all_refused.wait()
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        world.runtime.object_gone(AppId("prod", "never-heard-of"))
        await trio.testing.wait_all_tasks_blocked()
        assert world.runtime.instances == {}
        assert world.downloads == []


async def test_a_module_with_a_dot_in_its_name_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A name with a dot looks like the runtime name of an Application (``NAMESPACE.NAME``). If the API server does not refuse a
    Module with such a name, the daemon ignores the Module.
    """
    caplog.set_level(logging.ERROR, logger="wharfinger")
    async with open_world(tmp_path) as world:
        try:
            await world.client.create(module("prod.web"))
        except ClusterError as error:
            assert "name" in str(error)
        else:
            await trio.testing.wait_all_tasks_blocked()
            assert "Module prod.web is ignored" in caplog.text
            assert world.runtime.instances == {}


async def test_an_unreadable_module_spec_is_reported(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        obj = module("web", spec={"settingsFrom": [{"kind": "Secret", "name": "a", "key": "b", "path": "c..d"}]})
        await world.client.create(obj)
        refused = await world.until("", "web", has_reason("SpecInvalid"))
        assert "spec.settingsFrom[0].path" in find_str(refused, "status", "summary", "message")
        assert find_object(refused, "status", "summary")["tip"]
