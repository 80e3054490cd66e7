"""Chunks of large records in a cluster, and chunks that remain after crashes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.large_records import LARGE, NOW, US, noise, record
from tests.cluster.support.release_faults import TwoWays, two_ways
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.lease.fencing import NOBODY, Fencing, Holder
from wharfinger.cluster.records.chunk_store import ChunkStore
from wharfinger.cluster.records.release import Release, ReleaseRecordError, ReleaseStatus
from wharfinger.cluster.records.release_chunks import CHUNK_TYPE, pack_release
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.formats.json.value import JsonObject, find, find_object
from wharfinger.kube.resource import ObjectKey, name_of

PATIENT_S: Final = 300.0
"""The time after which a test that hangs is ended."""


@dataclass
class Bench:
    ways: TwoWays
    store: ReleaseStore
    """The store whose network can be broken."""

    def after_restart(self, holder: Holder = US) -> ReleaseStore:
        return ReleaseStore(self.ways.client, lambda: NOW, holder=holder)

    async def secrets(self, kind: str = CHUNK_TYPE) -> list[JsonObject]:
        resource = await self.ways.client.resource_type("v1", "Secret")
        return [*(await self.ways.client.list(resource, "default", field_selector=f"type={kind}")).items]

    async def owners(self) -> list[object]:
        return [find(chunk, "metadata", "ownerReferences", 0, "uid") for chunk in await self.secrets()]

    async def key(self, name: str) -> ObjectKey:
        return ObjectKey(await self.ways.client.resource_type("v1", "Secret"), "default", name)

    async def read(self) -> list[Release]:
        return [stored.release for stored in await self.after_restart().history("web", "default")]


class Gate:
    """A gate. The first request that reaches it waits until ``opened`` is set."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self.opened = trio.Event()

    def hold(self) -> trio.Event | None:
        """Return the event that the first request waits for. Later calls return None, because later requests do not wait."""
        if self.reached.is_set():
            return None
        self.reached.set()
        return self.opened


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with two_ways() as ways:
        yield Bench(ways, ReleaseStore(ways.broken, lambda: NOW, holder=US))


def large(revision: int = 1, seed: int = 5, holder: Holder = US) -> Release:
    return record(revision, LARGE if seed == 5 else noise(1_700_000, seed), holder=holder)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_large_record_is_written_read_and_settled() -> None:
    async with bench() as at:
        stored = await at.store.create(large())
        assert await at.read() == [large()]
        assert await at.owners() == [find(stored.metadata, "uid")] * 3
        at.ways.faulty.asked.clear()
        failed = await at.store.update(stored, stored.release.with_status(ReleaseStatus.FAILED, "it failed"))
        assert at.ways.faulty.asked == ["PUT sh.helm.release.v1.web.v1"], "a new status writes the head alone"
        assert [(one.status.value, one.manifest == LARGE) for one in await at.read()] == [("failed", True)]
        await at.store.remove(failed)
        assert (await at.read(), await at.secrets()) == ([], [])


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_trimming_deletes_chunks_without_reading_those_of_old_revisions() -> None:
    async with bench() as at:
        for revision in (1, 2):
            await at.store.create(large(revision, seed=revision))
        await at.store.create(record(3, "small"))
        store = ReleaseStore(at.ways.broken, lambda: NOW, holder=US)
        at.ways.faulty.asked.clear()
        history = await store.history("web", "default")
        assert at.ways.faulty.asked == ["GET secrets"]
        await store.tidy(history, keep=2)
        assert [find(chunk, "metadata", "labels", "version") for chunk in await at.secrets()] == ["2", "2"]
        assert [one.status.value for one in await at.read()] == ["superseded", "deployed"]
        (old, _) = await store.history("web", "default")
        assert old.release.description == "revision 2"
        await store.trim([old], keep=0)
        assert await at.secrets() == []


