"""A release engine on a new control plane in memory. Tests control its wall clock and its network."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import httpx
import trio

from tests.cluster.support.client_contract import CONFIG_MAP
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.service import open_release_engine
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import name_of

KEEP = "annotations: {helm.sh/resource-policy: keep}"
CLAIM = (
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n"
)
WIDGET = "---\napiVersion: example.test/v1\nkind: Widget\nmetadata:\n  name: one\nspec: {a: 1}\n"


class Clock:
    """A wall clock that tests move."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


class Faulty(httpx.AsyncBaseTransport):
    """A transport that breaks or holds requests: ``fault`` may return an exception, an answer, or an event to wait for.

    ``requests`` has the requests that reached the server, without watches, paged lists, lists with a label selector, and the
    discovery of groups. ``writes`` has those of them that change something.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.fault: Callable[[httpx.Request], Exception | httpx.Response | trio.Event | None] = lambda _: None
        self.requests: list[str] = []
        self.lose_answer_of: int | None = None
        """The index in ``requests`` of a request that is carried out although its answer is lost."""

    @property
    def writes(self) -> list[str]:
        """Return the requests that change something."""
        return [request for request in self.requests if not request.startswith("GET ")]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fault = self.fault(request)
        if isinstance(fault, trio.Event):
            await fault.wait()
        elif isinstance(fault, httpx.Response):
            await trio.lowlevel.checkpoint()
            return fault
        elif fault is not None:
            await trio.lowlevel.checkpoint()
            raise fault
        if not {"watch", "limit", "labelSelector"} & set(request.url.params) and request.url.path not in {
            "/api",
            "/apis",
        }:
            self.requests.append(f"{request.method} {request.url.path.rpartition('/')[2]}")
            if self.lose_answer_of == len(self.requests) - 1:
                await (await self.inner.handle_async_request(request)).aclose()
                raise httpx.ReadError("reset")
        return await self.inner.handle_async_request(request)


@dataclass
class Bench:
    """An engine on a new control plane in memory."""

    client: HttpClusterClient
    engine: ReleaseEngine
    clock: Clock
    transport: Faulty

    async def statuses(self, name: str = "web") -> list[str]:
        return [f"{one.revision} {one.status} {one.description}" for one in await self.engine.history(name, "default")]

    async def config_maps(self) -> dict[str, JsonObject]:
        listed = await self.client.list(CONFIG_MAP, "default")
        return {name_of(item): item for item in listed.items if name_of(item) != "kube-root-ca.crt"}


@asynccontextmanager
async def cluster(*, simulate: bool = False) -> AsyncIterator[tuple[HttpClusterClient, Faulty]]:
    """Open a control plane in memory, and a client whose requests can be broken."""
    async with open_control_plane(simulate=simulate) as control_plane:
        transport = Faulty(control_plane.transport())
        async with open_client(Connection(LOCAL), transport=transport) as client:
            yield client, transport


@asynccontextmanager
async def bench(
    *, simulate: bool = False, force: bool = False, options: EngineOptions | None = None
) -> AsyncIterator[Bench]:
    async with cluster(simulate=simulate) as (client, transport):
        clock = Clock()
        chosen = replace(options or EngineOptions(), now=clock, force=force)
        async with open_engine(client, chosen) as engine:
            yield Bench(client, engine, clock, transport)


@asynccontextmanager
async def open_engine(client: HttpClusterClient, options: EngineOptions | None = None) -> AsyncIterator[ReleaseEngine]:
    """Open an engine with separate watches, which no other engine shares."""
    async with open_shared_watches(client) as watches, open_release_engine(client, watches, options) as engine:
        yield engine
