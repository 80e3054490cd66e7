"""The HTTP server of the project: small, bounded, and over any trio listener (TCP, TLS, Unix socket, memory).

All HTTP servers of the daemon use it, among them the debug socket and the embedded control plane. When the block of
:func:`open_server` is left, the server first stops accepting connections. Then it ends idle connections and streamed answers,
and completes the requests in flight. The caller limits the time for this by a deadline around the block.
"""

import errno
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.httpd.connection import Connection
from wharfinger.httpd.large_bodies import LargeBodies
from wharfinger.httpd.limits import HttpLimits as HttpLimits  # noqa: PLC0414 - also exported here
from wharfinger.httpd.messages import Handler
from wharfinger.httpd.peer import Peer, peer_of

log: Final = logging.getLogger(__name__)

_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPT_PAUSE_S: Final = 0.1
_LEAST_PAUSE_S: Final = 0.05
"""The shortest pause before the next connection is accepted, in seconds. Shorter pauses are summed until they reach this value,
because a wake-up of this task costs more than closing a connection.
"""
_RECONSIDER_S: Final = 0.25
"""The time, in seconds, after which the server ends one more open connection if a new client is still waiting."""


async def serve_connection(stream: trio.abc.Stream, handler: Handler, limits: HttpLimits) -> None:
    """Serve one connection until either side ends it, and close the stream. Raises nothing but cancellation."""
    await Connection(stream, handler, limits, peer_of(stream)).run()


@asynccontextmanager
async def open_server(
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]], handler: Handler, limits: HttpLimits
) -> AsyncIterator[None]:
    """Serve ``listeners`` while the block runs, then drain. The server owns the listeners, and closes them."""
    server = _Server(handler, limits)
    async with trio.open_nursery() as nursery:
        for listener in listeners:
            nursery.start_soon(server.accept, listener, server.new_intake(), nursery, name="http accept")
        yield
        server.drain()


class _Server:
    """The connections of one server, in the order in which they arrived."""

    def __init__(self, handler: Handler, limits: HttpLimits) -> None:
        self._handler = handler
        self._limits = limits
        self._bodies = LargeBodies(limits.large_bodies_bytes)
        self._intakes: list[trio.CancelScope] = []
        self._slots = trio.Semaphore(limits.connections)
        self._open: dict[Connection, None] = {}
        self._pause_s = 0.0  # the pause before the next connection is accepted

    def new_intake(self) -> trio.CancelScope:
        """Return the cancel scope for an accept loop. It exists before the loop runs, so that an early drain cancels the loop."""
        self._intakes.append(trio.CancelScope())
        return self._intakes[-1]

    def drain(self) -> None:
        """Accept no more connections, and end every open connection after its current answer. Streamed answers end now."""
        for intake in self._intakes:
            intake.cancel(reason="the server is shutting down")
        for connection in self._open:
            connection.drain("the server is shutting down")

    async def accept(
        self, listener: trio.abc.Listener[trio.abc.Stream], intake: trio.CancelScope, connections: trio.Nursery
    ) -> None:
        """Accept connections on one listener until ``intake`` is cancelled. A task in ``connections`` serves each
        connection.
        """
        with intake:
            async with listener:
                while True:
                    if self._pause_s >= _LEAST_PAUSE_S:
                        pause, self._pause_s = self._pause_s, 0.0
                        await trio.sleep(pause)
                    stream = await _accept_one(listener)
                    peer = peer_of(stream)
                    if self._is_at_process_limit(peer):
                        await trio.aclose_forcefully(stream)
                        self._pause_s += self._limits.closed_pause_s
                        continue
                    await self._take_slot(stream)
                    connection = Connection(stream, self._handler, self._limits, peer, self._bodies)
                    self._open[connection] = None
                    connections.start_soon(self._serve, connection, name="http connection")

    def _is_at_process_limit(self, peer: Peer | None) -> bool:
        """Return whether the process at the other end has as many connections as one process may have.

        There is no limit for processes of other pid namespaces, because all of them have the id 0 here.
        """
        if peer is None or peer.pid == 0 or len(self._open) < self._limits.of_process:
            return False
        return sum(connection.peer == peer for connection in self._open) >= self._limits.of_process

    async def _take_slot(self, stream: trio.abc.Stream) -> None:
        try:
            while self._slots.value == 0:
                self._make_room()
                with trio.move_on_after(_RECONSIDER_S):
                    await self._slots.acquire()
                    return
            await self._slots.acquire()
        except trio.Cancelled:
            await trio.aclose_forcefully(stream)
            raise

    def _make_room(self) -> None:
        """End the oldest idle connection, or else the oldest one whose client does not complete its request.

        If there is neither, the oldest connection that sends no streamed answer ends after its current answer.
        """
        chosen = (
            next((connection for connection in self._open if connection.idle), None)
            or next((connection for connection in self._open if connection.slow), None)
            or next((connection for connection in self._open if not connection.streaming), None)
        )
        if chosen is not None:
            chosen.retire("another client needs the connection")

    async def _serve(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            del self._open[connection]
            if not connection.useful:
                self._pause_s += self._limits.useless_pause_s
            self._slots.release()


async def _accept_one(listener: trio.abc.Listener[trio.abc.Stream]) -> trio.abc.Stream:
    """Return the next connection. During a shortage of descriptors or memory, wait and retry, as trio.serve_listeners does."""
    while True:
        try:
            return await listener.accept()
        except OSError as error:
            if error.errno not in _OUT_OF_RESOURCES:
                raise
            log.warning("cannot accept connections for now: %s", error)
            await trio.sleep(_ACCEPT_PAUSE_S)