@pytest.mark.slow
async def test_a_record_that_outgrows_the_limit_with_its_status_is_split() -> None:
    async with bench() as at:
        stored = await at.store.create(record(1, noise(1_030_000)))
        assert await at.secrets() == []
        failed = stored.release.with_status(ReleaseStatus.FAILED, noise(100_000, 7))
        written = await at.store.update(stored, failed)
        assert written.index is not None
        assert await at.read() == [failed]
        assert await at.owners() == [find(stored.metadata, "uid")]


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_changed_content_replaces_the_chunks() -> None:
    async with bench() as at:
        stored = await at.store.create(large())
        names = {name_of(chunk) for chunk in await at.secrets()}
        changed = stored.release.with_inputs(b"new")
        written = await at.store.update(stored, changed)
        assert await at.read() == [changed]
        now = {name_of(chunk) for chunk in await at.secrets()}
        assert written.index is not None
        assert now == {*written.index.names("web")}
        assert not now & names
        assert await at.owners() == [find(stored.metadata, "uid")] * len(now)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_former_chunks_that_cannot_be_deleted_are_collected_later() -> None:
    async with bench() as at:
        stored = await at.store.create(large())
        at.ways.faulty.fault = lambda asked: httpx.ConnectError("lost") if asked.method == "DELETE" else None
        written = await at.store.update(stored, stored.release.with_inputs(b"new"))
        assert written.release.inputs == b"new"
        assert len(await at.secrets()) == 6
        assert len(await at.after_restart().collect_chunks()) == 3
        assert [one.inputs for one in await at.read()] == [b"new"]


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_record_that_loses_its_chunks_while_it_is_read_is_read_again() -> None:
    async with bench() as at:
        stored = await at.store.create(large())
        held, found = trio.Event(), list[Release]()
        at.ways.faulty.fault = lambda asked: (
            held if asked.method == "GET" and "wharfinger.chunk" in asked.url.path else None
        )

        async def read() -> None:
            found.extend(one.release for one in await at.store.history("web", "default"))

        at.store = ReleaseStore(at.ways.broken, lambda: NOW, holder=US)
        with trio.fail_after(PATIENT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                await wait_all_tasks_blocked(0.01)
                await at.after_restart().update(stored, stored.release.with_inputs(b"new"))
                held.set()
        assert [one.inputs for one in found] == [b"new"]


# -- collecting chunks


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("is_new", [False, True])
async def test_chunks_whose_head_was_written_during_the_collection_are_kept(is_new: bool) -> None:
    """The collection reads the old head, and then deletes another chunk of the same revision, while the new head is written."""
    async with bench() as at:
        stored = None if is_new else await at.store.create(large())
        new = large().with_inputs(b"new")
        first = min(name_of(chunk) for chunk in pack_release(new, NOW).chunks)
        leftover = next(
            chunk
            for number in range(200)
            if name_of(chunk := pack_release(large().with_inputs(f"{number}".encode()), NOW).chunks[0]) < first
        )
        await at.ways.client.create(leftover)
        writes, deletes = Gate(), Gate()

        def fault(asked: httpx.Request) -> trio.Event | None:
            if asked.method == "PUT" or (asked.method == "POST" and b"helm.sh/release.v1" in asked.content):
                return writes.hold()
            return deletes.hold() if asked.method == "DELETE" and name_of(leftover) in asked.url.path else None

        async def write() -> None:
            await (at.store.create(new) if stored is None else at.store.update(stored, new))

        at.ways.faulty.fault = fault
        with trio.fail_after(PATIENT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                await writes.reached.wait()
                nursery.start_soon(at.store.collect_chunks)
                await deletes.reached.wait()
                writes.opened.set()
                await wait_all_tasks_blocked(0.01)
                deletes.opened.set()
        assert await at.read() == [new]


@pytest.mark.slow
async def test_chunks_that_another_daemon_of_the_family_writes_are_not_collected(autojump_clock: MockClock) -> None:
    async with bench() as at:
        lease = await at.ways.client.create(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "wharfinger-b", "namespace": "default"},
                "spec": {"holderIdentity": "daemon-b", "leaseTransitions": 4, "leaseDurationSeconds": 15},
            }
        )
        theirs = Holder("daemon-b", 4, f"default/wharfinger-b/{find(lease, 'metadata', 'uid')}")
        for chunk in pack_release(large(holder=theirs), NOW).chunks:
            await at.ways.client.create(chunk)
        ours = Holder("daemon-a", 3, "default/wharfinger-a/uid-1", family="wharfinger")
        assert await at.after_restart(ours).collect_chunks() == ()
        assert len(await at.secrets()) == 3


@pytest.mark.slow
async def test_a_missing_chunk_is_reported_by_name() -> None:
    async with bench() as at:
        await at.store.create(large())
        name = name_of((await at.secrets())[1])
        await at.ways.client.delete(await at.key(name))
        with pytest.raises(
            ReleaseRecordError, match=rf"revision 1 is kept in chunks, and the Secret default/{name} is gone"
        ):
            await at.read()


@pytest.mark.sampled
@pytest.mark.parametrize("after", [0, 1, 2, 3])
async def test_a_write_killed_before_the_head_leaves_no_record(after: int) -> None:
    async with bench() as at:
        written: list[str] = []

        def fault(request: httpx.Request) -> Exception | None:
            if request.method != "POST":
                return None
            written.append(request.url.path)
            return httpx.ConnectError("killed") if len(written) > after else None

        at.ways.faulty.fault = fault
        with pytest.raises(ClusterError):
            await at.store.create(large())
        left = [name_of(chunk) for chunk in await at.secrets()]
        assert len(left) == after
        assert await at.read() == []
        assert sorted(await at.after_restart().collect_chunks()) == sorted(f"default/{name}" for name in left)
        assert await at.secrets() == []


