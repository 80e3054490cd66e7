"""The server on real sockets, used by a real client and with raw bytes, and its shutdown in every state."""

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, Recorder, Ticker, read_answers
from tests.scale import scaled
from wharfinger.httpd.messages import Handler, Request, Response, StreamingResponse
from wharfinger.httpd.server import HttpLimits, open_server

ROUNDS = scaled(50, 5)


@asynccontextmanager
async def serving(handler: Handler, limits: HttpLimits | None = None) -> AsyncIterator[int]:
    """Run a server on a free loopback port, and yield the port."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listeners[0].socket.getsockname()[1]
    async with open_server(listeners, handler, limits or HttpLimits()):
        yield port


@asynccontextmanager
async def asking(port: int) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client without a limit on connections, because a limited pool loses connections when requests are cancelled."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=limits, trust_env=False) as client:
        yield client


async def read_all(stream: trio.SocketStream) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def test_a_real_client_gets_the_answer_of_the_handler() -> None:
    handler = Recorder()
    async with serving(handler) as port, asking(port) as client:
        for round_ in range(3):
            answer = await client.post(f"/a%20b/{round_}", params=[("k", "1"), ("k", "ü&")], content=b"x" * 100_000)
            assert (answer.status_code, answer.http_version, answer.reason_phrase) == (200, "HTTP/1.1", "OK")
            assert answer.content == f"POST /a b/{round_} ".encode() + b"x" * 100_000
        assert (await client.head("/")).content == b""

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(10):
                yield b"piece"

        assert (await client.put("/", content=pieces())).content == b"PUT / " + b"piece" * 10
    assert handler.seen[0].query == {"k": ("1", "ü&")}


async def test_many_clients_are_answered_at_once() -> None:
    for _ in range(ROUNDS):
        async with serving(Recorder(), HttpLimits(connections=8)) as port, asking(port) as client:
            bodies: list[bytes] = []

            async def ask(number: int, client: httpx.AsyncClient = client, bodies: list[bytes] = bodies) -> None:
                bodies.append((await client.get(f"/{number}", headers={"Connection": "close"})).content)

            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(ask, number)
        assert sorted(bodies) == sorted(f"GET /{number} ".encode() for number in range(50))


async def test_a_refusal_reaches_a_client_that_is_still_sending() -> None:
    async with serving(Recorder(), HttpLimits(body_bytes=1000)) as port, asking(port) as client:
        answer = await client.post("/", content=b"x" * 5_000_000)
        assert answer.status_code == 413


async def test_hostile_bytes_end_one_connection_only() -> None:
    async with serving(Recorder()) as port, asking(port) as client:
        for raw in (b"\x00" * 100_000, b"GET / HTTP/9.9\r\n\r\n", b"\xff\xfe\r\n\r\n", b"A" * 200_000):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            async with stream:
                await stream.send_all(raw)
                (answer,) = read_answers(await read_all(stream))
                assert 400 <= answer.status <= 505
            assert (await client.get("/")).status_code == 200


async def test_a_stream_ends_if_its_client_resets_the_connection() -> None:
    ticker = Ticker()
    async with serving(ticker.handler) as port:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(GET % b"/watch")
        await ticker.opened.wait()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        await stream.aclose()
        await ticker.closed.wait()


async def test_a_real_client_receives_the_chunks_of_a_watch() -> None:
    ticker = Ticker()
    async with serving(ticker.handler) as port, asking(port) as client, client.stream("GET", "/watch") as answer:
        chunks = answer.aiter_raw()
        for text in (b"one", b"two"):
            await ticker.send.send(text)
            assert await anext(chunks) == text
        ticker.send.close()
        assert [chunk async for chunk in chunks] == []
    assert ticker.closed.is_set()


# The cap on connections


async def test_the_number_of_connections_is_bounded() -> None:
    inside = most = 0
    full = trio.Event()
    go_on = trio.Event()

    async def handler(_request: Request) -> Response:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == 3:
            full.set()
        await go_on.wait()
        inside -= 1
        return Response(200)

    limits = HttpLimits(connections=3)
    async with serving(handler, limits) as port, asking(port) as client, trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(client.get, f"/{number}")
        await full.wait()
        go_on.set()
    assert most == 3


async def test_an_idle_connection_makes_room_for_a_new_one() -> None:
    for _ in range(ROUNDS):
        async with serving(Recorder(), HttpLimits(connections=2)) as port:
            old = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
            for stream in old:
                await stream.send_all(GET % b"/")
                assert read_answers(bytes(await stream.receive_some()))[0].status == 200
            async with await trio.open_tcp_stream("127.0.0.1", port) as new:
                await new.send_all(GET % b"/new")
                assert read_answers(bytes(await new.receive_some()))[0].body == b"GET /new "
                assert await old[0].receive_some() == b""
            await old[1].send_all(GET % b"/still")
            assert read_answers(bytes(await old[1].receive_some()))[0].body == b"GET /still "
            for stream in old:
                await stream.aclose()


async def test_a_busy_connection_makes_room_after_its_answer() -> None:
    asked = trio.Event()
    go_on = trio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/slow":
            asked.set()
            await go_on.wait()
        return Response(200)

    async with (
        serving(handler, HttpLimits(connections=1)) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as old,
    ):
        await old.send_all(GET % b"/slow")
        await asked.wait()
        async with await trio.open_tcp_stream("127.0.0.1", port) as new:
            await new.send_all(GET % b"/new")
            await trio.testing.wait_all_tasks_blocked(0.01)
            go_on.set()
            assert read_answers(bytes(await new.receive_some()))[0].status == 200
        assert read_answers(await read_all(old))[0].headers["connection"] == "close"


async def test_a_stream_is_not_displaced() -> None:
    ticker = Ticker()
    async with (
        serving(ticker.handler, HttpLimits(connections=1)) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as watch,
    ):
        await watch.send_all(GET % b"/watch")
        await ticker.opened.wait()
        async with await trio.open_tcp_stream("127.0.0.1", port) as new:
            await new.send_all(GET % b"/new")
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert not ticker.closed.is_set()
            ticker.send.close()
            await ticker.closed.wait()
            await watch.aclose()
            assert read_answers(bytes(await new.receive_some()))[0].body == b"/new"


# Under attack


class Arrivals(trio.abc.Listener[trio.abc.Stream]):
    """A listener in memory, for tests in virtual time. ``connect`` returns the client's end of a new connection."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[trio.abc.Stream](100)

    def connect(self) -> trio.abc.HalfCloseableStream:
        client, server = trio.testing.memory_stream_pair()
        self._send.send_nowait(server)
        return client

    async def accept(self) -> trio.abc.Stream:
        return await self._receive.receive()

    async def aclose(self) -> None:
        self._receive.close()
        await trio.lowlevel.checkpoint()


