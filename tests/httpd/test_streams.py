"""Streamed answers: each chunk is sent immediately, and the client, the producer or the server can end the answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11
import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, SMALL, Ticker, exchange, read_answers, read_open_ended
from wharfinger.httpd.messages import Request, StreamingResponse
from wharfinger.httpd.server import serve_connection


async def test_each_chunk_is_sent_when_it_is_made() -> None:
    ticker = Ticker()
    client, server = trio.testing.memory_stream_pair()
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    reader.send(h11.EndOfMessage())

    async def next_events() -> list[str]:
        await trio.testing.wait_all_tasks_blocked()
        reader.receive_data(bytes(await client.receive_some()))
        events = []
        while (event := reader.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
            events.append(bytes(event.data).decode() if isinstance(event, h11.Data) else type(event).__name__)
        return events

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % b"/watch")
        assert await next_events() == ["Response"]
        for text in ("one", "two"):
            await ticker.send.send(text.encode())
            assert await next_events() == [text]
        await ticker.send.send(b"")  # an empty chunk on the wire would end the stream
        await ticker.send.send(b"three")
        assert await next_events() == ["three"]
        ticker.send.close()
        assert await next_events() == ["EndOfMessage"]
        assert ticker.closed.is_set()
        await client.send_all(GET % b"/next")
        await trio.testing.wait_all_tasks_blocked()
        assert read_answers(bytes(await client.receive_some()))[0].body == b"/next"
        await client.aclose()


async def test_a_stream_over_http_1_0_ends_with_the_connection() -> None:
    ticker = Ticker()
    await ticker.send.send(b"one")
    ticker.send.close()
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(b"GET /watch HTTP/1.0\r\n\r\n")
        received = b"".join([chunk async for chunk in client])
    assert received.endswith(b"\r\n\r\none")
    assert b"chunked" not in received


@pytest.mark.parametrize("before", [0, 1])
async def test_a_client_that_leaves_ends_its_stream(before: int) -> None:
    for _ in range(50):
        ticker = Ticker()
        client, server = trio.testing.memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
            await client.send_all(GET % b"/watch")
            await ticker.opened.wait()
            for _ in range(before):
                await ticker.send.send(b"tick")
            await client.aclose()
            await ticker.closed.wait()


async def test_head_opens_no_stream() -> None:
    ticker = Ticker()
    answers = await exchange(
        b"HEAD /watch HTTP/1.1\r\nHost: a\r\n\r\n" + GET % b"/2", ticker.handler, methods="HEAD GET"
    )
    assert [answer.body for answer in answers] == [b"", b"/2"]
    assert not ticker.opened.is_set()


async def test_a_request_pipelined_behind_a_stream_waits_for_its_end() -> None:
    ticker = Ticker()
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % b"/watch")
        await ticker.opened.wait()
        await client.send_all(GET % b"/next")
        await ticker.send.send(b"tick")
        await trio.testing.wait_all_tasks_blocked()
        ticker.send.close()
        await trio.testing.wait_all_tasks_blocked()
        assert [answer.body for answer in read_answers(bytes(await client.receive_some()))] == [b"tick", b"/next"]
        await client.aclose()


async def test_too_many_pipelined_bytes_end_a_stream() -> None:
    ticker = Ticker()
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % b"/watch")
        await trio.testing.wait_all_tasks_blocked()
        await client.send_all(GET % b"/next" * 1000)
        await ticker.closed.wait()
        answers = read_answers(b"".join([chunk async for chunk in client]))
    assert [answer.whole for answer in answers] == [False]


@pytest.mark.parametrize("when", ["opening", "first", "second", "closing"])
async def test_a_failing_producer_ends_the_answer_incomplete(when: str, caplog: pytest.LogCaptureFixture) -> None:
    async def produce() -> AsyncIterator[bytes]:
        if when == "first":
            raise KeyError(when)
        yield b"one"
        if when == "second":
            raise KeyError(when)

    @asynccontextmanager
    async def open_chunks() -> AsyncIterator[AsyncIterator[bytes]]:
        async with trio.open_nursery():
            if when == "opening":
                raise KeyError(when)
            yield produce()
            if when == "closing":
                raise KeyError(when)

    async def handler(_request: Request) -> StreamingResponse:
        return StreamingResponse(200, open_chunks)

    (answer,) = await read_open_ended(GET % b"/" + GET % b"/", handler)
    if when == "opening":
        assert (answer.status, answer.body, answer.whole) == (500, b"internal error\n", True)
    else:
        assert (answer.status, answer.body, answer.whole) == (200, b"" if when == "first" else b"one", False)
    assert len(caplog.records) == 1
