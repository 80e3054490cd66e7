"""The store of release records in a cluster."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.release_faults import TwoWays, two_ways
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.lease.lease import open_lease
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import (
    HOLDER_ANNOTATION,
    Release,
    ReleaseRecordError,
    ReleaseStatus,
    new_release,
)
from wharfinger.cluster.records.release_heads import ReleaseHeads, open_release_heads
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def release(
    revision: int, status: ReleaseStatus = ReleaseStatus.DEPLOYED, *, holder: Holder | str = "", name: str = "web"
) -> Release:
    return new_release(
        name=name,
        namespace="default",
        revision=revision,
        status=status,
        description=f"revision {revision}",
        chart={"name": "web"},
        values={"v": revision},
        manifest=f"# {revision}\n",
        hooks=[],
        now=NOW,
        holder=holder,
    )


def store_of(client: ClusterClient) -> ReleaseStore:
    return ReleaseStore(client, lambda: NOW)


async def secret(client: ClusterClient, revision: int) -> JsonObject:
    kind = await client.resource_type("v1", "Secret")
    return await client.get(ObjectKey(kind, "default", f"sh.helm.release.v1.web.v{revision}"))


async def test_history_of_one_release_is_oldest_first(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        for revision in (10, 9, 2):
            await store.create(release(revision))
        await store.create(release(1, name="other"))
        assert [one.release.revision for one in await store.history("web", "default")] == [2, 9, 10]
        assert await store.history("web", "kube-public") == []
        with pytest.raises(ReleaseBusyError, match="revision 10 was written by another process"):
            await store.create(release(10))


async def test_update_retains_foreign_labels_and_annotations(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        await store.create(release(1, holder="wharfinger"))
        key = ObjectKey(await client.resource_type("v1", "Secret"), "default", "sh.helm.release.v1.web.v1")
        note: JsonObject = {"annotations": {"note": "x"}, "labels": {"team": "y"}}
        await client.merge_patch(key, {"metadata": note})
        (stored,) = await store.history("web", "default")
        await store.update(stored, stored.release.with_status(ReleaseStatus.SUPERSEDED, "over"))
        live = await secret(client, 1)
        assert find(live, "metadata", "annotations") == {"note": "x", HOLDER_ANNOTATION: "wharfinger"}
        assert find(live, "metadata", "labels", "team") == "y"
        assert find(live, "metadata", "labels", "status") == "superseded"


async def test_a_record_changed_meanwhile_is_busy(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        stored = await store.create(release(1))
        newer = await store.update(stored, stored.release.with_status(ReleaseStatus.FAILED, "x"))
        with pytest.raises(ReleaseBusyError, match="was changed by another process meanwhile"):
            await store.update(stored, stored.release.with_status(ReleaseStatus.SUPERSEDED, "y"))
        await store.update(newer, newer.release.with_status(ReleaseStatus.SUPERSEDED, "y"))
        await store.remove(newer)
        await store.remove(newer)
        assert await store.history("web", "default") == []


async def test_tidy_supersedes_and_deletes_old_revisions(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        for revision, status in enumerate(["superseded", "deployed", "failed", "deployed", "deployed"], 1):
            await store.create(release(revision, ReleaseStatus(status)))
        await store.tidy(await store.history("web", "default"), keep=4)
        assert [one.release.status.value for one in await store.history("web", "default")] == [
            "superseded",
            "failed",
            "superseded",
            "deployed",
        ]
        (first, *_) = await store.history("web", "default")
        assert first.release.description == "revision 2"


async def test_the_last_deployed_revision_is_not_trimmed(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        for revision in range(1, 6):
            await store.create(release(revision, ReleaseStatus.DEPLOYED if revision == 1 else ReleaseStatus.FAILED))
        await store.trim(await store.history("web", "default"), keep=3)
        assert [one.release.revision for one in await store.history("web", "default")] == [1, 4, 5]


async def test_foreign_secrets_are_skipped_and_damaged_records_refused(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        metadata: JsonObject = {"name": "x", "namespace": "default", "labels": {"owner": "helm", "name": "web"}}
        plain: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await client.create(plain)
        assert await store.history("web", "default") == []
        await client.create({**plain, "metadata": {**metadata, "name": "y"}, "type": "helm.sh/release.v1"})
        with pytest.raises(ReleaseRecordError, match="default/y"):
            await store.history("web", "default")


async def test_large_records_are_packed_in_a_worker_thread() -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        record = release(1)
        large = Release(
            {**record.document, "manifest": "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(110_000))}
        )
        await store.create(large)
        (stored,) = await store.history("web", "default")
        assert stored.release == large


# -- cached histories


@dataclass
class Watching:
    """A store with release heads from a watch. ``asked`` returns the requests of the store since its last call."""

    ways: TwoWays
    heads: ReleaseHeads
    store: ReleaseStore

    def asked(self) -> list[str]:
        asked, self.ways.faulty.asked = self.ways.faulty.asked, []
        return [one for one in asked if one.rpartition(" ")[2].startswith(("secrets", "sh.helm"))]

    async def numbers(self) -> list[str]:
        history = await self.store.history("web", "default")
        return [f"{one.release.revision} {one.release.status}" for one in history]


@asynccontextmanager
async def watching(*before: Release) -> AsyncIterator[Watching]:
    """Open a store with release heads from a watch. The records ``before`` already exist at the first list of this watch."""
    us = Holder("us")
    async with two_ways() as ways, open_shared_watches(ways.client) as watches, AsyncExitStack() as stack:
        for one in before:
            await ReleaseStore(ways.client, lambda: NOW).create(one)
        heads = await stack.enter_async_context(open_release_heads(watches, us))
        await heads.wait_synced()
        yield Watching(ways, heads, ReleaseStore(ways.broken, lambda: NOW, holder=us, heads=heads))


async def test_unchanged_records_are_not_read_again(autojump_clock: MockClock) -> None:
    async with watching() as at:
        assert (await at.numbers(), at.asked()) == ([], []), "the watched heads are empty"
        stored = await at.store.create(release(1))
        assert (await at.numbers(), at.asked()) == (["1 deployed"], ["POST secrets"])
        failed = await at.store.update(stored, stored.release.with_status(ReleaseStatus.FAILED, "x"))
        await at.store.create(release(2))
        at.asked()
        for _ in range(3):
            assert await at.numbers() == ["1 failed", "2 deployed"]
        await wait_all_tasks_blocked(0.01)
        assert await at.numbers() == ["1 failed", "2 deployed"]
        await at.store.remove(failed)
        assert (await at.numbers(), at.asked()) == (["2 deployed"], ["DELETE sh.helm.release.v1.web.v1"])


async def test_records_of_the_first_list_are_not_read_again(autojump_clock: MockClock) -> None:
    async with watching(*(release(revision, holder="us") for revision in (1, 2, 10))) as at:
        for _ in range(2):
            assert await at.numbers() == ["1 deployed", "2 deployed", "10 deployed"]
        assert at.asked() == []
        listed = await ReleaseStore(at.ways.client, lambda: NOW).history("web", "default")
        assert await at.store.history("web", "default") == listed


async def test_records_that_changed_after_the_first_list_are_read(autojump_clock: MockClock) -> None:
    async with watching(release(1, holder="us"), release(2, holder="us")) as at:
        foreign = ReleaseStore(at.ways.client, lambda: NOW)
        (first, _) = await foreign.history("web", "default")
        await foreign.update(first, first.release.with_status(ReleaseStatus.SUPERSEDED, "x"))
        await wait_all_tasks_blocked(0.01)
        at.asked()
        assert (await at.numbers(), at.asked()) == (["1 superseded", "2 deployed"], ["GET secrets"])


@pytest.mark.parametrize("holders", [("", ""), ("us", "")])
async def test_records_of_foreign_holders_are_read(autojump_clock: MockClock, holders: tuple[str, str]) -> None:
    async with watching(*(release(at + 1, holder=holder) for at, holder in enumerate(holders))) as at:
        at.asked()
        assert (await at.numbers(), at.asked()) == (["1 deployed", "2 deployed"], ["GET secrets"])


async def test_consecutive_upgrades_read_no_records(autojump_clock: MockClock) -> None:
    async with watching() as at:
        for revision in range(1, 4):
            at.asked()
            history = await at.store.settled("web", "default")
            stored = await at.store.create(release(revision, ReleaseStatus.PENDING_UPGRADE, holder="us"))
            done = await at.store.update(stored, stored.release.with_status(ReleaseStatus.DEPLOYED, "done"))
            await at.store.tidy([*history, done], keep=10)
            await at.store.history("web", "default")
            assert "GET secrets" not in at.asked()
        assert await at.numbers() == ["1 superseded", "2 superseded", "3 deployed"]


async def test_records_changed_by_others_are_read_once(autojump_clock: MockClock) -> None:
    async with watching() as at:
        await at.store.create(release(1))
        await at.numbers()
        foreign = ReleaseStore(at.ways.client, lambda: NOW)
        (stored,) = await foreign.history("web", "default")
        await foreign.update(stored, stored.release.with_status(ReleaseStatus.SUPERSEDED, "x"))
        await foreign.create(release(2))
        await wait_all_tasks_blocked(0.01)
        at.asked()
        for _ in range(3):
            assert await at.numbers() == ["1 superseded", "2 deployed"]
        assert at.asked() == ["GET secrets"]
        await foreign.remove((await foreign.history("web", "default"))[1])
        await wait_all_tasks_blocked(0.01)
        assert (await at.numbers(), at.asked()) == (["1 superseded"], ["GET secrets"])


async def test_a_busy_writer_reads_again_although_the_watch_reported_nothing() -> None:
    async with two_ways() as at:
        heads = Deaf(Holder("us"))
        store = ReleaseStore(at.broken, lambda: NOW, holder=Holder("us"), heads=heads)
        await ReleaseStore(at.client, lambda: NOW).create(release(1))
        assert await store.history("web", "default") == [], "the watch reported nothing"
        with pytest.raises(ReleaseBusyError):
            await store.create(release(1))
        await store.history("web", "default")
        (stored,) = await store.history("web", "default")
        foreign = ReleaseStore(at.client, lambda: NOW)
        (theirs,) = await foreign.history("web", "default")
        await foreign.update(theirs, theirs.release.with_status(ReleaseStatus.SUPERSEDED, "x"))
        with pytest.raises(ReleaseBusyError):
            await store.update(stored, stored.release.with_status(ReleaseStatus.FAILED, "x"))
        (again,) = await store.history("web", "default")
        assert again.release.status is ReleaseStatus.SUPERSEDED


async def test_a_recreated_record_is_not_deleted(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        stored = await store.create(release(1))
        await store.remove(stored)
        await store.create(release(1))
        with pytest.raises(ReleaseBusyError, match="another process deleted revision 1 and wrote it anew"):
            await store.remove(stored)
        assert len(await store.history("web", "default")) == 1


class Deaf(ReleaseHeads):
    """Release heads that always count as synced, although they receive no events of the watch."""

    @property
    def synced(self) -> bool:
        return True


async def test_summaries_are_updated_without_losing_data(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        for revision in (1, 2):
            await store.create(release(revision))
        first, _ = await store.history("web", "default")
        assert not first.release.whole
        await store.update(first, first.release.with_status(ReleaseStatus.SUPERSEDED, "over"))
        key = ObjectKey(await client.resource_type("v1", "Secret"), "default", "sh.helm.release.v1.web.v2")
        await client.delete(key)
        (read,) = await store.history("web", "default")
        assert (read.release.status, read.release.values, read.release.manifest) == (
            ReleaseStatus.SUPERSEDED,
            {"v": 1},
            "# 1\n",
        )


# -- pending records of others


async def pending(client: ClusterClient, holder: Holder) -> None:
    """Create a deployed record, and the pending record of a killed process."""
    store = ReleaseStore(client, lambda: NOW + timedelta(days=9))  # the clock of the other machine is wrong
    await store.create(release(1))
    await store.create(release(2, ReleaseStatus.PENDING_UPGRADE, holder=holder))


async def settled(client: ClusterClient, holder: Holder) -> str:
    history = await ReleaseStore(client, lambda: NOW, holder=holder).settled("web", "default")
    return f"{history[-1].release.status}: {history[-1].release.description}"


async def test_a_pending_record_of_a_killed_process_of_the_same_state_is_settled(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await pending(client, Holder("us", 4, "default/wharfinger/u"))
        said = await settled(client, Holder("us", 5, "default/wharfinger/u"))
        assert said == "failed: interrupted while pending-upgrade: the daemon was ended"
        history = await store_of(client).history("web", "default")
        assert [one.release.status.value for one in history] == ["deployed", "failed"]
        assert await settled(client, Holder("us", 5, "default/wharfinger/u")) == said, "settled only once"


async def test_a_pending_record_of_the_former_lease_holder_is_settled(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        async with open_lease(client, "default", "wharfinger", "them", now=lambda: NOW) as lease:
            await pending(client, lease.holder)
        async with open_lease(client, "default", "wharfinger", "us", now=lambda: NOW) as lease:
            assert await settled(client, lease.holder) == (
                "failed: interrupted while pending-upgrade: the Wharfinger daemon them does not hold the Lease any more: "
                "us holds it"
            )


async def test_a_pending_record_of_another_daemon_is_settled_after_its_lease_expired(autojump_clock: MockClock) -> None:
    async with two_ways() as at:
        store = ReleaseStore(at.client, lambda: NOW, holder=Holder("us"))
        with trio.CancelScope() as killed:
            async with open_lease(
                at.broken, "default", "wharfinger", "them", now=lambda: NOW - timedelta(days=9)
            ) as lease:
                await pending(at.client, lease.holder)
                for _ in range(10):
                    with pytest.raises(
                        ReleaseBusyError,
                        match="release default/web: the Wharfinger daemon them is at work on revision 2 "
                        r"\(pending-upgrade\); the wait ends when that daemon releases the Lease default/wharfinger",
                    ) as caught:
                        await store.settled("web", "default")
                    assert caught.value.transient
                    await trio.sleep(14)
                at.faulty.fault = lambda _: httpx.ConnectError("killed")
                killed.cancel()
                await trio.sleep_forever()
        with pytest.raises(ReleaseBusyError):
            await store.settled("web", "default")
        await trio.sleep(15)
        history = await store.settled("web", "default")
        assert "did not renew the Lease default/wharfinger for 15 seconds" in history[-1].release.description


async def test_a_pending_record_of_a_users_helm_is_settled_after_ten_minutes(autojump_clock: MockClock) -> None:
    async with watching() as at:
        await pending(at.ways.client, Holder(""))
        for _ in range(10):
            with pytest.raises(ReleaseBusyError, match="a helm command is at work on revision 2"):
                await at.store.settled("web", "default")
            await trio.sleep(60)
        history = await at.store.settled("web", "default")
        assert history[-1].release.description == (
            "interrupted while pending-upgrade: a helm command has not changed the record for 10 minutes"
        )
        newest = at.heads.newest(Owner("web", "default"))
        assert newest is not None
        assert newest.status is ReleaseStatus.FAILED


async def test_a_pending_record_of_a_later_lease_holder_is_busy(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await pending(client, Holder("them", 6, "default/wharfinger/u"))
        with pytest.raises(ReleaseBusyError, match="it took the Lease over from this daemon"):
            await settled(client, Holder("us", 5, "default/wharfinger/u"))


async def test_of_two_simultaneous_settlements_only_one_succeeds(autojump_clock: MockClock) -> None:
    async with two_ways() as at:
        us = Holder("us", 5, "default/wharfinger/u")
        await pending(at.client, Holder("us", 4, "default/wharfinger/u"))
        held = trio.Event()
        at.faulty.fault = lambda request: held if request.method == "PUT" else None
        errors: list[ClusterError] = []

        async def heal() -> None:
            try:
                await settled(at.broken, us)
            except ReleaseBusyError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(heal)
            await wait_all_tasks_blocked(0.01)
            await settled(at.client, us)
            held.set()
        assert len(errors) == 1
