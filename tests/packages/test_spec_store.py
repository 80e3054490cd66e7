"""Test cases of the peer (the public program that spec/runtime describes) about the deployment of packages.

The tests of the store do not cover these cases in this form.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.packages.support.memory_registry import MemoryRegistry, put
from tests.packages.support.store_help import bring, listing
from wharfinger.packages.store.disk_store import StoreLimits, open_store

NEVER_SPARE = StoreLimits(spare_s=0)


def deployed(root: Path, name: str) -> str:
    """Return the version that is deployed under a name, or an empty text if there is none."""
    chart = root / "deployed" / name / "Chart.yaml"
    return chart.read_text().rpartition("version: ")[2].strip() if chart.exists() else ""


@pytest.mark.parametrize(
    "versions",
    [
        ("1.0.0", "2.0.0", "3.0.0"),
        ("3.0.0", "1.0.0", "2.0.0"),
        ("1.0.0", "2.0.0", "1.0.0", "2.0.0", "1.0.0"),
        ("1.0.0", "", "1.0.0"),
        ("2.0.0", "1.0.0", "", "", "3.0.0", ""),
    ],
)
async def test_a_name_follows_any_sequence_of_versions(versions: Sequence[str], tmp_path: Path) -> None:
    """Upgrades, downgrades and removals (empty texts) follow in any order. Afterwards the last version is deployed. Each
    version is fetched only once.
    """
    registry = MemoryRegistry()
    manifests = {version: await put(registry, version) for version in {*versions} - {""}}
    async with open_store(tmp_path) as store:
        for version in versions:
            if version:
                await bring(store, registry, manifests[version])
            else:
                await store.undeploy("prod.web")
            assert deployed(tmp_path, "prod.web") == version
            assert listing(tmp_path)["tmp"] == []
    assert set(registry.fetched.values()) == {1}


async def test_packages_deployed_under_another_name_are_not_collected(tmp_path: Path) -> None:
    """Instances of one version share one tree, which is not collected before the last of them is removed."""
    registry = MemoryRegistry()
    old, new = await put(registry, "1.0.0"), await put(registry, "2.0.0")
    async with open_store(tmp_path, NEVER_SPARE) as store:
        await bring(store, registry, old, "prod.web")
        await bring(store, registry, old, "test.web")
        await bring(store, registry, new, "new.web")
        await store.undeploy("prod.web")
        await store.collect()
        assert deployed(tmp_path, "test.web") == "1.0.0"
        await store.undeploy("test.web")
        await store.collect()
        assert deployed(tmp_path, "new.web") == "2.0.0"
        assert listing(tmp_path)["trees"] == [new.descriptor.digest.hex]


async def test_collecting_an_empty_store_deletes_nothing(tmp_path: Path) -> None:
    async with open_store(tmp_path, NEVER_SPARE) as store:
        assert await store.collect() == 0
        await store.undeploy("prod.web")


async def test_a_broken_link_is_replaced(tmp_path: Path) -> None:
    """The link of a deployed name may lead to a tree that a user has deleted. Another deployment of the name replaces the link,
    and the end of the deployment removes it.
    """
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path) as store:
        link = await bring(store, registry, manifest)
        link.unlink()
        link.symlink_to("../store/trees/gone/chart")
        await bring(store, registry, manifest)
        assert deployed(tmp_path, "prod.web") == "1.0.0"
        link.unlink()
        link.symlink_to("../store/trees/gone/chart")
        await store.undeploy("prod.web")
        assert listing(tmp_path)["deployed"] == []
