"""The owner of an Application, which is written by compare-and-set, so that only one of two writers succeeds."""

from pathlib import Path

from tests.runtime.support.sharded import KEY, prepared
from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.shards.handing_over import set_owner


async def test_only_one_of_two_writers_succeeds(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await prepared(world)
        await world.create("prod", "app", package="page")
        obj = await world.until_state("prod", "app", "Ready")
        assert await set_owner(world.client, KEY, obj, "blue")
        assert not await set_owner(world.client, KEY, obj, "red")
        assert find_str(await world.client.get(KEY), "status", "shard") == "blue"
        # The daemon stops its work on the Application, which has another owner now.
        await world.until_runtime(lambda: "prod.app" not in world.runtime.instances)
        assert not await set_owner(world.client, ObjectKey(KEY.resource, "prod", "none"), obj, "red")
        assert await world.client.get(ObjectKey(NAMESPACE, "", "prod"))