@pytest.mark.slow
async def test_chunks_of_a_write_killed_before_the_ownership_are_given_to_the_head() -> None:
    async with bench() as at:
        at.ways.faulty.fault = lambda request: httpx.ConnectError("killed") if request.method == "PATCH" else None
        with pytest.raises(ClusterError):
            await at.store.create(large())
        assert await at.owners() == [None] * 3
        store = at.after_restart()
        assert await store.collect_chunks() == ()
        (stored,) = await store.history("web", "default")
        assert stored.release == large()
        assert await at.owners() == [find(stored.metadata, "uid")] * 3


@pytest.mark.slow
async def test_a_repeated_write_reuses_existing_chunks() -> None:
    async with bench() as at:
        at.ways.faulty.lost = lambda request: request.url.path.endswith("/secrets") and request.method == "POST"
        with pytest.raises(ClusterError):
            await at.store.create(large())
        at.ways.faulty.lost = lambda _: False
        with suppress(ReleaseBusyError):  # the lost request may have written the head as well
            await at.after_restart().create(large())
        assert await at.read() == [large()]
        assert await at.after_restart().collect_chunks() == ()
        assert len(await at.secrets()) == 3


@pytest.mark.slow
async def test_a_revision_written_first_by_another_process_is_busy() -> None:
    async with bench() as at:
        await at.after_restart().create(record(1, "small"))
        with pytest.raises(ReleaseBusyError, match="revision 1 was written by another process just now"):
            await at.store.create(large())
        assert len(await at.store.collect_chunks()) == 3
        assert [one.manifest for one in await at.read()] == ["small"]


@pytest.mark.slow
async def test_chunks_of_another_active_process_are_not_collected(autojump_clock: MockClock) -> None:
    async with bench() as at:
        for holder in (Holder("daemon-2", 9, US.lease), Holder("daemon-2"), NOBODY):
            for chunk in pack_release(large(holder=holder), NOW).chunks[:1]:
                named = {**find_object(chunk, "metadata"), "name": f"x-{holder.fence}-{holder.identity}-x"}
                await at.ways.client.create({**chunk, "metadata": named})
        store = at.after_restart()
        assert await store.collect_chunks() == ()
        await trio.sleep(601)
        assert sorted(await store.collect_chunks()) == ["default/x-0--x", "default/x-0-daemon-2-x"]
        later = at.after_restart(Holder("daemon-3", 10, US.lease))
        assert await later.collect_chunks() == ("default/x-9-daemon-2-x",)


@pytest.mark.slow
async def test_chunks_with_an_unreadable_head_are_not_collected() -> None:
    async with bench() as at:
        await at.store.create(large())
        await at.ways.client.merge_patch(await at.key("sh.helm.release.v1.web.v1"), {"data": {"release": "AAAA"}})
        assert await at.store.collect_chunks() == ()
        assert len(await at.secrets()) == 3


@pytest.mark.slow
async def test_chunks_being_written_are_not_collected() -> None:
    async with bench() as at:
        chunks, packed = ChunkStore(at.ways.client, Fencing(at.ways.client, US)), pack_release(large(), NOW).chunks
        async with chunks.writing(packed):
            await chunks.write(packed)
            async with chunks.writing(packed[:1]):
                assert await chunks.collect() == ()
            assert await chunks.collect() == ()
        assert len(await chunks.collect()) == 3


@pytest.mark.slow
async def test_a_chunk_collected_during_its_write_is_written_again() -> None:
    async with bench() as at:
        chunks, packed = ChunkStore(at.ways.broken, Fencing(at.ways.broken, US)), pack_release(large(), NOW).chunks
        await chunks.write(packed)
        deleting = trio.Event()
        at.ways.faulty.fault = lambda request: deleting if request.method == "DELETE" else None
        begun: list[str] = []

        async def write() -> None:
            async with chunks.writing(packed):
                begun.append("writing")
                await chunks.write(packed)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(chunks.collect)
            await wait_all_tasks_blocked(0.01)
            nursery.start_soon(write)
            await wait_all_tasks_blocked(0.01)
            assert begun == []
            deleting.set()
        assert len(await at.secrets()) == 3


@pytest.mark.slow
async def test_a_replaced_chunk_is_not_collected() -> None:
    async with bench() as at:
        (chunk, *_) = pack_release(large(), NOW).chunks
        await at.ways.client.create(chunk)
        key = await at.key(name_of(chunk))
        held = trio.Event()
        at.ways.faulty.fault = lambda request: held if request.method == "DELETE" else None
        collected: list[tuple[str, ...]] = []

        async def collect() -> None:
            collected.append(await at.store.collect_chunks())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect)
            await wait_all_tasks_blocked(0.01)
            await at.ways.client.delete(key)
            await at.ways.client.create(chunk)
            held.set()
        assert collected == [()]
        assert len(await at.secrets()) == 1