async def answered(client: trio.abc.Stream) -> bool:
    """Send a request, and return whether an answer arrives."""
    try:
        await client.send_all(GET % b"/")
    except trio.BrokenResourceError:
        return False
    try:
        return bool(await client.receive_some())
    except trio.BrokenResourceError:
        return False


async def test_connections_without_a_request_slow_down_accepting(autojump_clock: trio.testing.MockClock) -> None:
    arrivals = Arrivals()
    async with open_server([arrivals], Recorder(), HttpLimits(useless_pause_s=1.0, linger_bytes=0)):
        assert await answered(arrivals.connect())
        began = trio.current_time()
        for data in (b"", b"\0\0\0\r\n\r\n", b"GET / HT"):
            client = arrivals.connect()
            await client.send_all(data)
            await client.send_eof()
            while await client.receive_some():
                pass
        # The server was already waiting for the next connection when the latest one ended.
        for number in (2, 3, 3, 3):
            assert await answered(arrivals.connect())
            assert trio.current_time() - began == pytest.approx(number, abs=0.5)


async def test_small_pieces_of_a_request_are_read_less_and_less_often(autojump_clock: trio.testing.MockClock) -> None:
    arrivals = Arrivals()
    request = GET % b"/"
    async with open_server([arrivals], Recorder(), HttpLimits(piece_pause_s=0.01)):
        client = arrivals.connect()
        began = trio.current_time()
        for at in range(len(request) - 1):
            await client.send_all(request[at : at + 1])
            await trio.sleep(0.1)
        await client.send_all(request[-1:])
        assert b"200 OK" in await client.receive_some()
        assert (len(request) - 1) * 0.1 < trio.current_time() - began < (len(request) - 1) * 0.1 + 0.64


