"""A single connection: requests, answers, handlers that fail, and the end of the connection."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from tests.httpd.raw import (
    GET,
    POST,
    SMALL,
    Recorder,
    Ticker,
    exchange,
    read_answers,
    send_bytes,
)
from wharfinger.httpd.connection import Connection
from wharfinger.httpd.messages import Request, Response, StreamingResponse
from wharfinger.httpd.server import serve_connection


async def test_requests_are_answered_in_order_and_may_be_pipelined() -> None:
    handler = Recorder()
    answers = await exchange(GET % b"/1" + POST % (b"/2", b"Content-Length: 3", b"abc") + GET % b"/3", handler)
    assert [answer.body for answer in answers] == [b"GET /1 ", b"POST /2 abc", b"GET /3 "]
    assert [request.path for request in handler.seen] == ["/1", "/2", "/3"]
    assert all(answer.status == 200 and "connection" not in answer.headers for answer in answers)


async def test_the_handler_sees_the_whole_request() -> None:
    handler = Recorder()
    raw = POST % (
        b"/a%20b?x=1&x=2",
        b"X-Y: z\r\nTransfer-Encoding: chunked",
        b"2;ext=1\r\nab\r\n1\r\nc\r\n0\r\nT: t\r\n\r\n",
    )
    await exchange(raw, handler, fragment=1)
    headers = {"host": "a", "x-y": "z", "transfer-encoding": "chunked"}
    assert handler.seen == [Request("POST", "/a b", {"x": ("1", "2")}, headers, b"abc")]


async def test_head_has_the_length_but_no_body() -> None:
    answers = await exchange(b"HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\n" + GET % b"/2", methods="HEAD GET")
    assert [(answer.body, answer.headers["content-length"]) for answer in answers] == [(b"", "8"), (b"GET /2 ", "7")]


async def test_http_1_0_and_connection_close_end_the_connection() -> None:
    for first in (b"GET /1 HTTP/1.0\r\n\r\n", b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):
        handler = Recorder()
        answers = await exchange(first + GET % b"/2", handler)
        assert [answer.body for answer in answers] == [b"GET /1 "]
        assert len(handler.seen) == 1


async def test_an_upgrade_is_ignored() -> None:
    raw = b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert [answer.body for answer in await exchange(raw + GET % b"/2")] == [b"GET /1 ", b"GET /2 "]


async def test_a_status_without_a_body_has_no_body() -> None:
    async def handler(_request: Request) -> Response:
        return Response(204, b"a bug of the handler")

    received = await send_bytes(GET % b"/1" + GET % b"/2", handler)
    assert received.count(b"204 No Content") == 2
    assert b"bug" not in received


async def test_the_server_sends_continue_to_a_client_that_waits_for_it() -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        await client.send_all(POST % (b"/", b"Expect: 100-continue\r\nContent-Length: 2", b""))
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.receive_some()).startswith(b"HTTP/1.1 100 ")
        await client.send_all(b"ab")
        await trio.testing.wait_all_tasks_blocked()
        assert read_answers(bytes(await client.receive_some()))[0].body == b"POST / ab"
        await client.aclose()


async def test_the_server_sends_no_continue_before_a_refusal() -> None:
    received = await send_bytes(POST % (b"/", b"Expect: 100-continue\r\nContent-Length: 2000", b""))
    assert b"100 Continue" not in received
    assert read_answers(received)[0].status == 413


# Handlers


async def test_a_failing_handler_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/good":
            return Response(200, b"good")
        raise KeyError("the secret of the house")

    answers = await exchange(GET % b"/a%1b[31m".replace(b"%1b", b"%5C") + GET % b"/good", handler)
    assert [(answer.status, answer.body) for answer in answers] == [(500, b"internal error\n"), (200, b"good")]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


async def test_an_exception_group_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_request: Request) -> Response:
        async with trio.open_nursery():
            raise KeyError("wrapped by the nursery")

    assert [answer.status for answer in await exchange(GET % b"/", handler)] == [500]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "response",
    [
        Response(200, headers=(("X-A", "b\r\nSet-Cookie: c"),)),
        Response(200, headers=(("Content-Length", "5"),)),
        Response(200, headers=(("X-A", "\ud800"),)),
        Response(100),
        None,
    ],
)
async def test_an_invalid_response_is_a_failure(response: Response, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_request: Request) -> Response:
        return response

    answers = await exchange(GET % b"/" + GET % b"/", handler)
    assert [answer.status for answer in answers] == [500, 500]
    assert len(caplog.records) == 2


async def test_headers_are_utf_8() -> None:
    async def handler(_request: Request) -> Response:
        return Response(200, headers=(("X-A", "\u2713"),))

    [answer] = await exchange(GET % b"/", handler)
    assert dict(answer.headers)["x-a"] == "\u2713"


async def test_a_handler_is_not_cancelled_because_its_client_left() -> None:
    go_on = trio.Event()
    done: list[str] = []

    async def handler(request: Request) -> Response:
        await go_on.wait()
        done.append(request.path)
        return Response(200)

    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, handler, SMALL)
        await client.send_all(GET % b"/1")
        await trio.testing.wait_all_tasks_blocked()
        await client.aclose()
        go_on.set()
    assert done == ["/1"]


# Ending


@pytest.mark.parametrize("ending", ["drain", "retire"])
async def test_an_idle_connection_ends_at_once(ending: str) -> None:
    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, Recorder(), SMALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        await trio.testing.wait_all_tasks_blocked()
        assert connection.idle
        getattr(connection, ending)("test")
        assert await client.receive_some() == b""


async def test_a_connection_can_be_drained_before_it_runs() -> None:
    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, Recorder(), SMALL)
    connection.drain("test")
    await client.send_all(GET % b"/")
    await connection.run()
    assert await client.receive_some() == b""


async def test_a_drain_completes_the_current_answer_as_the_last_one() -> None:
    go_on = trio.Event()

    async def handler(_request: Request) -> Response:
        await go_on.wait()
        return Response(200, b"done")

    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, handler, SMALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        await client.send_all(GET % b"/1" + GET % b"/2")
        await trio.testing.wait_all_tasks_blocked()
        connection.drain("test")
        go_on.set()
        answers = read_answers(b"".join([chunk async for chunk in client]))
    assert [(answer.body, answer.headers["connection"]) for answer in answers] == [(b"done", "close")]


async def test_draining_ends_a_stream_properly_and_retiring_does_not_end_it() -> None:
    for _ in range(50):
        ticker = Ticker()
        client, server = trio.testing.memory_stream_pair()
        connection = Connection(server, ticker.handler, SMALL)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            await client.send_all(GET % b"/watch")
            await ticker.send.send(b"one")
            await trio.testing.wait_all_tasks_blocked()
            assert connection.streaming
            connection.retire("test")
            await ticker.send.send(b"two")
            await trio.testing.wait_all_tasks_blocked()
            assert connection.streaming
            connection.drain("test")
            (answer,) = read_answers(b"".join([chunk async for chunk in client]))
        assert ticker.closed.is_set()
        assert (answer.body, answer.whole) == (b"onetwo", True)


async def test_a_drain_ends_the_opening_of_a_stream() -> None:
    opening = trio.Event()

    @asynccontextmanager
    async def open_chunks() -> AsyncIterator[AsyncIterator[bytes]]:
        opening.set()
        await trio.Event().wait()
        yield Ticker()._receive

    async def handler(_request: Request) -> StreamingResponse:
        return StreamingResponse(200, open_chunks)

    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, handler, SMALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        await client.send_all(GET % b"/")
        await opening.wait()
        connection.drain("test")
        (answer,) = read_answers(b"".join([chunk async for chunk in client]))
    assert answer.status == 503


async def test_no_stream_is_begun_while_draining() -> None:
    ticker = Ticker()
    go_on = trio.Event()

    async def handler(request: Request) -> Response | StreamingResponse:
        await go_on.wait()
        return await ticker.handler(request)

    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, handler, SMALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        await client.send_all(GET % b"/watch")
        await trio.testing.wait_all_tasks_blocked()
        connection.drain("test")
        go_on.set()
        (answer,) = read_answers(b"".join([chunk async for chunk in client]))
    assert answer.status == 503
    assert not ticker.opened.is_set()


async def test_cancelling_the_connection_closes_the_stream_and_its_producer() -> None:
    ticker = Ticker()
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % b"/watch")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert ticker.closed.is_set()
    (answer,) = read_answers(b"".join([chunk async for chunk in client]))
    assert not answer.whole
