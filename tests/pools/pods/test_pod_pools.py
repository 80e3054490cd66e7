"""All pools of a daemon on a control plane: they maintain their pods, and no pod is bound to two claims."""

import random
from collections import Counter

import pytest
import trio
import trio.testing

from tests.pools.pods.pool_cluster import (
    Cluster,
    claim_object,
    claimed,
    images,
    key_of,
    open_cluster,
    open_pools,
    pool_object,
)
from wharfinger.control_plane.faults.rule import (
    DropAfter,
    DropBefore,
    ErrorAnswer,
    Fault,
    Latency,
    Rule,
    Selection,
    StaleRead,
)
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.kube.resource import name_of
from wharfinger.pools.pods.resources import POD, WORKER_CLAIM, WORKER_POOL

OURS = "wharfinger*"


async def settle(cluster: Cluster, *names: str) -> None:
    """Check that each claim has a result, each bound claim has its own pod, and each claimed pod has a bound claim."""
    claims = await cluster.claims()
    assert {claims[name]["phase"] for name in names} <= {"Bound", "Expired", "Failed"}
    await cluster.until(
        POD, lambda pods: len(claimed(pods)) == sum(one.get("phase") == "Bound" for one in claims.values())
    )
    pods = claimed(await cluster.pods())
    bound = {str(status["podUID"]): name for name, status in claims.items() if status.get("phase") == "Bound"}
    assert pods == bound


async def test_a_pool_has_its_pods_and_a_claim_gets_one(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.until_ready(2)
        pods = await cluster.pods()
        assert sorted(map(name_of, pods)) == ["workers-abcde-1", "workers-abcde-2"]
        assert find_str(pods[0], "metadata", "ownerReferences", 0, "kind") == "WorkerPool"
        await cluster.user.create(claim_object("one", labels={"team": "blue"}, owner="alice"))
        result = (await cluster.until_finished("one"))["one"]
        assert (result["phase"], result["reason"]) == ("Bound", "PodClaimed")
        assert result["podName"] in ("workers-abcde-1", "workers-abcde-2")
        pod = await cluster.user.get(key_of(POD, str(result["podName"])))
        assert find_str(pod, "metadata", "labels", "team") == "blue"
        await cluster.until(WORKER_POOL, lambda pools: find(pools[0], "status", "claimed") == 1)
        await cluster.until_ready(2)  # Another pod is created in place of the claimed one.
        status = find(await cluster.user.get(key_of(WORKER_POOL, "workers")), "status")
        assert (find(status, "claimed"), find(status, "desired"), find(status, "waiting")) == (1, 2, 0)
        assert find(status, "conditions", 0, "reason") == "AsWanted"


async def test_a_deleted_claim_releases_its_pod_which_is_deleted(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        await cluster.user.create(claim_object("one"))
        pod = (await cluster.until_finished("one"))["one"]["podName"]
        await cluster.user.delete(key_of(WORKER_CLAIM, "one"))
        await cluster.until(POD, lambda pods: pod not in set(map(name_of, pods)))


async def test_claims_make_the_pool_grow_up_to_max_and_are_served_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=1, max=4))
        await cluster.until_ready(1)
        names = [f"claim-{number}" for number in range(6)]
        for name in names:
            await cluster.user.create(claim_object(name))
        await cluster.until_finished(*names[:4])
        await cluster.until(WORKER_POOL, lambda pools: find(pools[0], "status", "waiting") == 2)
        assert len(await cluster.pods()) == 4
        condition = find(await cluster.user.get(key_of(WORKER_POOL, "workers")), "status", "conditions", 0)
        assert (find(condition, "status"), find(condition, "reason")) == ("False", "MaxReached")
        for name in names[:2]:
            await cluster.user.delete(key_of(WORKER_CLAIM, name))
        await cluster.until_finished(*names[4:])


async def test_idle_pods_are_deleted_after_the_idle_time(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=3, min=1, idleSeconds=60))
        await cluster.until_ready(3)
        before = trio.current_time()
        await cluster.until(POD, lambda pods: len(pods) == 1)
        assert 59 <= trio.current_time() - before <= 70


