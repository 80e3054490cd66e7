"""Claims on a control plane: deleted or expired at any moment, refused temporarily, and answered while the cache is delayed."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import trio
import trio.testing

from tests.pools.pods.pool_cluster import (
    Cluster,
    claim_object,
    claimed,
    key_of,
    open_cluster,
    open_pools,
    open_second,
    pool_object,
)
from wharfinger.control_plane.faults.rule import ErrorAnswer, Latency, Rule, Selection
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey, name_of
from wharfinger.pools.claims.events import Limits
from wharfinger.pools.pods import claim_controller, pod_pool
from wharfinger.pools.pods.claim_controller import claim_key
from wharfinger.pools.pods.pod_pools import open_pod_pools
from wharfinger.pools.pods.resources import POD, WORKER_CLAIM, WORKER_POOL, ClaimSpec, read_claim

OURS = "wharfinger*"
SLOW = Rule(Latency(0.4), Selection(verbs=frozenset({"patch", "delete"}), agent=OURS))


def test_the_key_of_a_claim() -> None:
    assert claim_key("a", "b") == ObjectKey(WORKER_CLAIM, "a", "b")


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("moment", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.3])
async def test_a_claim_that_is_deleted_at_any_moment_leaves_no_pod(
    autojump_clock: trio.testing.MockClock, moment: float
) -> None:
    """The WorkerClaim is deleted before, during or after these two steps: the pod is claimed, which takes 0.4 s, and then the
    status of the claim is written, which takes another 0.4 s.
    """
    async with open_cluster(SLOW) as cluster, open_pools(cluster) as pools:
        await cluster.user.create(pool_object())
        await cluster.until_ready(1)
        await cluster.user.create(claim_object("one"))
        await trio.sleep(moment)
        await cluster.user.delete(key_of(WORKER_CLAIM, "one"))
        await trio.sleep(10)
        assert claimed(await cluster.pods()) == {}
        assert pools.claims is not None
        assert pools.claims.pending() == {}
        await cluster.until_ready(1)


async def test_a_claim_expires_without_a_pool(autojump_clock: trio.testing.MockClock) -> None:
    began, start = datetime.now(UTC), trio.current_time()

    def now() -> datetime:
        return began + timedelta(seconds=trio.current_time() - start)

    async with open_cluster() as cluster, open_pod_pools(cluster.client, now=now):
        cluster.plane.backend.now = now  # With the real clock, opening the cluster would count for the claim's age.
        await cluster.user.create(claim_object("late", "none", timeoutSeconds=5))
        await cluster.until(
            WORKER_CLAIM, lambda claims: [find(each, "status", "reason") for each in claims] == ["NoSuchPool"]
        )
        found = await cluster.until_finished("late")
        assert (found["late"]["phase"], found["late"]["reason"]) == ("Expired", "Timeout")
        assert trio.current_time() - start < 10


async def test_a_claim_expires_while_it_waits_for_a_pod(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=0, max=1))
        await cluster.user.create(claim_object("first"))
        await cluster.until_finished("first")
        await cluster.user.create(claim_object("late", timeoutSeconds=5))
        found = await cluster.until_finished("late")
        assert (found["late"]["phase"], found["late"]["reason"]) == ("Expired", "Timeout")
        assert len(claimed(await cluster.pods())) == 1


async def test_a_claim_of_a_full_pool_is_pending_with_a_reason_and_bound_later(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_pool, "LIMITS", Limits(waiting=1, in_flight=1, attempts=2))
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=0, max=1))
        await cluster.user.create(claim_object("holder"))
        await cluster.until_finished("holder")
        for name in ("one", "two"):
            await cluster.user.create(claim_object(name))
        await cluster.until(
            WORKER_CLAIM,
            lambda claims: {find(each, "status", "reason") for each in claims} >= {"PoolFull", "WaitingForPod"},
        )
        await cluster.user.merge_patch(key_of(WORKER_POOL, "workers"), {"spec": {"max": 5}})
        found = await cluster.until_finished("one", "two")
        assert {each["phase"] for each in found.values()} == {"Bound"}


async def test_a_status_is_written_again_until_the_api_server_accepts_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refused = Rule(
        ErrorAnswer(503, "ServiceUnavailable", "x"),
        Selection(verbs=frozenset({"patch"}), kind="workerclaims*", agent=OURS),
        times=25,
    )
    async with open_cluster(refused) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        await cluster.user.create(claim_object("one"))
        found = await cluster.until_finished("one")
        assert claimed(await cluster.pods()) == {found["one"]["podUID"]: "one"}


async def test_a_claim_waits_while_the_daemon_lacks_rights(autojump_clock: trio.testing.MockClock) -> None:
    text = 'pods "x" is forbidden: User "w" cannot patch resource "pods" in API group ""'
    denied = Rule(
        ErrorAnswer(403, "Forbidden", text), Selection(verbs=frozenset({"patch"}), kind="pods", agent=OURS), times=40
    )
    async with open_cluster(denied) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        await cluster.until_ready(1)
        (pod,) = await cluster.pods()
        await cluster.user.create(claim_object("one"))
        found = await cluster.until_finished("one")
        assert (found["one"]["phase"], found["one"]["podName"]) == ("Bound", name_of(pod))


async def test_changes_by_others_delay_a_claim_but_do_not_lose_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """For some time, the API server answers each patch of a pod with a conflict. The pods themselves are unchanged, so the
    claim is retried.
    """
    conflict = Rule(
        ErrorAnswer(409, "Conflict", "changed"),
        Selection(verbs=frozenset({"patch"}), kind="pods", agent=OURS),
        times=30,
    )
    async with open_cluster(conflict) as cluster, open_pools(cluster):
        await cluster.user.create(pool_object(size=2))
        await cluster.user.create(claim_object("one"))
        found = await cluster.until_finished("one")
        assert found["one"]["phase"] == "Bound"
        await cluster.until(POD, lambda pods: len(claimed(pods)) == 1)


async def test_pending_claims_are_served_by_their_age(autojump_clock: trio.testing.MockClock) -> None:
    """The claims were created while no daemon ran, in another order than that of their names. The pool has only one pod."""
    names = ["m", "z", "a"]
    async with open_cluster() as cluster:
        backend = cluster.plane.backend
        real = backend.now
        for minute, name in enumerate(names):
            backend.now = partial(datetime, 2026, 1, 1, 0, minute, tzinfo=UTC)
            await cluster.user.create(claim_object(name))
        backend.now = real
        async with open_pools(cluster):
            await cluster.user.create(pool_object(size=0, max=1))
            for name in names:
                await cluster.until_finished(name)
                assert set(claimed(await cluster.pods()).values()) == {name}
                await cluster.user.delete(key_of(WORKER_CLAIM, name))


async def test_a_bug_in_one_reconciliation_does_not_stop_other_claims(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(obj: JsonObject) -> ClaimSpec:
        if name_of(obj) == "bad":
            raise ZeroDivisionError
        return read_claim(obj)

    monkeypatch.setattr(claim_controller, "read_claim", broken)
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        await cluster.user.create(claim_object("bad"))
        await cluster.user.create(claim_object("good"))
        assert (await cluster.until_finished("good"))["good"]["phase"] == "Bound"
        assert "a bug in Wharfinger: the reconciliation failed; it is retried" in caplog.text


async def test_two_daemons_never_bind_one_pod_to_two_claims(autojump_clock: trio.testing.MockClock) -> None:
    """The Lease keeps a second daemon on standby. If two are at work nevertheless, conditional writes decide which gets a pod."""
    names = [f"claim-{number}" for number in range(10)]
    async with open_cluster() as cluster, open_pools(cluster, "first"), open_pools(cluster, "other"):
        await cluster.user.create(pool_object(size=3, max=40))
        for name in names:
            await cluster.user.create(claim_object(name))
        found = await cluster.until_finished(*names)
        bound = {status["podUID"]: name for name, status in found.items()}
        assert len(bound) == len(names)
        await cluster.until(POD, lambda pods: claimed(pods) == bound)


async def the_bound_pod_stays(cluster: Cluster) -> None:
    """Check that a claim keeps its pod even if a second daemon has tried to claim a pod for the same claim."""
    await cluster.user.create(pool_object())
    await cluster.until_ready(1)
    await cluster.user.create(claim_object("one"))
    found = await cluster.until_finished("one")
    await trio.sleep(60)
    assert claimed(await cluster.pods()) == {found["one"]["podUID"]: "one"}


async def test_a_late_daemon_does_not_take_a_pod_that_another_daemon_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The second daemon patches the pod late, for the same claim. Only the claim's status shows that the first one was faster."""
    late = Rule(Latency(0.5), Selection(verbs=frozenset({"patch"}), kind="pods", agent="second*"))
    async with open_cluster(late) as cluster, open_pools(cluster, "first"), open_second(cluster):
        await the_bound_pod_stays(cluster)


async def test_a_daemon_with_an_unknown_outcome_does_not_take_a_pod_that_another_daemon_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    silent = Rule(
        ErrorAnswer(503, "ServiceUnavailable", "x"),
        Selection(verbs=frozenset({"patch", "get"}), kind="pods", agent="second*"),
    )
    async with open_cluster(silent) as cluster, open_pools(cluster, "first"), open_second(cluster) as pools:
        await the_bound_pod_stays(cluster)
        pool = pools.pool("default", "workers")
        assert pool is not None
        assert pool.backend.doomed, "the second daemon did not try to claim a pod"
