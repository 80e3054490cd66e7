"""Packages from every kind of source, end to end: real files, real servers, a control plane, and the controllers."""

from pathlib import Path

import pytest

from tests.packages.support.charts import manifest, write
from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import find_str

pytestmark = pytest.mark.unmeasured

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


async def test_a_kustomization_is_installed_and_settings_of_it_are_refused(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    write(packages / "web", {**KUSTOMIZATION, "base/a.yaml": manifest("a")})
    async with open_world(tmp_path) as world:
        await world.local_repository(packages)
        await world.create("prod", "shop", settings={"replicas": 2})
        obj = await world.until_state("prod", "shop", "Failed")
        assert "package web has no chart, so it has no settings; remove them, or make it a chart" in find_str(
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
