"""The contract of stores. The tests use the implementation only through the protocol."""

from pathlib import Path

import pytest

from tests.packages.support.memory_registry import MemoryRegistry, put
from wharfinger.packages.errors import PackageError
from wharfinger.packages.registry.registry import Manifest
from wharfinger.packages.store.disk_store import open_store
from wharfinger.packages.store.store import Store


async def walk(store: Store, registry: MemoryRegistry, manifest: Manifest, name: str) -> Path:
    """Download, install and deploy a package, and check the folder after each step."""
    await store.download(registry, "charts/web", manifest)
    folder = await store.install(manifest)
    assert (folder / "Chart.yaml").is_file()
    link = await store.deploy(name, manifest)
    assert (link / "Chart.yaml").samefile(folder / "Chart.yaml")
    return link


async def test_all_steps_can_be_repeated(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        link = await walk(store, registry, manifest, "prod.web")
        assert await walk(store, registry, manifest, "prod.web") == link
        assert await store.collect() == 0
        await store.undeploy("prod.web")
        assert not link.exists()
        await store.undeploy("prod.web")
        assert await store.collect() > 0
        assert await walk(store, registry, manifest, "prod.web") == link


async def test_each_step_fails_with_a_package_error(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        seam: Store = store
        with pytest.raises(PackageError):
            await seam.download(MemoryRegistry(), "charts/web", manifest)
        with pytest.raises(PackageError):
            await seam.install(manifest)
        with pytest.raises(PackageError):
            await seam.deploy("prod.web", manifest)
        with pytest.raises(PackageError):
            await seam.undeploy("no name")
