"""Install and uninstall with a control plane, the runtime of the daemon, real files and a real registry."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio

from tests.cluster.support.release_bench import cluster
from tests.packages.support.charts import chart, manifest, write
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.api.client import ClusterClient, ObjectList
from wharfinger.cluster.api.errors import ForbiddenError, NotFoundError, UnknownKindError
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.registry.address import RepositoryAddress
from wharfinger.runtime.installing.commands import install
from wharfinger.runtime.installing.installation import InstallError, InstallRequest, remove, request
from wharfinger.runtime.installing.target import ANY, InRegistry, InRepository, read_target
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION, PACKAGE_REPOSITORY, SECRET

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: front}\nspec: {ports: [{name: http, port: 80}], selector: {a: b}}\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: shop}\nrules: []\n"


async def names(world: World, made_by_install: str = "wharfinger.dev/made-by=install") -> tuple[list[str], list[str]]:
    """Return the names of the repositories and Secrets that `wharfinger install` created."""
    found: list[list[str]] = []
    for resource in (PACKAGE_REPOSITORY, SECRET):
        listed = await world.client.list(resource, label_selector=made_by_install)
        found.append([find_str(each, "metadata", "name") for each in listed.items])
    return found[0], found[1]


def wanted(target: Path, **more: JsonObject) -> InstallRequest:
    return InstallRequest(read_target(str(target)), "prod", "shop", more.get("settings", {}))


async def test_a_local_folder_is_installed_changed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0", {"templates/service.yaml": SERVICE})
    async with open_world(tmp_path) as world:
        told = await install(world.client, wanted(folder), wait=True)
        assert told == ["service front.prod.svc: 80 (http)"]
        said = capsys.readouterr().err.splitlines()
        assert said[1] == "application prod/shop: requested"
        assert said[-1].startswith("Ready")
        repositories, secrets = await names(world)
        assert (len(repositories), len(secrets)) == (1, 1)
        (folder / "templates/more.yaml").write_text(manifest("more"))  # the version does not change
        await install(world.client, wanted(folder), wait=True)
        assert await world.config_map("prod", "more") is not None
        await world.until_no_object(ObjectKey(PACKAGE_REPOSITORY, "", repositories[0]))
        await world.until_no_object(ObjectKey(SECRET, "prod", secrets[0]))
        (left,), (carried,) = await names(world)
        await remove(world.client, "prod", "shop", lambda _: None)
        assert await world.config_map("prod", "more") is None
        await world.until_no_object(ObjectKey(PACKAGE_REPOSITORY, "", left))
        await world.until_no_object(ObjectKey(SECRET, "prod", carried))


async def test_the_warnings_of_an_installed_package_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "quiet"
    (folder / "hooks").mkdir(parents=True)
    (folder / "package.yaml").write_text("type: Application\nname: quiet\nversion: 1.0.0\n")
    (folder / "hooks" / "count.sh").write_text("#!/bin/sh\n")  # the file is not executable
    async with open_world(tmp_path) as world:
        await install(world.client, wanted(folder), wait=True)
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("warning: hooks/count.sh: no executable permissions")
        await remove(world.client, "prod", "shop", lambda _: None)


async def test_a_package_with_cluster_scoped_objects_needs_the_option_cluster_scope(tmp_path: Path) -> None:
    folder = write(tmp_path / "web", {"role.yaml": ROLE})
    async with open_world(tmp_path) as world:
        with pytest.raises(InstallError, match="if you trust it, run the command again with --cluster-scope"):
            await install(world.client, wanted(folder), wait=True)
        allowed = InstallRequest(read_target(str(folder)), "prod", "shop", {}, cluster_scope=True)
        await install(world.client, allowed, wait=True)


async def test_a_missing_namespace_is_created_only_on_request(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    wanted = InstallRequest(read_target(str(folder)), "elsewhere", "shop", {})
    async with open_world(tmp_path) as world:
        with pytest.raises(
            InstallError,
            match=r"no namespace elsewhere; correct the name, or create the namespace with --create-namespace",
        ):
            await request(world.client, wanted, lambda _: None)
        assert await names(world) == ([], [])
        said: list[str] = []
        for _ in range(2):
            await request(world.client, replace(wanted, create_namespace=True), said.append)
        assert said[0] == "namespace elsewhere: created"
        assert sum("created" in line for line in said) == 1
        await world.client.get(ObjectKey(NAMESPACE, "", "elsewhere"))


async def test_nothing_is_created_in_a_cluster_without_the_definitions(tmp_path: Path) -> None:
    """The daemon's CRDs are checked first, so a failed installation leaves no namespace behind."""
    folder = chart(tmp_path / "web", "web", "1.0.0")
    wanted = InstallRequest(read_target(str(folder)), "elsewhere", "shop", {}, create_namespace=True)
    async with cluster() as (client, transport):
        with pytest.raises(UnknownKindError, match="Application"):
            await request(client, wanted, lambda _: None)
        assert transport.writes == []
        with pytest.raises(NotFoundError):
            await client.get(ObjectKey(NAMESPACE, "", "elsewhere"))


