"""A TCP proxy in front of an API server, which imitates faults of networks: silence, cuts, and lost data."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

PIECE = 65536


class TcpProxy:
    """A proxy that can imitate faults of networks. `open_proxy` makes it."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        """The port of the server on loopback, for connections that are made from now on."""
        self.port = 0
        self.lost: bytes = b""
        """Data of the server that contains this text is not passed on. If empty, everything is passed on."""
        self.cut_at: bytes = b""
        """A connection whose server sends this text is cut in the middle of the text, once."""
        self.cut = trio.Event()
        self.held = bytearray()
        """The bytes of clients that have been held back."""
        self._open = trio.Event()
        self._open.set()
        self._gate = self._open
        self._scopes: set[trio.CancelScope] = set()

    def silence(self) -> None:
        """Hold back all arriving data in both directions, without closing a connection."""
        self._gate = trio.Event()

    def speak(self) -> None:
        """Pass on the data that was held back, and everything that follows."""
        gate, self._gate = self._gate, self._open
        gate.set()

    def drop(self) -> None:
        """Close all connections. The data that was held back is lost."""
        for scope in self._scopes:
            scope.cancel()

    def forget(self) -> None:
        """After :meth:`silence`, pass on the data of new connections. The existing ones stay silent forever."""
        self._gate = self._open

    async def handle(self, client: trio.SocketStream) -> None:
        """Serve one connection."""
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                async with (
                    await trio.open_tcp_stream("127.0.0.1", self.upstream) as server,
                    trio.open_nursery() as nursery,
                ):
                    nursery.start_soon(self._pass, client, server, scope, False)
                    nursery.start_soon(self._pass, server, client, scope, True)
            except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            finally:
                self._scopes.discard(scope)

    async def _pass(
        self, source: trio.SocketStream, target: trio.SocketStream, scope: trio.CancelScope, from_server: bool
    ) -> None:
        async for piece in source:
            gate = self._gate
            if not gate.is_set():
                if not from_server:
                    self.held += piece
                await gate.wait()
            if from_server and self.lost and self.lost in piece:
                continue
            if from_server and self.cut_at and self.cut_at in piece:
                middle = piece.index(self.cut_at) + len(self.cut_at) // 2
                self.cut_at = b""
                await target.send_all(piece[:middle])
                self.cut.set()
                scope.cancel()
                return
            await target.send_all(piece)
        scope.cancel()


@asynccontextmanager
async def open_proxy(upstream: int) -> AsyncIterator[TcpProxy]:
    """Run a proxy in front of the port ``upstream``, on a free port of loopback, until the ``async with`` block ends."""
    async with trio.open_nursery() as nursery:
        proxy = TcpProxy(upstream)
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, proxy.handle, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
