import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from wharfinger.control_plane.faults.rule_reader import parse_line
from wharfinger.control_plane.service import ControlPlane, open_control_plane

MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def chaos(rules: str) -> AsyncIterator[tuple[ControlPlane, httpx.AsyncClient]]:
    async with (
        open_control_plane(simulate=False, faults=parse_line(rules)) as control_plane,
        httpx.AsyncClient(
            transport=control_plane.transport(), base_url="http://test", headers={"user-agent": "test/1"}
        ) as client,
    ):
        yield control_plane, client


async def create(client: httpx.AsyncClient, name: str) -> httpx.Response:
    return await client.post(MAPS, json={"metadata": {"name": name}})


async def there(control_plane: ControlPlane) -> list[str]:
    """Return the names of all ConfigMaps, from a request that the fault handler does not see."""
    transport = httpx.AsyncClient(transport=httpx_inside(control_plane), base_url="http://test")
    async with transport as client:
        return [item["metadata"]["name"] for item in (await client.get(MAPS)).json()["items"]]


def httpx_inside(control_plane: ControlPlane) -> httpx.AsyncBaseTransport:
    from wharfinger.control_plane.http.memory_transport import MemoryTransport

    return MemoryTransport(control_plane.handler)


async def test_dropped_requests_fail_before_or_after_the_commit() -> None:
    async with chaos("drop-before verb=create times=1; drop-after verb=create skip=1 times=1") as (plane, client):
        with pytest.raises(httpx.ReadError):
            await create(client, "a")
        assert await there(plane) == []
        with pytest.raises(httpx.ReadError):
            await create(client, "b")
        assert await there(plane) == ["b"]
        assert (await create(client, "c")).status_code == 201


async def test_injected_errors_and_throttling_are_statuses() -> None:
    async with chaos("error code=503 verb=get times=1; throttle verb=list retry-after=7") as (_, client):
        failed = await client.get(f"{MAPS}/x")
        throttled = await client.get(MAPS)

        assert (failed.status_code, failed.json()["reason"]) == (503, "ServiceUnavailable")
        assert (throttled.status_code, throttled.json()["reason"]) == (429, "TooManyRequests")
        assert throttled.headers["retry-after"] == "7"
        assert throttled.json()["details"] == {"retryAfterSeconds": 7}
        assert (await client.get(f"{MAPS}/x")).status_code == 404
        assert (await client.get("/version")).status_code == 200


async def test_latency_and_slow_lists_delay_answers(autojump_clock: trio.testing.MockClock) -> None:
    async with chaos("latency delay=3s verb=create; slow-list delay=1s") as (_, client):
        began = trio.current_time()
        await client.post(MAPS, json={"metadata": {"name": "a"}, "data": {"x": "y" * 40_000}})
        created = trio.current_time()
        listed = await client.get(MAPS)

        assert (created - began, trio.current_time() - created) == (3.0, 3.0)
        assert len(listed.json()["items"]) == 1


async def test_a_stale_read_shows_an_earlier_state() -> None:
    async with chaos("stale-read back=1 agent=test*") as (plane, client):
        await create(client, "a")
        assert (await client.get(f"{MAPS}/a")).status_code == 404
        assert (await client.get(MAPS)).json()["items"] == []
        assert await there(plane) == ["a"]
        await create(client, "b")
        assert [item["metadata"]["name"] for item in (await client.get(MAPS)).json()["items"]] == ["a"]


async def watched(client: httpx.AsyncClient) -> list[str]:
    """Return the names in the events of a watch. The last item is "cut" if the connection broke, and "ended" otherwise."""
    found = []
    try:
        async with client.stream("GET", f"{MAPS}?watch=1&timeoutSeconds=60") as response:
            async for line in response.aiter_lines():
                found += [json.loads(line)["object"]["metadata"]["name"]]
    except httpx.ReadError:
        return [*found, "cut"]
    return [*found, "ended"]


async def test_watches_are_cut_after_a_number_of_events_or_a_time(autojump_clock: trio.testing.MockClock) -> None:
    async with chaos("cut-watch events=2 times=1; cut-watch after=5s skip=1 times=1") as (_, client):
        for name in "abc":
            await create(client, name)
        began = trio.current_time()

        assert await watched(client) == ["a", "b", "cut"]
        assert await watched(client) == ["a", "b", "c", "cut"]
        assert trio.current_time() - began == 5.0
        assert await watched(client) == ["a", "b", "c", "ended"]


async def test_a_partition_delays_requests_and_cuts_watches(autojump_clock: trio.testing.MockClock) -> None:
    async with chaos("partition start=10s for=5s") as (plane, client):
        await create(client, "a")
        assert await watched(client) == ["a", "cut"]
        assert trio.current_time() == pytest.approx(10.0, abs=0.1)
        began = trio.current_time()
        with pytest.raises(httpx.ReadError):
            await client.post(MAPS, json={"metadata": {"name": "b"}}, timeout=60)
        assert trio.current_time() - began == pytest.approx(5.0, abs=0.1)
        assert await there(plane) == ["a"]
        assert (await create(client, "b")).status_code == 201
