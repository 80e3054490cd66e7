"""The patches in `spec.patches`. The daemon applies them, reverts removed ones, and reports one that matches no object."""

from pathlib import Path
from typing import Final

import pytest

from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import JsonObject, find, find_str

pytestmark = pytest.mark.unmeasured

PATCH: Final[JsonObject] = {"patch": "data: {colour: blue}", "target": {"kind": "ConfigMap"}}
WRONG: Final[JsonObject] = {"patch": "spec: {replicas: 2}", "target": {"kind": "Deployment"}}


@pytest.mark.slow
async def test_patches_of_the_spec_are_applied_to_the_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", more={"patches": [PATCH]})
        await world.until_state("prod", "shop", "Ready")
        assert find(await world.config_map("prod", "shop") or {}, "data", "colour") == "blue"
        history = await world.runtime.tools.releases.history("shop", "prod")
        assert "colour: blue" in history[-1].manifest
        # A patch that matches no object changes nothing, and its error names the patch.
        await world.change("prod", "shop", {"patches": [PATCH, WRONG]})
        shop = await world.until_state("prod", "shop", "Degraded")
        assert find_str(shop, "status", "summary", "message") == (
            "spec.patches[1]: no object of the chart matches kind=Deployment; correct the target"
        )
        assert find(await world.config_map("prod", "shop") or {}, "data", "colour") == "blue"
        await world.change("prod", "shop", {"patches": None})
        await world.until_state("prod", "shop", "Ready")
        assert find(await world.config_map("prod", "shop") or {}, "data", "colour") is None
