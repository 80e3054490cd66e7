"""Lists and watches over a session: pages, their size, and pauses between reads. test_http_client.py has the common cases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import CONFIG_MAP
from tests.cluster.support.faulty_transport import Answer, Hang, Reply, event, in_turn, status_reply
from tests.cluster.support.scripted_client import OPTIONS, Server, client_of
from tests.cluster.support.watch_script import obj, page
from wharfinger.cluster.api import http_reading
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import GoneError, UnreachableError
from wharfinger.cluster.api.http_errors import MalformedAnswerError, NotServedError
from wharfinger.cluster.api.http_reading import MUCH_BYTES, REST_S
from wharfinger.cluster.api.http_session import ResponseTooLargeError
from wharfinger.cluster.api.raw_object import RawEvent

EXPIRED = status_reply(410, "Expired", "the continue token is too old")
SMALL = replace(OPTIONS, max_response_bytes=2_000, page_size=500)


async def names(client: ClusterClient, *, paged: bool = True) -> list[str]:
    async with client.raw_list(CONFIG_MAP, "default", label_selector="a=b", paged=paged) as pages:
        return [item.key.name async for page in pages for item in page.items]


async def test_pages_are_requested_one_after_the_other() -> None:
    answers = (page(obj("a", 1), version=5, token="t1"), page(version=5, token="t2"), page(obj("b", 2), version=5))
    async with (
        client_of(in_turn(*answers)) as (client, transport),
        client.raw_list(CONFIG_MAP, "default", label_selector="a=b", field_selector="metadata.name!=c") as pages,
    ):
        assert transport.requests == []
        first = await anext(pages)
        assert ([item.key.name for item in first.items], first.resource_version) == (["a"], "5")
        assert len(transport.requests) == 1
        assert [[item.key.name for item in one.items] async for one in pages] == [[], ["b"]]
    path = "https://api.example/api/v1/namespaces/default/configmaps?limit=500&labelSelector=a%3Db"
    query = "&fieldSelector=metadata.name%21%3Dc"
    assert [str(request.url) for request in transport.requests] == [
        path + query,
        f"{path}{query}&continue=t1",
        f"{path}{query}&continue=t2",
    ]


async def test_an_expired_page_is_raised() -> None:
    async with client_of(in_turn(page(obj("a", 1), version=5, token="t"), EXPIRED)) as (client, _):
        with pytest.raises(GoneError, match="too old"):
            await names(client)


async def test_an_unpaged_list_has_no_limit_parameter() -> None:
    async with client_of(in_turn(page(obj("a", 1), obj("b", 1), version=5))) as (client, transport):
        assert await names(client, paged=False) == ["a", "b"]
    assert "limit" not in transport.requests[0].url.params


def sized(limit: int, items: int) -> Answer:
    """Return a page with ``items`` objects of 1 kB each, or with ``limit`` objects and a token if ``limit`` is lower."""
    big = [obj(f"c-{number}", 1) | {"data": {"x": "y" * 1_000}} for number in range(min(limit, items))]
    return page(*big, version=5, token="t" if limit < items else "")


async def test_pages_that_are_too_large_are_requested_again_with_a_smaller_limit() -> None:
    asked: list[str] = []

    def script(request: httpx.Request) -> Answer:
        asked.append(request.url.params.get("limit", "all"))
        return sized(int(asked[-1]), 2 if len(asked) > 3 else 20)

    async with client_of(script, replace(SMALL, max_response_bytes=9_000)) as (client, _):
        assert len(await names(client)) == 9
    assert asked == ["500", "62", "7", "7"]

    async with client_of(lambda _: sized(1_000, 20), SMALL) as (client, transport):
        with pytest.raises(ResponseTooLargeError, match="over the limit of 2000 bytes"):
            await names(client, paged=False)
        assert len(transport.requests) == 1
        with pytest.raises(ResponseTooLargeError):
            await names(client)
        assert [request.url.params["limit"] for request in transport.requests[1:]] == ["500", "62", "7", "1"]


async def test_a_list_is_bounded_over_all_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_reading, "MAX_LIST_BYTES", 1_000)
    async with client_of(lambda _: page(obj("a", 1), version=5, token="more")) as (client, transport):
        with pytest.raises(MalformedAnswerError, match="list ConfigMap in default: over 1000 bytes in all"):
            await names(client)
        with pytest.raises(MalformedAnswerError, match="over 1000 bytes in all"):
            await client.list(CONFIG_MAP)
        assert len(transport.requests) < 20


async def test_a_kind_that_is_no_longer_served_is_discovered_again() -> None:
    async with client_of(
        Server(lambda _: status_reply(404, "NotFound", "the server could not find the requested resource"))
    ) as (
        client,
        transport,
    ):
        for number in range(1, 3):
            await client.resource_type("v1", "Pod")
            assert transport.paths.count("GET /api") == number
            with pytest.raises(NotServedError):
                await names(client)
        await client.resource_type("v1", "Pod")
        with pytest.raises(NotServedError):
            async with client.raw_watch(CONFIG_MAP, resource_version="1"):
                raise AssertionError
        await client.resource_type("v1", "Pod")
        assert transport.paths.count("GET /api") == 4


async def test_raw_watches_send_the_usual_parameters_and_are_counted() -> None:
    reply = Reply(200, [event("ADDED", obj("a", 6)), httpx.ReadError("reset")])
    async with client_of(in_turn(reply)) as (client, transport):
        seen: list[RawEvent] = []
        with pytest.raises(UnreachableError, match="reset"):
            async with client.raw_watch(CONFIG_MAP, "default", resource_version="5", label_selector="a=b") as events:
                assert client.statistics()["watches"] == 1
                async for one in events:
                    seen.append(one)  # noqa: PERF401 - it raises in between
        assert [one.object.key.name for one in seen] == ["a"]
        assert client.statistics()["watches"] == 0
    assert dict(transport.requests[0].url.params) == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "resourceVersion": "5",
        "labelSelector": "a=b",
    }


async def test_leaving_a_raw_watch_early_closes_it(autojump_clock: MockClock) -> None:
    lines = event("ADDED", obj("a", 6)) + event("ADDED", obj("b", 7))
    async with client_of(in_turn(Reply(200, [lines, Hang()]), Reply(200, [Hang()]))) as (client, transport):
        async with client.raw_watch(CONFIG_MAP, resource_version="5") as events:
            await anext(events)
        assert transport.open_streams == 0
        with trio.move_on_after(5):
            async with client.raw_watch(CONFIG_MAP, resource_version="5") as events:
                await anext(events)
        assert (transport.open_streams, client.statistics()["watches"]) == (0, 0)


# -- read pauses


@asynccontextmanager
async def network(every_s: float, count: int, size: int) -> AsyncIterator[AsyncIterator[bytes]]:
    """Yield a stream of chunks. A chunk is sent every ``every_s`` seconds, whether the earlier ones were read or not."""
    send, receive = trio.open_memory_channel[bytes](count)

    async def feed() -> None:
        with send:
            for _ in range(count):
                await trio.sleep(every_s)
                await send.send(b"x" * size)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed)
        yield receive


async def arrivals(every_s: float, count: int, size: int = 100) -> list[float]:
    """Return the times at which the reader passed the chunks on, in milliseconds after the first one."""
    async with network(every_s, count, size) as chunks:
        times = [trio.current_time() async for _ in http_reading.gathered(chunks)]
    return [round((time - times[0]) * 1e3, 3) for time in times]


async def test_occasional_chunks_are_passed_on_at_once(autojump_clock: MockClock) -> None:
    assert await arrivals(0.05, 5) == [0, 50, 100, 150, 200]


async def test_a_busy_stream_is_read_in_batches(autojump_clock: MockClock) -> None:
    assert await arrivals(0.002, 8) == [0, 2, 7, 7, 8, 13, 13, 14]
    assert REST_S == 0.005


async def test_a_stream_with_large_chunks_is_read_without_pauses(autojump_clock: MockClock) -> None:
    assert await arrivals(0.001, 8, MUCH_BYTES) == [0, 1, 2, 3, 4, 5, 6, 7]
