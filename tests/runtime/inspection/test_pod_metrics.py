"""The metrics of pools of pods: pods and claims of real pools are counted by pool."""

import pytest
import trio.testing

from tests.pools.pods.pool_cluster import claim_object, open_cluster, open_pools, pool_object
from wharfinger.runtime.inspection import pod_metrics
from wharfinger.runtime.inspection.pod_metrics import POD_METRICS, pod_families


async def test_pods_and_claims_are_counted_by_pool(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_cluster() as cluster, open_pools(cluster) as pools:
        names = ("a", "b", "workers")
        for name in names:
            await cluster.user.create(pool_object(name, size=2))
            await cluster.until_ready(2, name)
        await cluster.user.create(claim_object("one"))
        await cluster.until_finished("one")
        await cluster.until_ready(2)
        families = list(pod_families(pools))
        assert tuple(described for described, _ in families) == POD_METRICS
        found = {described.name: {tuple(labels): number for labels, number in rows} for described, rows in families}
        assert found["wharfinger_worker_pool_pods"]["default", "workers", "claimed"] == 1
        assert found["wharfinger_worker_pool_pods"]["default", "a", "ready"] == 2
        assert found["wharfinger_worker_pool_claims_total"]["default", "workers", "success"] == 1
        assert found["wharfinger_worker_pool_desired"] == {("default", name): 2 for name in names}
        assert found["wharfinger_worker_pool_replaced_total"]["default", "workers"] == 0
        monkeypatch.setattr(pod_metrics, "MAX_POOLS", 1)
        found = {
            described.name: {tuple(labels): number for labels, number in rows}
            for described, rows in pod_families(pools)
        }
        assert found["wharfinger_worker_pool_desired"] == {("default", "a"): 2, ("", "others"): 4}
        assert found["wharfinger_worker_pool_pods"]["", "others", "ready"] == 4
