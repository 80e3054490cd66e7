"""The peer of a connection, as the kernel reports it."""

import os
import socket

import trio
from trio.testing import memory_stream_pair

from wharfinger.httpd.peer import Peer, peer_of


async def test_the_peer_of_a_unix_socket_is_known() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with theirs:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        assert peer_of(stream) == Peer(os.getpid(), os.geteuid(), os.getegid())
        await stream.aclose()
        assert peer_of(stream) is None


async def test_other_connections_have_no_peer() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener, await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1]) as stream:
        assert peer_of(stream) is None
    assert peer_of(memory_stream_pair()[0]) is None
