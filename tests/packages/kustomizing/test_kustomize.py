"""Builds with the real kubectl."""

from pathlib import Path

import pytest

from tests.packages.kustomizing.kustomize_contract import CONTRACT, Check
from tests.packages.support.charts import tool
from wharfinger.packages.kustomizing.kustomization import Folder
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize, KustomizeError
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.program_versions import ProgramVersions


@pytest.mark.sampled(3)
@pytest.mark.parametrize("check", CONTRACT)
async def test_kubectl_fulfils_the_builder_contract(check: Check, tmp_path: Path) -> None:
    folder, scratch = tmp_path / "tree", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    builder = KubectlKustomize(tool("kubectl"), scratch, network=False)
    await check(builder, folder)
    assert not list(scratch.iterdir())


async def test_a_missing_kubectl_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(KustomizeError, match="check --kubectl"):
        await KubectlKustomize(tmp_path / "absent", tmp_path).build(Folder(tmp_path, ""))


async def test_a_build_without_kubectl_fails_with_a_remedy(tmp_path: Path) -> None:
    builder = KubectlKustomize(None, tmp_path)
    assert not builder.is_there
    assert not await builder.version(ProgramVersions(EntryCache(tmp_path / "renders")))
    with pytest.raises(
        KustomizeError, match="needs kubectl, which is not on PATH; install it, or name it with --kubectl"
    ):
        await builder.build(Folder(tmp_path, ""))


async def test_the_version_of_kustomize_is_read_from_kubectl(tmp_path: Path) -> None:
    versions = ProgramVersions(EntryCache(tmp_path / "renders"))
    assert (await KubectlKustomize(tool("kubectl"), tmp_path).version(versions)).startswith("v5.")
    assert not await KubectlKustomize(tmp_path / "absent", tmp_path).version(versions)


async def test_a_remote_base_is_refused_if_the_network_is_forbidden(tmp_path: Path) -> None:
    for number, base in enumerate(
        ("https://git.example.com/a/b//c?ref=v1", "git@git.example.com:a/b?ref=v1", "file:///absent//a")
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(f"resources: [{base!r}]\n")
        with pytest.raises(KustomizeError, match="the network is forbidden by --offline: kustomize: "):
            await KubectlKustomize(tool("kubectl"), tmp_path, network=False).build(Folder(folder, "apps"))