async def test_a_change_of_the_template_replaces_idle_pods_only(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.user.create(claim_object("one"))
        await cluster.until_finished("one")
        await cluster.until_ready(2)
        template: JsonObject = {"spec": {"containers": [{"name": "main", "image": "new"}]}}
        await cluster.user.merge_patch(key_of(WORKER_POOL, "workers"), {"spec": {"template": template}})
        await cluster.until(POD, lambda pods: Counter(images(pod)[0] for pod in pods) == {"new": 2, "busybox:1": 1})
        assert set(claimed(await cluster.pods()).values()) == {"one"}


async def test_an_ended_pod_is_replaced_and_never_bound(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        await cluster.until_ready(1)
        dead: JsonObject = {"status": {"phase": "Failed", "conditions": []}}
        await cluster.user.merge_patch(key_of(POD, "workers-abcde-1"), dead, subresource="status")
        await cluster.user.create(claim_object("one"))
        assert (await cluster.until_finished("one"))["one"]["podName"] == "workers-abcde-2"
        await cluster.until(POD, lambda pods: "workers-abcde-1" not in set(map(name_of, pods)))


async def test_claims_without_a_pool_wait_for_it_or_expire(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(claim_object("patient"))
        await cluster.until(WORKER_CLAIM, lambda claims: find(claims[0], "status", "reason") == "NoSuchPool")
        await cluster.user.create(pool_object())
        assert (await cluster.until_finished("patient"))["patient"]["phase"] == "Bound"


async def test_a_claim_that_cannot_be_fulfilled_fails(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.user.create(claim_object("image", images={"main": "other"}))
        await cluster.user.create(claim_object("label", labels={"wharfinger.dev/pool": "x"}))
        found = await cluster.until_finished("image", "label")
        assert [(one["phase"], one["reason"]) for one in found.values()] == [
            ("Failed", "Refused"),
            ("Failed", "SpecInvalid"),
        ]
        assert claimed(await cluster.pods()) == {}


async def test_the_status_of_an_unusable_pool_has_the_reason(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(
            pool_object(size=2, template={"metadata": {"labels": {"a b": "c"}}, "spec": {"containers": [{}]}})
        )
        await cluster.until(WORKER_POOL, lambda pools: bool(find_list(pools[0], "status", "conditions")))
        condition = find(await cluster.user.get(key_of(WORKER_POOL, "workers")), "status", "conditions", 0)
        assert (find(condition, "status"), find(condition, "reason")) == ("False", "SpecInvalid")
        fixed: JsonObject = {"metadata": None, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        await cluster.user.merge_patch(key_of(WORKER_POOL, "workers"), {"spec": {"template": fixed}})
        await cluster.until_ready(2)


async def test_a_deleted_pool_leaves_claimed_pods(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.user.create(claim_object("one"))
        await cluster.until_finished("one")
        await cluster.until_ready(2)
        await cluster.user.delete(key_of(WORKER_POOL, "workers"))
        await cluster.until(POD, lambda pods: list(claimed(pods).values()) == ["one"] and len(pods) == 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("moment", [0.0, 0.3, 0.5, 0.9, 1.4])
async def test_a_pool_that_is_made_again_at_any_moment_serves_its_claims(
    autojump_clock: trio.testing.MockClock, moment: float
) -> None:
    """The new pool gives its pods names that claimed pods of the old pool still have, and notices this only later."""
    slow = Rule(Latency(0.4), Selection(verbs=frozenset({"patch", "create"}), agent=OURS))
    async with open_cluster(slow) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.until_ready(2)
        names = ["one", "two", "three"]
        for name in names:
            await cluster.user.create(claim_object(name))
        await trio.sleep(moment)
        await cluster.user.delete(key_of(WORKER_POOL, "workers"))
        await cluster.user.create(pool_object(size=2))
        await cluster.until_finished(*names)
        await settle(cluster, *names)


async def test_the_next_daemon_binds_a_claim_whose_pod_was_claimed_before(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Status writes are refused, so the first daemon ends before the status is written. The next daemon must write it."""
    refused = Rule(
        ErrorAnswer(500, "InternalError", "x"),
        Selection(verbs=frozenset({"patch"}), kind="workerclaims*", agent=OURS),
        times=40,
    )
    async with open_cluster(refused) as cluster:
        async with open_pools(cluster):
            await cluster.user.create(pool_object())
            await cluster.user.create(claim_object("one"))
            await cluster.until(POD, lambda pods: list(claimed(pods).values()) == ["one"])
        assert (await cluster.claims())["one"] == {}
        async with open_pools(cluster, "fghij"):
            await cluster.until_finished("one")
            await settle(cluster, "one")


async def test_the_next_daemon_deletes_pods_whose_claims_are_gone(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster:
        async with open_pools(cluster):
            await cluster.user.create(pool_object())
            await cluster.user.create(claim_object("one"))
            await cluster.until_finished("one")
        await cluster.user.delete(key_of(WORKER_CLAIM, "one"))
        await cluster.user.create(claim_object("one"))  # This is another claim with the same name.
        async with open_pools(cluster, "fghij"):
            await cluster.until_finished("one")
            await settle(cluster, "one")


async def test_at_the_end_claims_in_progress_are_answered_and_others_stay_pending(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_cluster() as cluster:
        async with open_pools(cluster):
            await cluster.user.create(pool_object(size=3, max=3))
            await cluster.until_ready(3)
            names = [f"claim-{number}" for number in range(8)]
            for name in names:
                await cluster.user.create(claim_object(name))
        pods, claims = claimed(await cluster.pods()), await cluster.claims()
        bound = {str(status["podUID"]): name for name, status in claims.items() if status.get("phase") == "Bound"}
        assert pods == bound
        async with open_pools(cluster, "fghij"):
            await cluster.user.merge_patch(key_of(WORKER_POOL, "workers"), {"spec": {"max": 20}})
            await cluster.until_finished(*names)
            await settle(cluster, *names)


def faults(rng: random.Random) -> list[Rule]:
    """Return the faults between the daemon and the API server, each with the number of its occurrences."""
    kinds: list[tuple[Fault, str, str]] = [
        (DropAfter(), "patch", "pods"),
        (DropBefore(), "patch", "pods"),
        (ErrorAnswer(409, "Conflict", "injected"), "patch", "pods"),
        (ErrorAnswer(500, "InternalError", "injected"), "patch", "*"),
        (DropAfter(), "create", "pods"),
        (ErrorAnswer(429, "TooManyRequests", "injected"), "create", "pods"),
        (DropAfter(), "patch", "workerclaims*"),
        (DropAfter(), "delete", "pods"),
        (StaleRead(7), "list", "*"),
    ]
    return [
        Rule(fault, Selection(verbs=frozenset({verb}), kind=kind, agent=OURS), chance=0.3, times=rng.randint(1, 12))
        for fault, verb, kind in kinds
    ]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
async def test_no_fault_binds_one_pod_to_two_claims(autojump_clock: trio.testing.MockClock, seed: int) -> None:
    """Claims are created, unclaimed pods are deleted, answers are lost, lists are outdated, and the daemon is restarted three
    times.
    """
    rng = random.Random(seed)  # noqa: S311 - what happens
    async with open_cluster(*faults(rng), seed=seed) as cluster:
        await cluster.user.create(pool_object(size=3, max=12, idleSeconds=30))
        names = [f"claim-{number}" for number in range(12)]
        first: dict[str, JsonObject] = {}

        async def trouble() -> None:
            for name in names:
                await cluster.user.create(claim_object(name))
                await trio.sleep(rng.random())
                pods = await cluster.pods()
                if pods and rng.random() < 0.3:
                    victim = rng.choice(pods)
                    if not find_str(victim, "metadata", "labels", "wharfinger.dev/claim"):
                        await cluster.user.delete(key_of(POD, name_of(victim)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trouble)
            for number in range(3):
                async with open_pools(cluster, "abc" + "defgh"[number] * 2):
                    if number < 2:
                        await trio.sleep(3 * rng.random())
                    else:
                        await cluster.until_finished(*names)
                now = await cluster.claims()
                for name, status in first.items():
                    assert now[name] == status, "a final status has changed"
                first = {name: status for name, status in now.items() if status.get("phase") == "Bound"}
        async with open_pools(cluster, "zzzzz"):
            await settle(cluster, *names)
