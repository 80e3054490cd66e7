"""All controllers together. They reconcile existing objects, and stop when the block of `open_controllers` ends."""

import pytest
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import config_map, key, look, open_plane, settle, workload
from wharfinger.control_plane.controllers.manager import open_controllers
from wharfinger.formats.json.value import find


async def test_controllers_reconcile_existing_objects(autojump_clock: MockClock) -> None:
    async with open_plane(controllers=False) as (client, backend):
        owner = await client.create(config_map("owner"))
        await client.create(config_map("child", owner))
        await client.create(workload("Deployment", "web"))
        await client.delete(await key(client, "v1", "ConfigMap", "owner"))
        async with open_controllers(backend):
            await settle()
        assert await look(client, "v1", "ConfigMap", "child") is None
        web = await look(client, "apps/v1", "Deployment", "web")
        assert find(web, "status", "availableReplicas") == 1
        await client.create(workload("Deployment", "later"))
        await settle(60)
        later = await look(client, "apps/v1", "Deployment", "later")
        assert find(later, "status", "observedGeneration") is None


async def test_an_error_inside_the_block_is_raised(autojump_clock: MockClock) -> None:
    async with open_plane(controllers=False) as (_, backend):
        with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="mine")):
            async with open_controllers(backend):
                raise ValueError("mine")
