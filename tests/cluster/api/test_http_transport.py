"""Connections to one server: reuse, idle connections, and interrupted exchanges."""

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from wharfinger.cluster.api import http_transport
from wharfinger.cluster.api.http_transport import ServerTransport

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
CLOSE = b""
"""An item of an answer after which the server closes the connection."""
Answer = Callable[[int], Sequence[bytes]]
"""A function that returns the answer to the n-th request, counted from 1."""


class Server:
    """A server that records requests and gives the answers of a script. If there is no answer, the client has to wait."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self.connections = 0
        self.open = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self.open += 1
        try:
            async with stream:
                await self._converse(stream)
        finally:
            self.open -= 1

    async def _converse(self, stream: trio.SocketStream) -> None:
        text = b""
        while True:
            try:
                data = await stream.receive_some()
            except trio.BrokenResourceError:
                return
            if not data:
                return
            text += bytes(data)
            if not _is_whole(text):
                continue
            self.asked.append(text)
            text = b""
            for piece in self.answer(len(self.asked)):
                if piece == CLOSE:
                    return
                await stream.send_all(piece)


def _is_whole(text: bytes) -> bool:
    head, found, body = text.partition(b"\r\n\r\n")
    sizes = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(found) and len(body) >= sum(sizes)


@asynccontextmanager
async def open_way(answer: Answer) -> AsyncIterator[tuple[Server, ServerTransport, str]]:
    """Open a server and a transport to it. Yield both, and the address of the server."""
    server = Server(answer)
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        port: int = listener.socket.getsockname()[1]
        address = f"http://127.0.0.1:{port}/"
        async with ServerTransport(address, None, [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]) as transport:
            yield server, transport, address
        nursery.cancel_scope.cancel()


def request(address: str, method: str = "GET", content: bytes = b"", **times: float) -> httpx.Request:
    return httpx.Request(method, address + "a?b=c", content=content or None, extensions={"timeout": times})


async def ask(transport: ServerTransport, sent: httpx.Request) -> bytes:
    """Send a request, and return the whole body of the answer."""
    response = await transport.handle_async_request(sent)
    return await response.aread()


async def test_one_connection_serves_requests_one_after_the_other() -> None:
    async with open_way(lambda _: [OK]) as (server, transport, address):
        for _ in range(3):
            assert await ask(transport, request(address)) == b"ok"
        assert await ask(transport, request(address, "POST", b"body")) == b"ok"
        assert (server.connections, len(server.asked)) == (1, 4)
        head, _, body = server.asked[3].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /a?b=c HTTP/1.1\r\n")
        assert b"content-length: 4" in head.lower()
        assert body == b"body"
    await wait_all_tasks_blocked()
    assert server.open == 0


async def test_concurrent_requests_have_a_connection_each_and_few_stay_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_transport, "MAX_IDLE", 2)
    async with open_way(lambda _: [OK]) as (server, transport, address):
        responses = [await transport.handle_async_request(request(address)) for _ in range(4)]
        assert server.connections == 4
        for response in responses:
            assert await response.aread() == b"ok"
        while server.open != 2:
            await wait_all_tasks_blocked()
        for _ in range(3):
            await ask(transport, request(address))
        assert server.connections == 4


async def test_an_unread_body_closes_its_connection() -> None:
    async with open_way(lambda number: [HALF] if number == 1 else [OK]) as (server, transport, address):
        response = await transport.handle_async_request(request(address))
        await response.aclose()
        await response.aclose()
        assert await ask(transport, request(address)) == b"ok"
        assert server.connections == 2


async def test_a_cancelled_request_leaves_no_data_for_the_next_one() -> None:
    async with open_way(lambda number: [[], [HALF]][number - 1] if number < 3 else [OK]) as (
        server,
        transport,
        address,
    ):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, transport, request(address))
                nursery.start_soon(ask, transport, request(address))
                while len(server.asked) < 2:
                    await wait_all_tasks_blocked(0.001)
                scope.cancel()
        assert await ask(transport, request(address)) == b"ok"
        assert server.connections == 3


async def test_a_connection_closed_by_the_server_is_not_reused() -> None:
    async with open_way(lambda number: [OK, CLOSE] if number == 1 else [OK]) as (server, transport, address):
        assert await ask(transport, request(address)) == b"ok"
        while server.open:
            await wait_all_tasks_blocked()
        assert await ask(transport, request(address, "POST", b"x")) == b"ok"
        assert server.connections == 2


async def test_connections_that_were_idle_too_long_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_way(lambda _: [OK]) as (server, transport, address):
        monkeypatch.setattr(http_transport, "IDLE_S", 0.0)
        first, second = [await transport.handle_async_request(request(address)) for _ in range(2)]
        assert await first.aread() == b"ok"
        assert await second.aread() == b"ok"  # this read closes the first connection
        while server.open > 1:
            await wait_all_tasks_blocked()
        assert await ask(transport, request(address)) == b"ok"
        assert server.connections == 3


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([CLOSE], httpx.RemoteProtocolError),
        ([b"what?\r\n\r\n"], httpx.RemoteProtocolError),
        ([HALF, CLOSE], httpx.RemoteProtocolError),
        ([], httpx.ReadTimeout),
        ([HALF], httpx.ReadTimeout),
    ],
)
async def test_incomplete_answers_are_errors(pieces: list[bytes], error: type[Exception]) -> None:
    async with open_way(lambda _: pieces) as (server, transport, address):
        with pytest.raises(error):
            await ask(transport, request(address, read=0.05))
        while server.open:
            await wait_all_tasks_blocked()


async def test_answers_that_end_with_their_connection_or_follow_an_early_hint_are_read() -> None:
    until_closed = [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", b"long", CLOSE]
    hinted = [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", OK]
    async with open_way(lambda number: until_closed if number == 1 else hinted) as (server, transport, address):
        assert await ask(transport, request(address)) == b"long"
        assert await ask(transport, request(address)) == b"ok"
        assert server.connections == 2


async def test_an_invalid_header_is_refused_before_sending() -> None:
    async with open_way(lambda _: [OK]) as (server, transport, address):
        sent = httpx.Request("GET", address, headers={"x-bad": "a\nb"})
        with pytest.raises(httpx.LocalProtocolError):
            await transport.handle_async_request(sent)
        assert server.asked == []


async def test_a_refusal_before_the_whole_request_was_sent_is_read() -> None:
    """A server may refuse a request before it has read all of it. The client can still read the refusal."""
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def refuse(stream: trio.SocketStream) -> None:
            await stream.receive_some(10)
            await stream.send_all(refusal)
            await stream.send_eof()
            while await stream.receive_some():
                pass

        nursery.start_soon(trio.serve_listeners, refuse, [listener])
        address = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"
        async with ServerTransport(address, None) as transport:
            response = await transport.handle_async_request(request(address, "POST", b"x" * 4_000_000))
            assert response.status_code == 413
            await response.aclose()
        nursery.cancel_scope.cancel()


async def test_a_server_that_does_not_read_and_a_closed_port_are_errors() -> None:
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        address = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"
        async with ServerTransport(address, None) as transport:
            with pytest.raises(httpx.WriteTimeout):
                await transport.handle_async_request(request(address, "POST", b"x" * 30_000_000, write=0.05))
        await listener.aclose()
        async with ServerTransport(address, None) as transport:
            with pytest.raises(httpx.ConnectError):
                await transport.handle_async_request(request(address))
        nursery.cancel_scope.cancel()
