"""Hours of a cluster, simulated in seconds: the real daemon on virtual time, and a script of events (docs/health.md).

The invariants are that every write has a cause, that no package becomes unready without a lasting cause, and that no object is
left behind. A full run simulates a day of 50 packages.
"""

import logging
import os
import random
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.soak.audit import Audit
from tests.runtime.soak.charts import make_charts
from tests.runtime.soak.daemon import Daemon, on_virtual_time
from tests.runtime.soak.script import Script, left_behind
from tests.runtime.soak.server import Network, Server
from tests.runtime.support.objects import repository
from tests.scale import FULL, scaled
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.control_plane.service import LOCAL
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.custom_resources import ensure_crds

log = logging.getLogger(__name__)
pytestmark = pytest.mark.unmeasured

HOURS = float(os.environ.get("SOAK_HOURS", scaled(24, 2)))
APPS = int(os.environ.get("SOAK_APPS", scaled(50, 6)))
QUIET_S = float(os.environ.get("SOAK_QUIET", scaled(1800, 400)))
SEEDS = [int(os.environ["SOAK_SEED"])] if "SOAK_SEED" in os.environ else [1, 2, 3] if FULL else [5]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_hours_of_a_cluster_cause_no_unexplained_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, seed: int
) -> None:
    server, audit = Server(), Audit()
    on_virtual_time(monkeypatch, lambda: Network(server, audit.noted))
    random.seed(seed)
    folders = make_charts(tmp_path / "charts")
    daemon = Daemon(tmp_path / "state", list(folders.values()))
    people = ClientOptions(user_agent="kube-controller-manager")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.run)
        await server.up.wait()
        async with open_client(Connection(LOCAL, bearer("")), transport=Network(server), options=people) as client:
            await ensure_crds(client, "wharfinger")
            for version, folder in folders.items():
                spec: JsonObject = {"folder": {"path": str(folder)}}
                await client.create({**repository("", name=f"v{version}"), "spec": spec})
            nursery.start_soon(daemon.run)
            script = Script(seed, APPS, server, daemon, client, audit, quiet_s=QUIET_S)
            await script.begin()
            await script.run(HOURS * 3600)
            await script.end()
            await daemon.stop(crash=False)
        nursery.cancel_scope.cancel()
    log.info(
        "%d causes, %d writes, %d of the Lease, %d lives", len(script.done), audit.writes, audit.leases, daemon.lives
    )
    findings = [*audit.findings, *(f"left behind: {one}" for one in left_behind(server))]
    assert not findings, "\n".join([f"{len(findings)} findings", *findings])
    assert audit.writes
