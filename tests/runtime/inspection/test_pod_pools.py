"""Snapshots of pools of pods: real pools are shown with their pods and claims."""

from dataclasses import replace
from datetime import UTC, datetime

import trio.testing

from tests.pools.pods.pool_cluster import claim_object, open_cluster, open_pools, pool_object
from wharfinger.runtime.daemon_details import WarmPoolSnapshot
from wharfinger.runtime.inspection.pod_pools import pod_pools
from wharfinger.runtime.inspection.snapshots import RuntimeInspector


async def test_pools_are_shown_with_their_pods_and_claims(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster) as pools:
        inspector = RuntimeInspector(cluster="here", started=datetime.now(UTC))
        assert await inspector.pools() == ()
        inspector.pods = pools
        for name in ("workers", "others"):
            await cluster.user.create(pool_object(name, size=2, max=3))
        await cluster.until_ready(2)
        await cluster.until_ready(2, "others")
        await cluster.user.create(claim_object("one"))
        await cluster.until_finished("one")
        await cluster.until_ready(2)
        idle, used = await inspector.pools()
        assert (idle.name, used.name) == ("default/others", "default/workers")
        assert used == WarmPoolSnapshot(
            name="default/workers",
            state="ready",
            size=2,
            ready=2,
            reserved=0,
            waiting=0,
            started=1,
            conflicts=used.conflicts,
            failed=0,
            expired=0,
            refused=0,
            restarts=0,
            kind="pods",
            starting=0,
            claimed=1,
        )
        assert idle == replace(used, name="default/others", started=0, conflicts=0, claimed=0)
        (pool,) = [pool for pool in pools.pools() if pool.spec.name == "others"]
        pool.reject(2, "spec.size: bad")
        found = pod_pools(pools)[0]
        assert (found.state, found.problem) == ("invalid", "spec.size: bad")
