"""An API server in memory that can be restarted with its stored objects, and networks to it that report the writes.

While the server is down, connections are refused, and open requests are interrupted. A restarted server does not know the earlier
changes, so every watch has to start again.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import httpx
import trio

from wharfinger.control_plane.service import open_control_plane
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject

START: Final = datetime(2026, 11, 23, tzinfo=UTC)


def virtual_now() -> datetime:
    """Return the time of the simulation's wall clock."""
    return START + timedelta(seconds=trio.current_time())


class Write(NamedTuple):
    """A request that writes. ``at`` is its virtual time in seconds."""

    at: float
    method: str
    path: str
    body: bytes

    def __str__(self) -> str:
        return f"{self.at:.1f} {self.method} {self.path} {self.body[:300].decode(errors='replace')}"


class KnownStorage(MemoryStorage):
    """A storage that records the keys of existing objects."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[Key] = set()

    def put(self, key: Key, obj: JsonObject) -> Change:
        self.keys.add(key)
        return super().put(key, obj)

    def delete(self, key: Key) -> Change:
        self.keys.discard(key)
        return super().delete(key)


class Server:
    """One API server, which runs in `run`, and is down for a while after each `stop`."""

    def __init__(self) -> None:
        self.storage = KnownStorage()
        self.up = trio.Event()
        self._stop = trio.Event()
        self._down_s = 0.0
        self._transport: httpx.AsyncBaseTransport | None = None
        self._open: set[trio.CancelScope] = set()

    async def run(self) -> None:
        """Serve until stopped, be down for the requested time, and serve again."""
        while True:
            async with open_control_plane(storage=self.storage, now=virtual_now, root_ca="PEM") as plane:
                self._transport = plane.transport()
                self.up.set()
                await self._stop.wait()
                self._transport = None
                for scope in tuple(self._open):
                    scope.cancel()
            self._stop = trio.Event()
            await trio.sleep(self._down_s)

    def stop(self, down_s: float) -> None:
        """Stop the server for ``down_s`` seconds."""
        self.up = trio.Event()
        self._down_s = down_s
        self._stop.set()

    def transport(self) -> httpx.AsyncBaseTransport:
        """Return the transport to the server. Raises ConnectError while the server is down."""
        if self._transport is None:
            raise httpx.ConnectError("connection refused")
        return self._transport

    def enter(self, scope: trio.CancelScope) -> None:
        """Register an open request, which is interrupted when the server stops."""
        self._open.add(scope)

    def leave(self, scope: trio.CancelScope) -> None:
        """Remove a request that has ended."""
        self._open.discard(scope)


class Network(httpx.AsyncBaseTransport):
    """The network between one client and the server. It reports each request that writes, except for access reviews."""

    def __init__(self, server: Server, noted: Callable[[Write], None] = lambda _: None) -> None:
        self._server = server
        self._noted = noted
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request to the server."""
        await trio.lowlevel.checkpoint()
        self.requests += 1
        transport = self._server.transport()
        if request.method != "GET" and "/apis/authorization.k8s.io/" not in request.url.path:
            body = await request.aread()
            self._noted(Write(trio.current_time(), request.method, request.url.path, body))
        response: httpx.Response | None = None
        with trio.CancelScope() as scope:
            self._server.enter(scope)
            try:
                response = await transport.handle_async_request(request)
            finally:
                self._server.leave(scope)
        if response is None:
            raise httpx.ReadError("connection reset by peer")
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        return httpx.Response(response.status_code, headers=response.headers, stream=_Cut(self._server, stream))


class _Cut(httpx.AsyncByteStream):
    """A response body that is interrupted when the server stops."""

    def __init__(self, server: Server, stream: httpx.AsyncByteStream) -> None:
        self._server = server
        self._stream = stream
        self._chunks = aiter(stream)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with trio.CancelScope() as scope:
            self._server.enter(scope)
            try:
                return await anext(self._chunks)
            finally:
                self._server.leave(scope)
        raise httpx.ReadError("connection reset by peer")

    async def aclose(self) -> None:
        await self._stream.aclose()
