"""A control plane with controllers in memory and virtual time, an engine, and a network between them that can fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.corpus.engines import Engine, open_engine
from tests.corpus.faults import Call, Fault, FaultyNetwork
from tests.corpus.rendered import Prepared
from tests.corpus.server import make_namespace
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.releases.request import ReleaseResult
from wharfinger.control_plane.service import LOCAL, ControlPlane, open_control_plane


@dataclass(frozen=True, slots=True)
class Simulation:
    """A control plane and an engine on it. ``other`` is another user's client, whose requests are not counted and do not fail."""

    plane: ControlPlane
    network: FaultyNetwork
    client: HttpClusterClient
    other: HttpClusterClient
    engine: Engine

    async def bring(self, prepared: Prepared) -> ReleaseResult:
        """Install or upgrade a prepared release in its namespace."""
        return await self.engine.bring(
            prepared.version, prepared.rendered, release=prepared.release, namespace=prepared.release
        )


@asynccontextmanager
async def simulate(
    *namespaces: str, armed: bool = False, fault: tuple[Call, Fault] | None = None
) -> AsyncIterator[Simulation]:
    """Open a simulation with these namespaces. If ``armed``, requests are counted and may fail from the start of the engine."""
    async with open_control_plane(simulate=True) as plane:
        network = FaultyNetwork(plane.transport())
        options = ClientOptions(user_agent="somebody/else")
        async with (
            open_client(Connection(LOCAL), transport=plane.transport(), options=options) as other,
            open_client(Connection(LOCAL), transport=network, options=ClientOptions(random=lambda: 0.0)) as client,
        ):
            for namespace in namespaces:
                await make_namespace(other, namespace)
            # Discovery must not fail here, because a daemon that cannot discover the API does not start.
            await client.api_versions()
            if armed:
                network.arm(fault)
            async with open_engine(client) as engine:
                yield Simulation(plane, network, client, other, engine)