@pytest.mark.parametrize("connection", ["keep-alive", "close"])  # with "close", h11 reads the request
async def test_a_large_body_is_read_without_pauses(connection: str, autojump_clock: trio.testing.MockClock) -> None:
    arrivals = Arrivals()
    async with open_server([arrivals], Recorder(), HttpLimits(piece_pause_s=1.0)):
        began = trio.current_time()
        client = arrivals.connect()
        head = f"POST / HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\nContent-Length: 1000000\r\n\r\n"
        await client.send_all(head.encode() + b"x" * 500_000)
        await trio.testing.wait_all_tasks_blocked()
        await client.send_all(b"x" * 500_000)
        assert b"200 OK" in await client.receive_some()
        assert trio.current_time() == began


async def test_an_incomplete_request_makes_room_for_a_new_connection(autojump_clock: trio.testing.MockClock) -> None:
    arrivals = Arrivals()
    async with open_server([arrivals], Recorder(), HttpLimits(connections=2)):
        began = trio.current_time()
        slow = [arrivals.connect() for _ in range(2)]
        for client in slow:
            await client.send_all(b"GET / HTTP/1.1\r\n")
        await trio.testing.wait_all_tasks_blocked()
        assert await answered(arrivals.connect())
        assert 0.25 <= trio.current_time() - began < 1
        assert await slow[0].receive_some() == b""
        await slow[1].send_all(b"Host: a\r\n\r\n")
        assert b"200 OK" in await slow[1].receive_some()


