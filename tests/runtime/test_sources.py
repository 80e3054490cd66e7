"""Packages from every kind of source, end to end: real files, real servers, a control plane, and the controllers."""

from pathlib import Path

import pytest

from tests.packages.support.charts import manifest, write
from tests.packages.support.git_server import commit, make_repository, serving_git
from tests.packages.support.web_server import serving
from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_world
from tests.runtime.test_versions import REPOSITORY, has_version, scan, until_update
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.charts.chart import pack_folder
from wharfinger.packages.digest import digest_of
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.runtime.resources.resources import APPLICATION

pytestmark = pytest.mark.unmeasured

LOGIN = Credentials("porter", "hush")

KUSTOMIZATION = {
    "kustomization.yaml": "namePrefix: x-\nresources: [base]\n",
    "base/kustomization.yaml": "resources: [a.yaml]\n",
}
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
BOAT = "apiVersion: example.dev/v1\nkind: Boat\nmetadata: {name: b}\n"


async def test_a_folder_of_manifests_is_installed_changed_and_removed(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    write(packages / "web", {"a.yaml": manifest("a"), "more/b.yaml": manifest("b")})
    async with open_world(tmp_path) as world:
        await world.local_repository(packages)
        await world.create("prod", "shop", version="1.0.0")
        obj = await world.until_state("prod", "shop", "Ready")
        assert find_str(obj, "status", "currentVersion", "version") == "1.0.0"
        assert await world.config_map("prod", "a") is not None
        (packages / "web/more/b.yaml").write_text(manifest("c"))
        await world.change("prod", "shop", {"packageVersion": "1.1.0"})
        await world.until_state("prod", "shop", "Ready")
        assert await world.config_map("prod", "b") is None
        assert await world.config_map("prod", "c") is not None
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        assert await world.config_map("prod", "a") is None


async def test_a_kustomization_is_installed_and_its_settings_are_refused(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    write(packages / "web", {**KUSTOMIZATION, "base/a.yaml": manifest("a")})
    async with open_world(tmp_path) as world:
        await world.local_repository(packages)
        await world.create("prod", "shop", settings={"replicas": 2})
        obj = await world.until_state("prod", "shop", "Failed")
        assert "package web has no chart, so it accepts no settings; remove them, or add a chart" in find_str(
            obj, "status", "summary", "message"
        )
        await world.change("prod", "shop", {"settings": None})
        await world.until_state("prod", "shop", "Ready")
        assert await world.config_map("prod", "x-a") is not None


async def test_manifests_may_define_the_kinds_of_their_objects(tmp_path: Path) -> None:
    write(tmp_path / "packages/web", {"a.yaml": BOAT, "z.yaml": CRD})
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "packages")
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Failed")  # an Application is confined to its namespace
        assert "CustomResourceDefinition" in find_str(obj, "status", "summary", "message")
        await world.allow_cluster()
        await world.until_state("prod", "shop", "Ready")


def source(spec: JsonObject) -> JsonObject:
    return {**repository(""), "spec": spec}


async def test_a_range_follows_the_tags_of_a_git_repository(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "git/packages")
    commit(folder, {"web/a.yaml": manifest("a")}, "v1.0.0")
    with serving_git(tmp_path / "git", login=LOGIN.basic()) as server:
        async with open_world(tmp_path) as world:
            await world.secret("login", username=LOGIN.username, password=LOGIN.password)
            login: JsonObject = {"name": "login", "namespace": "prod"}
            git: JsonObject = {"url": f"{server.url}/packages", "tags": "v{version}", "credentialsSecret": login}
            await world.client.create(source({"git": git}))
            await world.create("prod", "shop", more={"packageVersion": None, "versionRange": "^1"})
            await world.until("prod", "shop", has_version("1.0.0"))
            commit(folder, {"web/b.yaml": manifest("b")}, "v1.1.0")
            await scan(world, "1")
            await world.until("prod", "shop", has_version("1.1.0"))
            assert await world.config_map("prod", "b") is not None
            commit(folder, {"web/c.yaml": manifest("c")}, "v1.1.0")  # the tag moves, which is followed only on request
            await scan(world, "2")
            update = await until_update(world, "TagMoved")
            assert "the tag of 1.1.0 has moved" in find_str(update, "message")
            assert await world.config_map("prod", "c") is None
            assert LOGIN.password not in str(await world.client.get(ObjectKey(APPLICATION, "prod", "shop")))


async def test_a_git_commit_can_be_installed_as_a_version(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "packages")
    first = commit(folder, {"web/a.yaml": manifest("a")})
    commit(folder, {"web/a.yaml": manifest("b")})
    async with open_world(tmp_path) as world:
        await world.client.create(source({"git": {"url": f"file://{folder}"}}))
        await world.create("prod", "shop", version=first)
        await world.until_state("prod", "shop", "Ready")
        assert await world.config_map("prod", "a") is not None


async def test_a_package_from_git_can_be_pinned_to_its_digest(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "packages")
    commit(folder, {"web/a.yaml": manifest("a")}, "v1.0.0")
    async with open_world(tmp_path) as world:
        for name in ("dev", "test"):
            await world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await world.client.create(source({"git": {"url": f"file://{folder}", "tags": "v{version}"}}))
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Ready")
        pinned: JsonObject = {"packageDigest": find_str(obj, "status", "currentVersion", "digest")}
        await world.create("dev", "pinned", more=pinned)
        await world.until_state("dev", "pinned", "Ready")
        commit(folder, {"web/a.yaml": manifest("b")}, "v1.0.0")
        await world.create("test", "late", more=pinned)
        late = await world.until_state("test", "late", "Failed")
        assert "for this version, the source now has the digest sha256:" in find_str(
            late, "status", "summary", "message"
        )
        assert await world.config_map("test", "b") is None
        await world.request("dev", "pinned")
        await world.change("dev", "pinned", {"update": {"movedTag": "refuse"}})
        await world.until_state("dev", "pinned", "Ready")


async def test_an_archive_is_installed_only_with_the_expected_digest(tmp_path: Path) -> None:
    data = pack_folder(write(tmp_path / "plain", {"a.yaml": manifest("a")}))
    (tmp_path / "files").mkdir()
    (tmp_path / "files/web.tar.gz").write_bytes(data)
    with serving(tmp_path / "files") as url:
        async with open_world(tmp_path) as world:
            entry: JsonObject = {
                "name": "web",
                "version": "1.0.0",
                "url": f"{url}/web.tar.gz",
                "digest": f"sha256:{'1' * 64}",
            }
            obj = await world.client.create(source({"archive": {"packages": [entry]}}))
            await world.create("prod", "shop")
            failed = await world.until_state("prod", "shop", "Failed")
            assert "web.tar.gz: expected the digest " in find_str(failed, "status", "summary", "message")
            assert await world.config_map("prod", "a") is None
            entry = {**entry, "digest": digest_of(data).text}
            assert find_str(obj, "metadata", "name") == "default"
            await world.client.merge_patch(REPOSITORY, {"spec": {"archive": {"packages": [entry]}}})
            await world.until_state("prod", "shop", "Ready")
            assert await world.config_map("prod", "a") is not None
