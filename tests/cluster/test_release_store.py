"""The records in a cluster."""

from datetime import UTC, datetime

import pytest
from trio.testing import MockClock

from tests.cluster.clusters import memory_cluster
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.release import HOLDER_ANNOTATION, Release, ReleaseRecordError, ReleaseStatus, new_release
from wharfinger.cluster.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, find

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def release(
    revision: int, status: ReleaseStatus = ReleaseStatus.DEPLOYED, *, holder: str = "", name: str = "web"
) -> Release:
    return new_release(
        name=name,
        namespace="default",
        revision=revision,
        status=status,
        description=f"revision {revision}",
        chart={"name": "web"},
        values={},
        manifest="",
        hooks=[],
        now=NOW,
        holder=holder,
    )


def store_of(client: ClusterClient) -> ReleaseStore:
    return ReleaseStore(client, lambda: NOW)


async def secret(client: ClusterClient, revision: int) -> JsonObject:
    kind = await client.resource_type("v1", "Secret")
    return await client.get(ObjectKey(kind, "default", f"sh.helm.release.v1.web.v{revision}"))


async def test_history_is_of_one_release_oldest_first(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        for revision in (10, 9, 2):
            await store.create(release(revision))
        await store.create(release(1, name="other"))
        assert [one.release.revision for one in await store.history("web", "default")] == [2, 9, 10]
        assert await store.history("web", "kube-public") == []
        with pytest.raises(ReleaseBusyError, match="revision 10 was written by somebody else"):
            await store.create(release(10))


async def test_update_keeps_what_others_wrote_on_the_secret(autojump_clock: MockClock) -> None:
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


async def test_a_record_changed_meanwhile(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        stored = await store.create(release(1))
        newer = await store.update(stored, stored.release.with_status(ReleaseStatus.FAILED, "x"))
        with pytest.raises(ReleaseBusyError, match="was changed by somebody else meanwhile"):
            await store.update(stored, stored.release.with_status(ReleaseStatus.SUPERSEDED, "y"))
        await store.update(newer, newer.release.with_status(ReleaseStatus.SUPERSEDED, "y"))
        await store.remove(newer)
        await store.remove(newer)
        assert await store.history("web", "default") == []


async def test_tidy_supersedes_and_trims(autojump_clock: MockClock) -> None:
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


async def test_foreign_secrets_and_damaged_records(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        metadata: JsonObject = {"name": "x", "namespace": "default", "labels": {"owner": "helm", "name": "web"}}
        plain: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await client.create(plain)
        assert await store.history("web", "default") == []
        await client.create({**plain, "metadata": {**metadata, "name": "y"}, "type": "helm.sh/release.v1"})
        with pytest.raises(ReleaseRecordError, match="default/y"):
            await store.history("web", "default")


async def test_large_records_are_packed_off_the_loop() -> None:
    async with memory_cluster() as client:
        store = store_of(client)
        record = release(1)
        large = Release(
            {**record.document, "manifest": "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(110_000))}
        )
        await store.create(large)
        (stored,) = await store.history("web", "default")
        assert stored.release == large
