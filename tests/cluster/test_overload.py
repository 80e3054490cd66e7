"""A server that refuses requests for some time. No call fails, and the client sends no storm of requests. Time is virtual."""

import random
from collections import Counter
from collections.abc import Callable

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import CONFIG_MAP, config_map
from tests.cluster.support.faulty_transport import status_reply
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.traffic.pacer import FLOOR
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find_str

MINUTE_S = 60.0
TASKS, WRITES = 100, 12
CEILING = 64


class Overloaded(httpx.AsyncBaseTransport):
    """A server that answers some requests with 429 while it is overloaded. It counts the requests of each second."""

    def __init__(self, inner: httpx.AsyncBaseTransport, refuses: Callable[[], bool]) -> None:
        self._inner = inner
        self._refuses = refuses
        self.seconds: Counter[int] = Counter()
        self.refused = 0
        self.passed = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.sleep(0.01)
        self.seconds[int(trio.current_time())] += 1
        if self._refuses():
            self.refused += 1
            reply = status_reply(429, "TooManyRequests", "please try again later", {"retry-after": "1"})
            return httpx.Response(429, headers=reply.headers, content=b"".join(map(_bytes, reply.chunks)))
        self.passed += 1
        return await self._inner.handle_async_request(request)


def _bytes(chunk: object) -> bytes:
    assert isinstance(chunk, bytes)
    return chunk


async def write(client: ClusterClient, number: int, pause_s: float) -> None:
    """Apply one object WRITES times, with a pause after each write. An error ends the test."""
    for value in range(WRITES):
        body: JsonObject = {**config_map(f"c{number}"), "data": {"v": str(value)}}
        await client.apply(body, field_manager="t")
        await trio.sleep(pause_s)


@pytest.mark.slow
async def test_a_minute_of_refusing_half_of_all_calls_fails_nothing_and_causes_no_storm(
    autojump_clock: MockClock,
) -> None:
    draw = random.Random(7)  # noqa: S311
    async with open_control_plane(simulate=False) as plane:
        server = Overloaded(plane.transport(), lambda: trio.current_time() < begun + MINUTE_S and draw.random() < 0.5)
        begun = trio.current_time()
        options = ClientOptions(concurrency=CEILING, random=draw.random)
        async with (
            open_client(Connection(LOCAL), transport=server, options=options) as client,
            open_informer(client, CONFIG_MAP, jitter=draw.random) as informer,
        ):
            async with trio.open_nursery() as nursery:
                for number in range(TASKS):
                    nursery.start_soon(write, client, number, MINUTE_S / WRITES)
            with informer.changes() as changes:
                while {find_str(one, "data", "v") for one in informer.objects().values()} != {str(WRITES - 1)}:
                    await changes.wait()
            assert informer.statistics().failures == 0
            assert len(informer.objects()) == TASKS
            pace = client.pace()
    assert trio.current_time() - begun >= MINUTE_S
    assert server.refused > 100
    assert server.refused + server.passed <= 2.2 * server.passed
    assert pace.refused == server.refused
    # After a refusal, all 100 waiting writers may send a request in the same second.
    assert max(server.seconds.values()) <= 2 * CEILING


async def test_a_server_that_refuses_everything_receives_few_requests(autojump_clock: MockClock) -> None:
    async with open_control_plane(simulate=False) as plane:
        server = Overloaded(plane.transport(), lambda: begun + 1 < trio.current_time() < begun + 21)
        begun = trio.current_time()
        async with open_client(
            Connection(LOCAL), transport=server, options=ClientOptions(concurrency=CEILING, random=lambda: 0.0)
        ) as client:
            await client.resource_type("v1", "ConfigMap")
            await trio.sleep_until(begun + 2)
            async with trio.open_nursery() as nursery:
                for number in range(TASKS):
                    nursery.start_soon(write, client, number, 0.0)
        late = [server.seconds[int(begun) + second] for second in range(12, 20)]
    assert max(late) <= 2 * FLOOR, late
    assert server.passed >= TASKS * WRITES
