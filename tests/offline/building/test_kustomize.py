"""Builds with the real kubectl."""

from pathlib import Path

import pytest

from tests.offline.support import config_map, write_tree
from tests.packages.support.charts import tool
from wharfinger.formats.json.value import find_str
from wharfinger.offline.building.kustomize import KubectlKustomize, KustomizeError


async def test_a_folder_is_built_with_files_from_elsewhere(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "a/kustomization.yaml": "resources: [../b/map.yaml]\nnamespace: apps\n",
            "b/map.yaml": config_map("x", "other"),
        },
    )
    (obj,) = await KubectlKustomize(tool("kubectl")).build(tmp_path / "a")
    assert find_str(obj, "metadata", "namespace") == "apps"


async def test_errors_name_the_folder_as_the_caller_does(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/kustomization.yaml": "resources: [absent.yaml]\n"})
    with pytest.raises(KustomizeError, match=r"absent.yaml") as error:
        await KubectlKustomize(tool("kubectl")).build(tmp_path / "a", ((str(tmp_path / "a"), "apps"),))
    assert str(tmp_path) not in str(error.value)
    assert not error.value.transient


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KustomizeError, match="check --kubectl"):
        await KubectlKustomize(tmp_path / "absent").build(tmp_path)


async def test_a_remote_base_fails_without_the_network(tmp_path: Path) -> None:
    write_tree(tmp_path, {"kustomization.yaml": "resources: ['https://127.0.0.1:9/x.yaml']\n"})
    with pytest.raises(KustomizeError):
        await KubectlKustomize(tool("kubectl"), network=False).build(tmp_path)
