"""A cluster with two clients. Tests can break the network of one client without affecting the other."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import trio

from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.control_plane.service import LOCAL, open_control_plane

Fault = Exception | trio.Event | None


class Faulty(httpx.AsyncBaseTransport):
    """A transport with faults. For each request, ``fault`` may return an exception, which is raised instead of sending the
    request, or an event, which the request waits for. ``lost`` selects requests whose answers are lost.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.fault: Callable[[httpx.Request], Fault] = lambda _: None
        self.lost: Callable[[httpx.Request], bool] = lambda _: False
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fault = self.fault(request)
        if isinstance(fault, trio.Event):
            await fault.wait()
        elif fault is not None:
            await trio.lowlevel.checkpoint()
            raise fault
        self.asked.append(f"{request.method} {request.url.path.rpartition('/')[2]}")
        response = await self._inner.handle_async_request(request)
        if self.lost(request):
            raise httpx.ReadError("the answer was lost")
        return response


@dataclass(frozen=True)
class TwoWays:
    """A control plane with two clients. The network of the client ``broken`` has the faults that ``faulty`` is told to make."""

    client: HttpClusterClient
    broken: HttpClusterClient
    faulty: Faulty


@asynccontextmanager
async def two_ways() -> AsyncIterator[TwoWays]:
    """Open a control plane in memory and both clients of it, without sockets and threads."""
    async with open_control_plane(simulate=False) as control_plane:
        faulty = Faulty(control_plane.transport())
        async with (
            open_client(Connection(LOCAL), transport=control_plane.transport()) as client,
            open_client(Connection(LOCAL), transport=faulty) as broken,
        ):
            yield TwoWays(client, broken, faulty)
