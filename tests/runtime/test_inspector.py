"""The Inspector in the daemon passes the same contract tests as the client of the debug socket
(tests/debug/client/test_client.py).
"""

from datetime import UTC, datetime
from pathlib import Path

from tests.debug.support.inspector_contract import check_inspector
from tests.runtime.support.world import open_world
from wharfinger.runtime.inspection.snapshots import RuntimeInspector

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


async def test_the_inspector_answers_before_the_runtime_has_started() -> None:
    inspector = RuntimeInspector(cluster="https://c", started=STARTED)
    await check_inspector(inspector)
    daemon = await inspector.daemon()
    assert (daemon.ready, daemon.packages, daemon.cluster, daemon.started) == (False, 0, "https://c", STARTED)


async def test_the_inspector_reports_ready_and_blocked_packages(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.create("prod", "broken", package="no-such")
        await world.until_state("prod", "shop", "Ready")
        await world.until_state("prod", "broken", "Failed")
        inspector = RuntimeInspector(cluster="x", started=STARTED, runtime=world.runtime)
        await check_inspector(inspector)
        assert (await inspector.daemon()).ready
        inspector.draining = True
        assert not (await inspector.daemon()).ready
