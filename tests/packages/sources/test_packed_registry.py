"""Packages that are packed on request, tested by the contract of registries."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.packages.support.registry_contract import READ_CONTRACT, ReadCheck
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.packages.registry.pusher import Package, load_package
from wharfinger.packages.sources.packed_registry import PackedRegistry


class OneChart:
    """A packer whose packages are one version of one chart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def pack(self, name: str, tag: str) -> Package:
        if (name, tag) != ("charts/web", "1.0.0"):
            raise ArtifactNotFoundError(f"{name}:{tag}")
        return await load_package(self._folder)

    async def tags(self, name: str) -> tuple[str, ...]:
        if name != "charts/web":
            raise ArtifactNotFoundError(name)
        return ("1.0.0",)

    async def check(self) -> None:
        """Do nothing; the packer always exists."""


@pytest.mark.parametrize("check", READ_CONTRACT)
async def test_a_packed_registry_fulfils_the_contract(check: ReadCheck, tmp_path: Path) -> None:
    await check(PackedRegistry(OneChart(chart(tmp_path / "web", "web", "1.0.0")), "here"))


async def test_an_unknown_digest_is_not_found(tmp_path: Path) -> None:
    registry = PackedRegistry(OneChart(chart(tmp_path / "web", "web", "1.0.0")), "here")
    await registry.resolve("charts/web", "1.0.0")
    with pytest.raises(ArtifactNotFoundError) as caught:
        await registry.manifest("charts/web", digest_of(b""))
    assert str(caught.value) == (
        f"here/charts/web@{digest_of(b'')}: not found; request the package by its version again"
    )