async def test_one_process_cannot_take_all_connections(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listening = trio.socket.socket(socket.AF_UNIX)
    await listening.bind(path)
    listening.listen()
    listener = trio.SocketListener(listening)
    limits = HttpLimits(connections=8, of_process=2, closed_pause_s=0.001)
    async with open_server([listener], Recorder(), limits), await trio.open_unix_socket(path) as first:
        assert await answered(first)
        async with await trio.open_unix_socket(path) as second:
            assert await answered(second)
            for _ in range(5):
                async with await trio.open_unix_socket(path) as refused:
                    assert not await answered(refused)
        await trio.testing.wait_all_tasks_blocked(0.01)
        async with await trio.open_unix_socket(path) as third:
            assert await answered(third)


# The end


async def test_a_drain_right_after_the_start_ends_the_server() -> None:
    async with open_server([], Recorder(), HttpLimits()):
        pass
    async with serving(Recorder()) as port:
        pass
    with pytest.raises(OSError, match=r"."):
        await trio.open_tcp_stream("127.0.0.1", port)


async def test_one_server_serves_several_listeners() -> None:
    listeners = [
        *await trio.open_tcp_listeners(0, host="127.0.0.1"),
        *await trio.open_tcp_listeners(0, host="127.0.0.2"),
    ]
    async with open_server(listeners, Recorder(), HttpLimits()):
        for listener in listeners:
            async with await trio.open_tcp_stream(*listener.socket.getsockname()) as stream:
                await stream.send_all(GET % b"/")
                assert read_answers(bytes(await stream.receive_some()))[0].status == 200


async def test_requests_in_flight_are_answered_during_a_drain() -> None:
    for _ in range(ROUNDS):
        ticker = Ticker()
        asked, go_on, left = trio.Event(), trio.Event(), trio.Event()

        async def handler(
            request: Request, ticker: Ticker = ticker, asked: trio.Event = asked, go_on: trio.Event = go_on
        ) -> Response | StreamingResponse:
            if request.path == "/slow":
                asked.set()
                await go_on.wait()
            return await ticker.handler(request)

        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        address = listeners[0].socket.getsockname()
        streams = [await trio.open_tcp_stream(*address) for _ in range(3)]
        slow, watch, idle = streams

        async def serve(
            listeners: list[trio.SocketListener] = listeners, handler: Handler = handler, left: trio.Event = left
        ) -> None:
            async with open_server(listeners, handler, HttpLimits()):
                await left.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            await slow.send_all(GET % b"/slow")
            await watch.send_all(GET % b"/watch")
            await idle.send_all(GET % b"/quick")
            assert read_answers(bytes(await idle.receive_some()))[0].body == b"/quick"
            await asked.wait()
            await ticker.opened.wait()
            left.set()
            (watched,) = read_answers(await read_all(watch))
            assert (watched.status, watched.whole) in {(200, True), (503, True)}
            assert ticker.closed.is_set()
            assert await idle.receive_some() == b""
            with pytest.raises(OSError, match=r"."):
                await trio.open_tcp_stream(*address)
            go_on.set()
            (answer,) = read_answers(await read_all(slow))
            assert (answer.body, answer.headers["connection"]) == (b"/slow", "close")
        for stream in streams:
            await stream.aclose()


async def test_the_deadline_of_the_caller_bounds_the_drain(autojump_clock: trio.testing.MockClock) -> None:
    async def handler(_request: Request) -> Response:
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    listener = MemoryListener()
    client = await listener.connect()
    with trio.CancelScope() as hard:
        async with open_server([listener], handler, HttpLimits()):
            await client.send_all(GET % b"/")
            await trio.testing.wait_all_tasks_blocked()
            hard.deadline = trio.current_time() + 30
    assert hard.cancelled_caught
    assert trio.current_time() == pytest.approx(30)
    assert await client.receive_some() == b""


async def test_an_error_in_the_block_ends_the_server() -> None:
    ticker = Ticker()

    async def fail() -> None:
        async with (
            serving(ticker.handler) as port,
            await trio.open_tcp_stream("127.0.0.1", port) as stream,
        ):
            await stream.send_all(GET % b"/watch")
            await ticker.opened.wait()
            raise KeyError("body")

    with pytest.raises(ExceptionGroup) as raised:
        await fail()
    assert raised.group_contains(KeyError, match="body")
    assert ticker.closed.is_set()


# Accepting


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """A listener in memory that can also raise operating system errors."""

    def __init__(self, *errors: int) -> None:
        self._errors = list(errors)
        self._send, self._receive = trio.open_memory_channel[trio.abc.Stream](10)
        self.closed = False

    async def connect(self) -> trio.abc.Stream:
        client, server = trio.testing.memory_stream_pair()
        await self._send.send(server)
        return client

    async def accept(self) -> trio.abc.Stream:
        if self._errors:
            number = self._errors.pop(0)
            raise OSError(number, errno.errorcode[number])
        return await self._receive.receive()

    async def aclose(self) -> None:
        self.closed = True
        await trio.lowlevel.checkpoint()


async def test_the_server_waits_during_a_shortage_of_descriptors(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    listener = MemoryListener(errno.EMFILE, errno.ENFILE)
    client = await listener.connect()
    async with open_server([listener], Recorder(), HttpLimits()):
        await client.send_all(GET % b"/")
        assert read_answers(bytes(await client.receive_some()))[0].status == 200
    assert listener.closed
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


async def test_a_broken_listener_is_an_error() -> None:
    listener = MemoryListener(errno.EBADF)
    with pytest.raises(ExceptionGroup) as raised:
        async with open_server([listener], Recorder(), HttpLimits()):
            await trio.sleep_forever()
    assert raised.group_contains(OSError, match="EBADF")
    assert listener.closed


async def test_a_connection_that_waits_for_a_slot_is_closed_by_a_drain() -> None:
    ticker = Ticker()
    listener = MemoryListener()
    async with open_server([listener], ticker.handler, replace(HttpLimits(), connections=1)):
        watch = await listener.connect()
        await watch.send_all(GET % b"/watch")
        await ticker.opened.wait()
        waiting = await listener.connect()
        await trio.testing.wait_all_tasks_blocked()
    assert await waiting.receive_some() == b""
    assert read_answers(b"".join([chunk async for chunk in watch]))[0].whole
