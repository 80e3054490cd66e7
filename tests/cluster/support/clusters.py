"""Control planes for tests, each with a real client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from wharfinger.cluster.api.connection import Connection, load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.control_plane.serving import Address, serve_control_plane


@asynccontextmanager
async def memory_cluster(*, simulate: bool = False) -> AsyncIterator[HttpClusterClient]:
    """Yield a client of a control plane in this process, without sockets and threads, so that the autojump clock can be used."""
    async with (
        open_control_plane(simulate=simulate) as control_plane,
        open_client(Connection(LOCAL), transport=control_plane.transport()) as client,
    ):
        yield client


@asynccontextmanager
async def loopback_cluster(folder: Path, *, simulate: bool = False) -> AsyncIterator[HttpClusterClient]:
    """Yield a client over TCP. It uses the kubeconfig that the control plane wrote to ``folder/kubeconfig``."""
    path = folder / "kubeconfig"
    async with serve_control_plane(Address("127.0.0.1", 0), path, "test-token", simulate=simulate):
        connection = await trio.to_thread.run_sync(load_connection, path)
        async with open_client(connection) as client:
            yield client
