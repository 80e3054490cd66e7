"""Connections that change to another protocol, such as WebSocket."""

import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, SMALL, exchange
from wharfinger.httpd.connection import Connection
from wharfinger.httpd.messages import Request, Upgrade
from wharfinger.httpd.server import serve_connection
from wharfinger.httpd.upgraded_stream import UpgradedStream

ASKED = b"GET /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


async def echo(stream: trio.abc.Stream) -> None:
    while data := await stream.receive_some():
        await stream.send_all(bytes(data).upper())


async def upgrading(_request: Request) -> Upgrade:
    return Upgrade("websocket", echo, (("sec-websocket-protocol", "v5"),))


async def test_bytes_that_follow_the_request_are_not_lost() -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, upgrading, SMALL)
        await client.send_all(ASKED + b"early ")
        await client.send_all(b"late")
        await client.send_eof()
        received = b"".join([bytes(chunk) async for chunk in client])
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 101 Switching Protocols"
    assert {b"upgrade: websocket", b"connection: Upgrade", b"sec-websocket-protocol: v5"} <= set(head.splitlines())
    assert body == b"EARLY LATE"


async def test_a_request_without_an_upgrade_is_refused() -> None:
    (answer,) = await exchange(GET % b"/exec", upgrading)
    assert (answer.status, answer.body) == (400, b"expected a request to upgrade to websocket\n")


async def test_a_drain_ends_an_upgraded_connection() -> None:
    client, server = trio.testing.memory_stream_pair()
    connection = Connection(server, upgrading, SMALL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        await client.send_all(ASKED + b"x")
        await trio.testing.wait_all_tasks_blocked()
        assert connection.streaming
        connection.drain("the end")
        assert b"".join([bytes(chunk) async for chunk in client]).endswith(b"\r\n\r\nX")


async def test_a_handler_that_fails_ends_the_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_stream: trio.abc.Stream) -> None:
        raise ZeroDivisionError

    async def handler(_request: Request) -> Upgrade:
        return Upgrade("websocket", fail)

    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, handler, SMALL)
        await client.send_all(ASKED)
        assert b"".join([bytes(chunk) async for chunk in client]).endswith(b"\r\n\r\n")
    assert "the handler of websocket failed" in caplog.text


async def test_a_limit_holds_for_bytes_that_were_received_before() -> None:
    client, server = trio.testing.memory_stream_pair()
    stream = UpgradedStream(server, b"abcd")
    await client.send_all(b"e")
    assert [await stream.receive_some(3), await stream.receive_some(3), await stream.receive_some(3)] == [
        b"abc",
        b"d",
        b"e",
    ]
    await stream.aclose()
    assert await client.receive_some() == b""
