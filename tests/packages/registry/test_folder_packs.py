"""Cached packs of folders: a folder is packed again only if something in it has changed."""

import time
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.packages.support.registry_contract import read
from wharfinger.packages.registry import folder_packs, folder_registry
from wharfinger.packages.registry.folder_packs import FolderPacks, PackedIdentity
from wharfinger.packages.registry.folder_registry import FolderRegistry
from wharfinger.packages.registry.pusher import Package, pack_package


def later() -> float:
    return time.time() + 60


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the name of each packed folder is added."""
    names: list[str] = []

    def pack(source: Path, name: str = "", version: str = "") -> Package:
        names.append(name)
        return pack_package(source, name, version)

    monkeypatch.setattr(folder_registry, "pack_package", pack)
    return names


async def test_an_unchanged_folder_is_packed_once(tmp_path: Path, packed: list[str]) -> None:
    folder, packs = chart(tmp_path / "web", version="1.0.0"), FolderPacks(later)
    found = await FolderRegistry(tmp_path, packs).resolve("web", "1.0.0")
    registry = FolderRegistry(tmp_path, packs)
    assert await registry.resolve("web", "1.0.0") == found
    manifest = await registry.manifest("web", found.digest)
    assert await registry.tags("web") == ("1.0.0",)
    assert packed == ["web"]
    assert await read(registry, manifest.layers[0], "web")  # Only a read of the content packs the folder again.
    assert packed == ["web", "web"]
    (folder / "values.yaml").write_text("a: 2\n")
    assert (await FolderRegistry(tmp_path, packs).resolve("web", "1.0.0")).digest != found.digest
    assert packed == ["web"] * 3


async def test_a_recently_changed_folder_is_packed_each_time(tmp_path: Path, packed: list[str]) -> None:
    chart(tmp_path / "web", version="1.0.0")
    packs = FolderPacks()
    for _ in range(2):
        await FolderRegistry(tmp_path, packs).resolve("web", "1.0.0")
    assert packed == ["web", "web"]


def test_a_folder_changed_during_packing_is_not_cached(tmp_path: Path) -> None:
    folder, packs = chart(tmp_path / "web"), FolderPacks(later)
    before = packs.fingerprint(folder)
    (folder / "values.yaml").write_text("a: 2\n")
    packs.keep(folder, before, _identity(folder))
    assert packs.find(folder, before) is None


def test_only_the_latest_folders_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_packs, "MOST", 1)
    packs, found = FolderPacks(later), {}
    for name in ("one", "two"):
        folder = chart(tmp_path / name, name=name)
        found[name] = packs.fingerprint(folder)
        packs.keep(folder, found[name], _identity(folder))
    assert packs.find(tmp_path / "one", found["one"]) is None
    assert packs.find(tmp_path / "two", found["two"]) is not None


def _identity(folder: Path) -> PackedIdentity:
    manifest = pack_package(folder).manifest
    return PackedIdentity("1.0.0", manifest.descriptor, manifest.data)
