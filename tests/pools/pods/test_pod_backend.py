"""The backend of a pool of pods, on a control plane: the contract of all backends, and every way in which a claim can fail."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio

from tests.pools.claims.backend_contract import BackendContract, shown
from tests.pools.pods.pool_cluster import (
    CONTAINERS,
    NAMESPACE,
    Cluster,
    claim_object,
    claimed,
    images,
    key_of,
    open_backend,
    open_cluster,
    pool_object,
)
from wharfinger.control_plane.faults.rule import DropAfter, DropBefore, ErrorAnswer, Fault, Rule, Selection
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.pools.claims.backend import Backend, ClaimError, ConflictError
from wharfinger.pools.claims.events import Lost, Seen
from wharfinger.pools.pods.pod_backend import CLAIM_S, ClaimedPod, NotPermittedError, PodBackend
from wharfinger.pools.pods.pod_state import Phase, read_pod
from wharfinger.pools.pods.resources import POD, WORKER_POOL, ClaimSpec, read_claim, read_pool


async def claim_of(cluster: Cluster, **spec: JsonValue) -> ClaimSpec:
    """Return an existing claim."""
    return read_claim(await cluster.user.create(claim_object("one", **spec)))


class TestPodBackend(BackendContract[ClaimSpec, ClaimedPod]):
    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[tuple[Backend[ClaimSpec, ClaimedPod], ClaimSpec]]:
        async with open_cluster() as cluster, open_backend(cluster) as backend:
            yield backend, await claim_of(cluster)

    def other(self, spec: ClaimSpec) -> ClaimSpec:
        return replace(spec, uid="claim-uid-2")


async def test_one_patch_sets_everything() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 1, allowImages=True) as backend:
        claim = await claim_of(
            cluster, owner="alice", labels={"team": "blue"}, annotations={"note": "x"}, images={"side": "side:2"}
        )
        (member,) = shown(backend)
        result = (await backend.claim(member, claim)).result
        pod = await cluster.user.get(key_of(POD, "workers-0"))
        assert (result.name, result.uid, result.phase) == ("workers-0", find_str(pod, "metadata", "uid"), Phase.CLAIMED)
        labels, annotations = find(pod, "metadata", "labels"), find(pod, "metadata", "annotations")
        assert labels == {
            "app": "worker",
            "team": "blue",
            "wharfinger.dev/pool": "workers",
            "wharfinger.dev/pool-phase": "claimed",
            "wharfinger.dev/pool-template": find(pod, "metadata", "labels", "wharfinger.dev/pool-template"),
            "wharfinger.dev/claim": "one",
        }
        assert annotations == {
            "note": "x",
            "wharfinger.dev/claim-uid": claim.uid,
            "wharfinger.dev/claim-owner": "alice",
        }
        assert find_str(pod, "metadata", "ownerReferences", 0, "uid") == claim.uid
        assert images(pod) == ["busybox:1", "side:2"]
        assert len(CONTAINERS) == 2


async def test_claims_may_set_images_only_if_the_pool_allows_it() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        with pytest.raises(ClaimError, match="does not allow images"):
            await backend.claim(member, ClaimSpec(NAMESPACE, "one", "u", "workers", images={"main": "x"}))
    async with open_cluster() as cluster, open_backend(cluster, 1, allowImages=True) as backend:
        (member,) = shown(backend)
        with pytest.raises(
            ClaimError, match=r"spec.images.other: expected a container of the pool's pods \(main, side\)"
        ):
            await backend.claim(member, ClaimSpec(NAMESPACE, "one", "u", "workers", images={"other": "x"}))
        assert (await backend.claim(member, await claim_of(cluster))).result.claim == "one"


async def test_a_pod_that_was_changed_by_others_is_a_conflict() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        await cluster.user.merge_patch(key_of(POD, "workers-0"), {"metadata": {"labels": {"seen": "yes"}}})
        with pytest.raises(ConflictError):
            await backend.claim(member, await claim_of(cluster))


async def test_a_pod_that_an_earlier_daemon_claimed_for_the_claim_is_its_pod() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 1) as current:
        claim, seen = await claim_of(cluster), read_pod(await cluster.user.get(key_of(POD, "workers-0")))
        assert seen is not None
        backend = PodBackend(cluster.client, read_pool(await cluster.user.get(key_of(WORKER_POOL, "workers"))))
        backend.see(seen)  # The backend gets an old state, as from a delayed cache.
        (member,) = shown(current)
        await current.claim(member, claim)
        (member,) = shown(backend)
        assert (await backend.claim(member, claim)).result.claim_uid == claim.uid
        assert not backend.doomed


async def test_a_recreated_pod_with_the_same_name_is_another_pod() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        old = await cluster.user.get(key_of(POD, "workers-0"))
        known = read_pod(old)
        assert known is not None
        await cluster.user.delete(key_of(POD, "workers-0"))
        await cluster.until(POD, lambda pods: not pods)
        backend.see(known)  # The backend gets an old state, as from a delayed cache.
        with pytest.raises(ConflictError):
            await backend.claim(member, await claim_of(cluster))


def patching(fault: Fault, times: int | None = 1) -> Rule:
    """Return a rule that makes patches of pods by the daemon fail."""
    return Rule(fault, Selection(verbs=frozenset({"patch"}), kind="pods", agent="wharfinger*"), times=times)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "fault",
    [
        ErrorAnswer(409, "Conflict", "by mistake"),
        DropAfter(),
        DropBefore(),
        ErrorAnswer(500, "InternalError", "x"),
        ErrorAnswer(429, "TooManyRequests", "x"),
    ],
)
async def test_the_outcome_of_an_unanswered_claim_is_read_from_the_pod(fault: Fault) -> None:
    async with open_cluster(patching(fault)) as cluster, open_backend(cluster, 1) as backend:
        (member,), claim = shown(backend), await claim_of(cluster)
        claimed = await backend.claim(member, claim)
        assert claimed.result.claim_uid == claim.uid
        assert claimed.version > member.version
        assert not backend.doomed


async def test_a_claim_is_tried_for_several_seconds(autojump_clock: trio.testing.MockClock) -> None:
    unavailable = ErrorAnswer(503, "ServiceUnavailable", "x")
    async with open_cluster(patching(unavailable, 9)) as cluster, open_backend(cluster, 1) as backend:
        (member,), claim = shown(backend), await claim_of(cluster)
        began = trio.current_time()
        assert (await backend.claim(member, claim)).result.claim_uid == claim.uid
        assert 5 < trio.current_time() - began < CLAIM_S
        assert not backend.doomed


async def test_a_claim_that_others_won_while_there_was_no_answer_is_a_conflict() -> None:
    async with open_cluster(patching(DropBefore())) as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        async with trio.open_nursery() as nursery:

            async def claim() -> None:
                with pytest.raises(ConflictError, match="changed"):
                    await backend.claim(member, await claim_of(cluster))

            nursery.start_soon(claim)
            patch: JsonObject = {"metadata": {"annotations": {"wharfinger.dev/claim-uid": "claim-uid-2"}}}
            await cluster.user.merge_patch(key_of(POD, "workers-0"), patch)


async def test_a_pod_whose_claim_stays_unknown_is_doomed(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster(patching(DropAfter(), None)) as cluster, open_backend(cluster, 1) as backend:
        doomed: list[str] = []
        backend.on_doomed = doomed.append
        (member,) = shown(backend)
        with pytest.raises(ConflictError):
            await backend.claim(member, await claim_of(cluster))
        assert doomed == [member.uid]


async def test_a_refused_claim_leaves_the_pod_as_it_was() -> None:
    refusal = ErrorAnswer(422, "Invalid", "the label is too long")
    async with open_cluster(patching(refusal)) as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        claim = await claim_of(cluster)
        with pytest.raises(ClaimError, match="too long"):
            await backend.claim(member, claim)
        assert (await backend.claim(member, claim)).result.uid == member.uid


DENIED = [
    ErrorAnswer(401, "Unauthorized", "Unauthorized"),
    ErrorAnswer(403, "Forbidden", 'pods "x" is forbidden: User "w" cannot patch resource "pods" in API group ""'),
]


@pytest.mark.parametrize("fault", DENIED)
async def test_missing_rights_of_the_daemon_lose_no_pod(autojump_clock: trio.testing.MockClock, fault: Fault) -> None:
    async with open_cluster(patching(fault, None)) as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        began = trio.current_time()
        with pytest.raises(NotPermittedError):
            await backend.claim(member, await claim_of(cluster))
        assert trio.current_time() - began >= CLAIM_S
        assert not backend.doomed


async def test_a_token_that_is_renewed_in_time_delays_a_claim(autojump_clock: trio.testing.MockClock) -> None:
    async with open_cluster(patching(DENIED[0], 4)) as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        assert (await backend.claim(member, await claim_of(cluster))).result.uid == member.uid


async def test_a_pod_that_may_have_been_claimed_before_the_rights_were_lost_is_doomed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    later = replace(patching(DENIED[0], None), skip=1)
    async with open_cluster(patching(DropAfter()), later) as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        with pytest.raises(ConflictError):
            await backend.claim(member, await claim_of(cluster))
        assert backend.doomed == {member.uid}


async def test_an_older_state_is_ignored_and_a_deleted_pod_does_not_come_back() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 1) as backend:
        (member,) = shown(backend)
        before = read_pod(await cluster.user.get(key_of(POD, "workers-0")))
        assert before is not None
        await backend.claim(member, await claim_of(cluster))
        assert backend.changes()
        backend.see(before)
        assert list(backend.changes()) == []
        await backend.recycle(member.uid)
        assert list(backend.changes()) == [Lost(member.uid)]
        backend.see(before)
        assert list(backend.changes()) == []


async def test_pods_of_another_template_are_protected() -> None:
    async with open_cluster() as cluster, open_backend(cluster, 2) as backend:
        assert all(not member.protected for member in shown(backend))
        obj = pool_object(template={"spec": {"containers": [{"name": "main", "image": "other"}]}})
        await cluster.user.merge_patch(key_of(WORKER_POOL, "workers"), {"spec": find(obj, "spec")})
        backend.use(read_pool(await cluster.user.get(key_of(WORKER_POOL, "workers"))))
        changes = backend.changes()
        assert len(changes) == 2
        assert all(isinstance(change, Seen) and change.member.protected for change in changes)


async def test_a_recycled_pod_is_left_to_its_claim() -> None:
    """The pod stays claimed, because another attempt may have claimed this pod for the same WorkerClaim, and bound the
    WorkerClaim to the pod.
    """
    async with open_cluster() as cluster, open_backend(cluster, 1) as backend:
        (member,), claim = shown(backend), await claim_of(cluster)
        await backend.claim(member, claim)
        await backend.recycle(member.uid)
        assert claimed(await cluster.pods()) == {member.uid: claim.name}
        assert list(backend.changes()) == [Lost(member.uid)]
