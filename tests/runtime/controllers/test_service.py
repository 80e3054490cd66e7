"""The controllers as a service: which events cause a reconciliation of a package."""

from pathlib import Path

import pytest

from tests.runtime.support.world import open_world

pytestmark = pytest.mark.unmeasured


async def test_packages_are_reconciled_when_their_repository_appears(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Failed")
        await world.repository()
        await world.until_state("prod", "shop", "Ready")
