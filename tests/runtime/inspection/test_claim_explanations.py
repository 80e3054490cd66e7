"""The explanation of a waiting WorkerClaim: for each reason why it waits, the causes and the remedy that are shown."""

from datetime import UTC, datetime

import trio
import trio.testing

from tests.pools.pods.pool_cluster import claim_object, key_of, open_cluster, open_pools, pool_object
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.pools.pods.pod_pools import PodPools
from wharfinger.pools.pods.resources import WORKER_CLAIM, WORKER_POOL
from wharfinger.runtime.inspection.claim_explanations import explain_claim
from wharfinger.runtime.inspection.snapshots import RuntimeInspector


def causes(pools: PodPools, name: str) -> tuple[list[tuple[str, str, str]], str]:
    """Return the subject, state and message of each cause, and the remedy."""
    found = explain_claim(f"claim/default/{name}", pools)
    assert found is not None
    assert not found.ready
    return [(one.subject, one.state, one.message) for one in found.causes], found.remedy


async def test_each_reason_of_a_waiting_claim_is_explained(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster) as pools:
        inspector = RuntimeInspector(cluster="here", started=datetime.now(UTC))
        assert await inspector.why("claim/default/one") is None
        inspector.pods = pools
        assert await inspector.why("claim/default/one") is None
        await cluster.user.create(claim_object("one"))
        await cluster.until(WORKER_CLAIM, lambda found: find(found[0], "status", "reason") == "NoSuchPool")
        assert causes(pools, "one") == (
            [
                ("claim/default/one", "Pending", "waits for a pod of pool workers"),
                ("pool default/workers", "missing", "no WorkerPool of this name is working now"),
            ],
            "create the WorkerPool, or correct its spec; `kubectl describe workerpool` shows its conditions",
        )
        await cluster.user.create(pool_object(size=0, max=1))
        await cluster.until_finished("one")
        bound = await inspector.why("claim/default/one")
        assert bound is not None
        assert bound.ready
        assert bound.also == ("bound to pod workers-abcde-1",)
        for name in ("two", "three"):
            await cluster.user.create(claim_object(name))
        await cluster.until(WORKER_POOL, lambda found: find(found[0], "status", "waiting") == 2)
        chain, remedy = causes(pools, "three")
        assert chain[0] == (
            "claim/default/three",
            "Pending",
            "this claim is number 2 of the claims that wait for a pod",
        )
        assert chain[1] == (
            "pool default/workers",
            "MaxReached",
            "0 ready, 0 reserved, 0 starting, 1 claimed, 2 waiting claims; 1 pods exist, but spec.max is 1",
        )
        assert remedy == "delete claims that are not used any more, or raise spec.max of the WorkerPool"
        await cluster.user.create(claim_object("four", images={"main": "x"}, labels={"a": "b c"}))
        await cluster.until_finished("four")
        chain, remedy = causes(pools, "four")
        assert chain[0][:2] == ("claim/default/four", "Failed")
        assert remedy == "delete the claim and create another one"


async def test_a_pool_without_ready_pods_is_explained(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster) as pools:
        template: JsonObject = {
            "metadata": {"annotations": {"wharfinger.dev/image-pull-failure": "true"}},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        }
        await cluster.user.create(pool_object(template=template))
        await cluster.user.create(claim_object("one"))
        await cluster.until(
            WORKER_POOL, lambda found: "ImagePullBackOff" in str(find(found[0], "status", "conditions"))
        )
        chain, remedy = causes(pools, "one")
        assert chain[1][1] == "Starting"
        assert "ImagePullBackOff" in chain[1][2]
        assert "kubectl get pods -l wharfinger.dev/pool=workers" in remedy
        await cluster.user.delete(key_of(WORKER_CLAIM, "one"))
        await trio.sleep(2)
        assert explain_claim("claim/default/one", pools) is None
