"""One connection, byte by byte: framing, limits, deadlines, streams, and everything a hostile client may try."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11
import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, SMALL, Answer, Recorder, Ticker, exchange, read_answers, send_bytes
from wharfinger.httpd.connection import Connection
from wharfinger.httpd.messages import Handler, Request, Response, StreamingResponse
from wharfinger.httpd.server import serve_connection

POST = b"POST %s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n%s"


# Requests and answers


async def test_one_after_the_other_and_pipelined() -> None:
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


async def test_no_body_where_the_status_has_none() -> None:
    async def handler(_request: Request) -> Response:
        return Response(204, b"a bug of the handler")

    received = await send_bytes(GET % b"/1" + GET % b"/2", handler)
    assert received.count(b"204 No Content") == 2
    assert b"bug" not in received


async def test_continue_is_said_when_the_client_waits_for_it() -> None:
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


async def test_continue_is_not_said_before_a_refusal() -> None:
    received = await send_bytes(POST % (b"/", b"Expect: 100-continue\r\nContent-Length: 2000", b""))
    assert b"100 Continue" not in received
    assert read_answers(received)[0].status == 413


# Refusals

SMUGGLED = GET % b"/smuggled"
REFUSED = [
    (POST % (b"/", b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n"), 400),
    (POST % (b"/", b"Content-Length: 5\r\nContent-Length: 6", b"hello"), 400),
    (POST % (b"/", b"Content-Length: 5, 6", b"hello"), 400),
    (POST % (b"/", b"Content-Length: -1", b""), 400),
    (POST % (b"/", b"Content-Length: +5", b"hello"), 400),
    (POST % (b"/", b"Content-Length: 0x5", b"hello"), 400),
    (POST % (b"/", b"Content-Length: 1_0", b"hello"), 400),
    (POST % (b"/", b"Content-Length : 5", b"hello"), 400),
    (POST % (b"/", b"Content-Length: " + b"9" * 200, b"hello"), 400),
    (POST % (b"/", b"Transfer-Encoding: identity", b""), 501),
    (POST % (b"/", b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"), 501),
    (POST % (b"/", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"), 501),
    (POST % (b"/", b"Transfer-Encoding: xchunked", b"0\r\n\r\n"), 501),
    (POST % (b"/", b"Transfer-Encoding\t: chunked", b"0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"-1\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"0x5\r\nhello\r\n0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"1_0\r\nhello\r\n0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"5\r\nhelloXX0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"f" * 17 + b"\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"f" * 21 + b"\r\n"), 400),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA: \x00\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rContent-Length: 5\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET / HTTP/1.1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    (b"GET /\r\n\r\n", 400),
    (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", 417),
]


@pytest.mark.parametrize(("raw", "status"), REFUSED)
@pytest.mark.parametrize("fragment", [0, 1])
async def test_refused_and_nothing_after_it_is_read(raw: bytes, status: int, fragment: int) -> None:
    handler = Recorder()
    answers = await exchange(GET % b"/first" + raw + SMUGGLED, handler, fragment=fragment)
    assert [request.path for request in handler.seen] == ["/first"]
    assert [answer.status for answer in answers] == [200, status]
    assert answers[1].headers["connection"] == "close"
    assert answers[1].headers["content-type"].startswith("text/plain")
    assert answers[1].body.endswith(b"\n")


@pytest.mark.parametrize("fragment", [0, 100])
@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 2000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 20_000, 431),
        (POST % (b"/", b"Content-Length: 1001", b"a" * 1001), 413),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"3e9\r\n" + b"a" * 1001 + b"\r\n0\r\n\r\n"), 413),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"64\r\n" + b"a" * 100 + b"\r\n") + b"64\r\n" + b"a" * 1001, 400),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"1;" + b"x" * 4000), 431),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"0\r\n" + b"T: t\r\n" * 1000), 431),
    ],
)
async def test_over_the_limits(raw: bytes, status: int, fragment: int) -> None:
    handler = Recorder()
    assert [answer.status for answer in await exchange(raw, handler, fragment=fragment)] == [status]
    assert handler.seen == []


async def test_at_the_limits() -> None:
    for declared in (b"Content-Length: 1000", b"Transfer-Encoding: chunked"):
        body = b"a" * 1000 if b"Length" in declared else b"3e8\r\n" + b"a" * 1000 + b"\r\n0\r\n\r\n"
        assert len((await exchange(POST % (b"/", declared, body)))[0].body) == 1000 + len("POST / ")


@pytest.mark.parametrize("raw", [b"", b"GET / HTTP/1.1\r\nHo", POST % (b"/", b"Content-Length: 10", b"abc")])
async def test_a_client_that_leaves_early(raw: bytes) -> None:
    handler = Recorder()
    answers = await exchange(raw, handler)
    assert handler.seen == []
    assert [answer.status for answer in answers] == ([400] if raw else [])


async def test_a_refused_client_is_read_out_but_not_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        await client.send_all(POST % (b"/", b"Content-Length: 5000", b"a" * 3000))
        received = b"".join([chunk async for chunk in client])
        assert read_answers(received)[0].status == 413
        await client.send_all(b"a" * 2000)  # the server is still there to take it: no reset
    assert 0 < trio.current_time() < 3


# Deadlines


@pytest.mark.parametrize(
    ("sent", "status", "after"),
    [
        (b"", None, SMALL.idle_s),
        (b"G", 408, SMALL.header_read_s),
        (GET % b"/" + b"G", 408, SMALL.header_read_s),
        (POST % (b"/", b"Content-Length: 5", b"abc"), 408, SMALL.body_read_s),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"5\r\nabc"), 408, SMALL.body_read_s),
    ],
)
async def test_the_client_is_waited_for_so_long(
    sent: bytes, status: int | None, after: float, autojump_clock: trio.testing.MockClock
) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        await client.send_all(sent)
        answers = read_answers(b"".join([chunk async for chunk in client]))
        assert trio.current_time() == pytest.approx(after)
        assert [answer.status for answer in answers[-1:]] == ([] if status is None else [status])
        await client.aclose()


async def test_a_request_that_trickles_in_meets_the_same_deadline(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        with trio.move_on_after(60):
            async with trio.open_nursery() as both:

                async def trickle() -> None:
                    while True:
                        await client.send_all(b"a")
                        await trio.sleep(1)

                both.start_soon(trickle)
                assert read_answers(b"".join([chunk async for chunk in client]))[0].status == 408
                assert trio.current_time() == pytest.approx(SMALL.header_read_s)
                both.cancel_scope.cancel()
        await client.aclose()


async def test_idle_time_counts_from_the_last_answer(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        for _ in range(3):
            await trio.sleep(SMALL.idle_s - 1)
            await client.send_all(GET % b"/")
            assert read_answers(bytes(await client.receive_some()))[0].status == 200
        assert await client.receive_some() == b""
        assert trio.current_time() == pytest.approx(3 * (SMALL.idle_s - 1) + SMALL.idle_s)


@pytest.mark.parametrize("path", [b"/whole", b"/watch"])
async def test_a_client_that_does_not_take_its_answer(path: bytes, autojump_clock: trio.testing.MockClock) -> None:
    ticker = Ticker()
    client, server = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % path)
        if path == b"/watch":
            await ticker.closed.wait()
        else:
            await trio.sleep(SMALL.write_s + 1)
        assert SMALL.write_s <= trio.current_time() <= SMALL.write_s + 1
        with pytest.raises(trio.BrokenResourceError):
            await client.send_all(b"x")


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


async def test_a_group_of_failures_is_one_too(caplog: pytest.LogCaptureFixture) -> None:
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
        Response(200, headers=(("X-A", "\u2713"),)),
        Response(100),
        None,
    ],
)
async def test_an_impossible_response_is_a_failure(response: Response, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_request: Request) -> Response:
        return response

    answers = await exchange(GET % b"/" + GET % b"/", handler)
    assert [answer.status for answer in answers] == [500, 500]
    assert len(caplog.records) == 2


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


# Streams


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
        await ticker.send.send(b"")  # would end the stream if it were sent as a chunk
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


async def test_too_much_behind_a_stream_ends_it() -> None:
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
async def test_a_failing_producer(when: str, caplog: pytest.LogCaptureFixture) -> None:
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


# Ending


async def read_open_ended(data: bytes, handler: Handler) -> list[Answer]:
    """As exchange(), but the client keeps its direction open: a half-closed client has left its stream."""
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, handler, SMALL)
        await client.send_all(data)
        return read_answers(b"".join([chunk async for chunk in client]))


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


async def test_told_to_end_before_it_began() -> None:
    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, Recorder(), SMALL)
    connection.drain("test")
    await client.send_all(GET % b"/")
    await connection.run()
    assert await client.receive_some() == b""


async def test_the_answer_being_made_is_still_sent_and_is_the_last() -> None:
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


async def test_draining_brings_a_stream_to_its_proper_end_and_retiring_leaves_it() -> None:
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


async def test_drained_while_a_stream_is_being_opened() -> None:
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


# Transports that fail


class Breaking(trio.abc.HalfCloseableStream):
    """Gives ``received`` piece by piece and then fails; takes ``sends`` writes and then fails."""

    def __init__(self, *received: bytes, sends: int = 100, eof: bool = True) -> None:
        self._received = list(received)
        self._sends = sends
        self._eof = eof
        self.sent = b""
        self.closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._received:
            raise trio.BrokenResourceError("reset")
        return self._received.pop(0)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if not self._sends:
            raise trio.BrokenResourceError("reset")
        self._sends -= 1
        self.sent += data

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        if not self._eof:
            raise trio.BrokenResourceError("reset")

    async def aclose(self) -> None:
        self.closed = True
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError("close_notify could not be sent")


WAITS_FOR_CONTINUE = POST % (b"/", b"Expect: 100-continue\r\nContent-Length: 2", b"")


@pytest.mark.parametrize(
    ("stream", "asked", "sent"),
    [
        (Breaking(), 0, b""),
        (Breaking(b"GET / HT"), 0, b""),
        (Breaking(POST % (b"/", b"Content-Length: 5", b"ab")), 0, b""),
        (Breaking(WAITS_FOR_CONTINUE, sends=0), 0, b""),
        (Breaking(WAITS_FOR_CONTINUE), 0, b"HTTP/1.1 100 "),
        (Breaking(GET % b"/", sends=0), 1, b""),
        (Breaking(GET % b"/"), 1, b"HTTP/1.1 200 "),
        (Breaking(b"\x00\r\n\r\n", sends=0), 0, b""),
        (Breaking(b"\x00\r\n\r\n"), 0, b"HTTP/1.1 400 "),
        (Breaking(b"\x00\r\n\r\n", eof=False), 0, b"HTTP/1.1 400 "),
    ],
)
async def test_a_connection_that_breaks(stream: Breaking, asked: int, sent: bytes) -> None:
    handler = Recorder()
    await serve_connection(stream, handler, SMALL)
    assert len(handler.seen) == asked
    assert stream.sent[: len(sent) or 1] == sent
    assert stream.closed


@pytest.mark.parametrize("sends", [0, 1])
async def test_a_stream_that_breaks_is_ended_and_no_failure_of_the_producer(
    sends: int, caplog: pytest.LogCaptureFixture
) -> None:
    ticker = Ticker()
    await ticker.send.send(b"tick")
    await serve_connection(Breaking(GET % b"/watch", sends=sends), ticker.handler, SMALL)
    assert ticker.closed.is_set()
    assert caplog.records == []


async def test_a_stream_without_half_close_is_refused_as_well() -> None:
    """TLS has none."""

    class Whole(trio.abc.Stream):
        def __init__(self) -> None:
            self.inner = Breaking(b"\x00\r\n\r\n")

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            return await self.inner.receive_some(max_bytes)

        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            await self.inner.send_all(data)

        async def wait_send_all_might_not_block(self) -> None:
            await self.inner.wait_send_all_might_not_block()

        async def aclose(self) -> None:
            await self.inner.aclose()

    stream = Whole()
    await serve_connection(stream, Recorder(), SMALL)
    assert stream.inner.sent.startswith(b"HTTP/1.1 400 ")
    assert stream.inner.closed
