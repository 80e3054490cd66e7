"""Builds with the real kubectl."""

from pathlib import Path

import pytest

from tests.offline.support import config_map, write_tree
from tests.packages.support.charts import tool
from wharfinger.formats.json.value import find_str
from wharfinger.offline.building.kustomization import Folder, Overlay
from wharfinger.offline.building.kustomize import KubectlKustomize, KustomizeError
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.program_versions import ProgramVersions


async def test_a_folder_is_built_with_files_from_elsewhere(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "a/kustomization.yaml": "resources: [../b/map.yaml]\nnamespace: apps\n",
            "b/map.yaml": config_map("x", "other"),
        },
    )
    (obj,) = await KubectlKustomize(tool("kubectl"), tmp_path).build(Folder(tmp_path / "a", "a"))
    assert find_str(obj, "metadata", "namespace") == "apps"


async def test_errors_name_the_folder_as_the_caller_does(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/kustomization.yaml": "resources: [absent.yaml]\n"})
    with pytest.raises(KustomizeError, match=r"absent.yaml") as error:
        await KubectlKustomize(tool("kubectl"), tmp_path).build(Folder(tmp_path / "a", "apps"))
    assert str(tmp_path) not in str(error.value)
    assert not error.value.transient


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KustomizeError, match="check --kubectl"):
        await KubectlKustomize(tmp_path / "absent", tmp_path).build(Folder(tmp_path, ""))


async def test_a_remote_base_fails_without_the_network(tmp_path: Path) -> None:
    write_tree(tmp_path, {"kustomization.yaml": "resources: ['https://127.0.0.1:9/x.yaml']\n"})
    with pytest.raises(KustomizeError):
        await KubectlKustomize(tool("kubectl"), tmp_path, network=False).build(Folder(tmp_path, ""))


async def test_what_is_made_for_a_build_is_deleted(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/map.yaml": config_map("x")})
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    overlay = Overlay(tmp_path / "a", "a", ("map.yaml",), {"namePrefix": "p-"})
    (obj,) = await KubectlKustomize(tool("kubectl"), scratch).build(overlay)
    assert find_str(obj, "metadata", "name") == "p-x"
    assert not list(scratch.iterdir())


async def test_the_program_tells_its_version(tmp_path: Path) -> None:
    versions = ProgramVersions(EntryCache(tmp_path / "renders"))
    assert (await KubectlKustomize(tool("kubectl"), tmp_path).version(versions)).startswith("v5.")
    assert not await KubectlKustomize(tmp_path / "absent", tmp_path).version(versions)
