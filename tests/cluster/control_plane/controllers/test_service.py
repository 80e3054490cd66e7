"""All controllers together: they start on what is there, end with the block, and survive an unreachable server."""

from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.control_plane.controllers.harness import config_map, key, look, open_cluster, settle, workload
from wharfinger.cluster.connection import Connection, bearer
from wharfinger.cluster.control_plane.controllers.service import open_controllers
from wharfinger.cluster.control_plane.service import LOCAL, open_control_plane
from wharfinger.cluster.http_client import open_client
from wharfinger.formats.json_value import find, find_list


async def test_they_take_up_what_is_there(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client:
        owner = await client.create(config_map("owner"))
        await client.create(config_map("child", owner))
        await client.create(workload("Deployment", "web"))
        await client.delete(await key(client, "v1", "ConfigMap", "owner"))
        async with open_controllers(client, now=lambda: datetime(2026, 1, 1, tzinfo=UTC)):
            await settle()
        assert await look(client, "v1", "ConfigMap", "child") is None
        web = await look(client, "apps/v1", "Deployment", "web")
        assert find(web, "status", "availableReplicas") == 1
        assert find_list(web, "status", "conditions")
        assert find(web, "status", "conditions", 0, "lastUpdateTime") == "2026-01-01T00:00:00Z"


async def test_leaving_the_block_ends_them(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client:
        async with open_controllers(client):
            await settle()
        await client.create(workload("Deployment", "web"))
        await settle(60)
        web = await look(client, "apps/v1", "Deployment", "web")
        assert find(web, "status", "observedGeneration") is None


async def test_an_error_in_the_block_comes_out(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client:
        with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="mine")):
            async with open_controllers(client):
                raise ValueError("mine")


class Flaky(httpx.AsyncBaseTransport):
    """Refuses every connection that ``fails`` says."""

    def __init__(self, inner: httpx.AsyncBaseTransport, fails: Callable[[httpx.Request], bool]) -> None:
        self._inner = inner
        self._fails = fails

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._fails(request):
            await trio.lowlevel.checkpoint()
            raise httpx.ConnectError("refused")
        return await self._inner.handle_async_request(request)


async def test_they_survive_a_server_that_is_often_away(autojump_clock: MockClock) -> None:
    counter = iter(range(1_000_000))
    connection = Connection(LOCAL, bearer(""))
    async with open_control_plane(simulate=False) as plane:
        flaky = Flaky(plane.transport(), lambda _request: next(counter) % 3 == 0)
        async with (
            open_client(connection, transport=plane.transport()) as client,
            open_client(connection, transport=flaky) as theirs,
            open_controllers(theirs),
        ):
            await client.create(workload("Deployment", "web"))
            await settle(120)
            web = await look(client, "apps/v1", "Deployment", "web")
            assert find(web, "status", "availableReplicas") == 1
