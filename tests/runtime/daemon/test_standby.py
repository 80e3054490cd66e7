"""The standby state of a daemon, before it holds the Lease: the daemon fills its caches, and writes nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from tests.programs import PATIENCE_S
from tests.runtime.support.objects import application
from wharfinger.cluster.api.connection import Connection, load_connection
from wharfinger.cluster.api.errors import FencedError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.lease.fence import Fence
from wharfinger.process.ledger import open_ledger
from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.daemon.standby import Standby, open_standby
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.resources.custom_resources import ensure_crds

pytestmark = pytest.mark.slow


@asynccontextmanager
async def standby(folder: Path, client: HttpClusterClient, connection: Connection) -> AsyncIterator[Standby]:
    """Open the standby state of a daemon that uses this client."""
    state = folder / "state"
    (state / "scratch").mkdir(parents=True)
    config = DaemonConfig(None, "", state, state / "socket", Path("helm"), 30.0)
    inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC))
    with open_ledger(state / "journal.db") as ledger:
        async with open_standby(
            config, state, state / "scratch", ledger, client, connection, inspector, "host_1"
        ) as one:
            assert inspector.recorder is one.recorder
            yield one


async def test_a_standby_fills_its_caches_and_cannot_write(tmp_path: Path) -> None:
    async with loopback_cluster(tmp_path) as leader:
        await ensure_crds(leader, "t")
        app = application("default", "shop")
        await leader.create(app)
        connection = await trio.to_thread.run_sync(load_connection, tmp_path / "kubeconfig")
        fenced = ClientOptions(before_write=Fence().check)
        async with open_client(connection, options=fenced) as client, standby(tmp_path, client, connection) as found:
            assert found.caches is not None
            with trio.fail_after(PATIENCE_S):
                await found.caches.filled()
                await found.heads.wait_synced()
            assert [key.name for key in found.caches.applications.objects()] == ["shop"]
            assert found.heads.synced
            assert len(client.heartbeats.signs()) == 7
            with pytest.raises(FencedError, match="it is not held yet"):
                await client.create(application("default", "other"))


async def test_a_standby_watches_nothing_without_the_definitions(tmp_path: Path) -> None:
    async with loopback_cluster(tmp_path) as client:
        connection = await trio.to_thread.run_sync(load_connection, tmp_path / "kubeconfig")
        async with standby(tmp_path, client, connection) as found:
            assert found.caches is None