class Restricted:
    """A client of a user who may neither get nor list objects of some resources."""

    def __init__(self, client: ClusterClient, *resources: str) -> None:
        self._client = client
        self._resources = resources

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    async def get(self, key: ObjectKey) -> JsonObject:
        self._check(key.resource)
        return await self._client.get(key)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        self._check(resource)
        return await self._client.list(
            resource, namespace, label_selector=label_selector, field_selector=field_selector
        )

    def _check(self, resource: ResourceType) -> None:
        if resource.plural in self._resources:
            raise ForbiddenError(403, "Forbidden", f"no {resource.plural} for you")


class Unlisting(Restricted):
    """A client of a user who may get objects of some resources, but not list them."""

    async def get(self, key: ObjectKey) -> JsonObject:
        return await self._client.get(key)


def restricted(client: ClusterClient, *resources: str) -> ClusterClient:
    """Return a client of a user who may not read some resources."""
    return cast("ClusterClient", Restricted(client, *resources))


async def test_users_without_read_access_to_namespaces_can_install(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    async with open_world(tmp_path) as world:
        client = restricted(world.client, "namespaces")
        assert await request(client, wanted(folder), lambda _: None) == 1


async def test_users_with_access_only_to_applications_can_install_and_remove(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        client = restricted(world.client, "namespaces", "packagerepositories", "services")
        assert await install(client, InstallRequest(InRepository("web", "1.0.0"), "prod", "shop", {}), wait=True) == []
        await remove(client, "prod", "shop", lambda _: None)
        await world.until_gone("prod", "shop")


async def test_missing_list_access_to_applications_is_reported_at_once(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        client = cast("ClusterClient", Unlisting(world.client, "applications"))
        with pytest.raises(
            InstallError, match=r"the state of the package cannot be read: no applications.*why prod\.shop"
        ):
            await install(client, InstallRequest(InRepository("web", "1.0.0"), "prod", "shop", {}), wait=True)
        with pytest.raises(InstallError, match="the request was made"):
            await remove(client, "prod", "shop", lambda _: None)
        await world.until_gone("prod", "shop")


async def test_the_time_limit_applies_to_the_wait_and_not_to_the_request(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        with pytest.raises(trio.TooSlowError):
            await install(
                world.client, InstallRequest(InRepository("web", "1.0.0"), "prod", "shop", {}), wait=True, limit_s=0
            )
        await world.until_state("prod", "shop", "Ready")
        with pytest.raises(trio.TooSlowError):
            await remove(world.client, "prod", "shop", lambda _: None, limit_s=0)
        await world.until_gone("prod", "shop")


async def test_a_second_package_of_a_registry_uses_the_same_repository(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "1.1.0")
        address = RepositoryAddress(world.address, "packages", "http")
        for number in range(2):
            await install(
                world.client,
                InstallRequest(InRegistry(address, "web", "", ANY), "prod", f"shop{number}", {}),
                wait=True,
            )
        repositories, _ = await names(world)
        assert len(repositories) == 1
        obj = await world.client.get(ObjectKey(APPLICATION, "prod", "shop1"))
        assert find_str(obj, "status", "currentVersion", "version") == "1.1.0"
        await remove(world.client, "prod", "shop0", lambda _: None)
        assert (await names(world))[0] == repositories  # another Application still uses the repository
        await remove(world.client, "prod", "shop1", lambda _: None)
        await world.until_no_object(ObjectKey(PACKAGE_REPOSITORY, "", repositories[0]))


async def test_a_package_of_an_existing_repository_does_not_change_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        assert (
            await install(world.client, InstallRequest(InRepository("web", "1.0.0"), "prod", "shop", {}), wait=False)
            == []
        )
        await world.until_state("prod", "shop", "Ready")
        await remove(world.client, "prod", "shop", lambda _: None)
        listed = await world.client.list(PACKAGE_REPOSITORY)
        assert [find_str(each, "metadata", "name") for each in listed.items] == ["default"]


async def test_a_changed_secret_is_not_installed(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0")
    async with open_world(tmp_path) as world:
        await world.secret("x")
        made = wanted(folder)
        await install(world.client, made, wait=True)
        ((repository,), (name,)) = await names(world)
        key = ObjectKey(SECRET, "prod", name)
        await world.client.delete(key)
        forged: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "prod"},
            "data": {"archive": "Zm9yZ2Vk"},
        }
        await world.client.create(forged)
        await world.create("prod", "other", repository=repository, version="1.0.0")
        obj = await world.until_state("prod", "other", "Failed")
        assert "found sha256:" in find_str(obj, "status", "summary", "message")
        assert find_list(obj, "status", "conditions")
