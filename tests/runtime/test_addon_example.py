"""The example with modules of addon-operator: the controller finds its module folders, and the runtime installs them."""

import shutil
from pathlib import Path

from tests.programs import ROOT
from tests.runtime.support.world import World, open_world
from wharfinger.formats.json.value import JsonObject, as_object, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.modules_dir import open_modules_dir
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import CONFIG_MAP

EXAMPLE = ROOT / "examples" / "addon-modules"


async def text(world: World, name: str, key: str) -> str:
    return find_str(await world.config_map(SYSTEM_NAMESPACE, name), "data", key)


async def reader(world: World, name: str) -> None:
    metadata: JsonObject = {"name": name, "labels": {"banner": "reads"}}
    await world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def test_the_addon_operator_example_is_installed(tmp_path: Path) -> None:
    example = Path(shutil.copytree(EXAMPLE, tmp_path / "example"))
    settings = as_object(
        read_yaml((example / "config-map.yaml").read_bytes(), what="config-map.yaml"), "config-map.yaml"
    )
    async with open_world(tmp_path) as world:
        await world.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
        await world.client.create(settings)
        await reader(world, "shop")
        async with open_modules_dir(
            world.client,
            [example / "modules"],
            global_hooks=example / "global-hooks",
            config_map=ObjectKey(CONFIG_MAP, SYSTEM_NAMESPACE, "addon-settings"),
        ) as controller:
            for name in ("global", "banner", "banner-audit", "motd"):
                await world.until_state("", name, "Ready")
            assert controller.problems == ()
            # The frame is static, the greeting and the number of lines are settings, the domain is global, and a hook composes
            # the line.
            assert await text(world, "banner", "text") == "* Welcome to example.org\n" * 2
            assert await text(world, "banner-audit", "readers") == "shop"
            assert await text(world, "motd", "text") == "have a nice day"
            assert world.runtime.packages.global_values()["clusterName"] == "example"
