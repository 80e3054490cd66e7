"""One pool on a control plane: its writes, its behavior after failures, and its end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from tests.pools.pods.pool_cluster import Cluster, claim_object, claimed, key_of, open_cluster, open_pools, pool_object
from wharfinger.control_plane.faults.rule import DropAfter, ErrorAnswer, Latency, Rule, Selection
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import name_of
from wharfinger.pools.claims.events import Answer
from wharfinger.pools.pods.pod_pool import PodPool, PodRequest
from wharfinger.pools.pods.pod_state import make_pod, read_pod
from wharfinger.pools.pods.resources import POD, WORKER_POOL, read_claim, read_pool


def rule(fault: DropAfter | ErrorAnswer, verb: str, kind: str = "pods", times: int | None = 1) -> Rule:
    return Rule(fault, Selection(verbs=frozenset({verb}), kind=kind, agent="wharfinger*"), times=times)


async def condition(cluster: Cluster) -> tuple[object, object, object]:
    found = find(await cluster.user.get(key_of(WORKER_POOL, "workers")), "status", "conditions", 0)
    return find(found, "status"), find(found, "reason"), find(found, "message")


async def test_a_pod_is_made_once_even_if_there_was_no_answer(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster(rule(DropAfter(), "create", times=3)) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=3))
        await cluster.until_ready(3)
        await trio.sleep(300)
        assert sorted(map(name_of, await cluster.pods())) == [f"workers-abcde-{number}" for number in (1, 2, 3)]


async def test_a_quota_is_reported_and_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    forbidden = ErrorAnswer(403, "Forbidden", "exceeded quota: pods")
    async with open_cluster(rule(forbidden, "create", times=6)) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.until(
            WORKER_POOL, lambda pools: find(pools[0], "status", "conditions", 0, "reason") == "WriteFailed"
        )
        status, _, message = await condition(cluster)
        assert status == "False"
        assert "exceeded quota: pods" in str(message)
        await cluster.until_ready(2)
        assert await condition(cluster) == ("True", "AsWanted", "")


async def test_a_pod_that_was_claimed_while_it_was_to_retire_is_kept(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        await cluster.until_ready(1)
        taken: JsonObject = {"metadata": {"labels": {"wharfinger.dev/pool-phase": "debug"}}}
        template: JsonObject = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "new"}]}}}}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.user.merge_patch, key_of(POD, "workers-abcde-1"), taken)
            nursery.start_soon(cluster.user.merge_patch, key_of(WORKER_POOL, "workers"), template)
        await cluster.until_ready(1)
        await trio.sleep(60)
        assert "workers-abcde-1" in set(map(name_of, await cluster.pods()))


async def test_a_pod_that_never_becomes_ready_is_replaced(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster) as pools:
        template: JsonObject = {
            "metadata": {"annotations": {"wharfinger.dev/image-pull-failure": "true"}},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        }
        await cluster.user.create(pool_object(startSeconds=30, template=template))
        await cluster.until(
            WORKER_POOL, lambda found: "ImagePullBackOff" in str(find(found[0], "status", "conditions"))
        )
        await cluster.until(POD, lambda pods: [name_of(pod) for pod in pods] == ["workers-abcde-3"])
        pool = pools.pool("default", "workers")
        assert pool is not None
        assert pool.replaced == 2


def serves(pool: PodPool) -> bool:
    return pool.serves


@asynccontextmanager
async def alone(cluster: Cluster) -> AsyncGenerator[PodPool]:
    """Open a pool without its informer. The test passes changes to the pool itself."""
    spec = read_pool(await cluster.user.create(pool_object(size=0)))
    pool = PodPool(cluster.client, spec, "workers-alone", {}, lambda: datetime.now(UTC))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.run)
        yield pool
        pool.stop()
        await pool.ended.wait()


async def test_a_pool_serves_claims_until_it_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster:
        claim = read_claim(await cluster.user.create(claim_object("one")))
        async with alone(cluster) as pool:
            assert not serves(pool)
            assert not pool.enqueue(PodRequest(claim))
            assert pool.snapshot() is None
            await trio.testing.wait_all_tasks_blocked()
            assert serves(pool)
            request, second = PodRequest(claim), PodRequest(claim)
            assert pool.enqueue(request)
            assert pool.enqueue(second)
            assert (pool.position(request), pool.position(second)) == (1, 2)
            pool.withdraw(request)
            assert request.answer is Answer.WITHDRAWN
            assert (pool.position(request), pool.position(second)) == (0, 1)
        assert second.answer is Answer.CLOSED
        assert not serves(pool)
        assert not pool.enqueue(PodRequest(claim))


async def test_a_claim_under_way_is_finished_by_the_next_daemon_if_the_pool_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    slow = Rule(Latency(30.0), Selection(verbs=frozenset({"patch"}), kind="pods", agent="wharfinger*"), times=1)
    async with open_cluster(slow) as cluster:
        spec = read_pool(await cluster.user.create(pool_object()))
        claim = read_claim(await cluster.user.create(claim_object("one")))
        await cluster.user.create(make_pod(spec, "idle"))
        await cluster.until(POD, lambda pods: any((found := read_pod(pod)) and found.ready for pod in pods))
        found = read_pod(await cluster.user.get(key_of(POD, "idle")))
        assert found is not None
        pool, request = PodPool(cluster.client, spec, "workers-alone", {}, lambda: datetime.now(UTC)), PodRequest(claim)
        pool.see(found)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run)
            await trio.testing.wait_all_tasks_blocked()
            assert pool.enqueue(request)
            await trio.sleep(1.0)
            assert request.uid == found.uid
            nursery.cancel_scope.cancel()
        assert request.answer is not None
        async with open_pools(cluster):
            result = (await cluster.until_finished("one"))["one"]
            await cluster.until(POD, lambda pods: claimed(pods) == {result["podUID"]: "one"})


async def test_a_conflict_by_mistake_delays_the_retirement_of_a_pod(autojump_clock: trio.testing.MockClock) -> None:
    conflict = ErrorAnswer(409, "Conflict", "by mistake")
    async with open_cluster(rule(conflict, "patch", times=3)) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=1, min=0, idleSeconds=30))
        await cluster.until_ready(1)
        await cluster.until(POD, lambda pods: not pods)


@pytest.mark.parametrize("times", [1, 5])
async def test_a_deletion_that_fails_is_repeated(autojump_clock: trio.testing.MockClock, times: int) -> None:
    unavailable = ErrorAnswer(503, "ServiceUnavailable", "x")
    async with open_cluster(rule(unavailable, "delete", times=times)) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2, min=0, idleSeconds=30))
        await cluster.until_ready(2)
        await cluster.until(POD, lambda pods: not pods)
