"""Removals: which objects are deleted, which are retained and why, and how replaced objects are recognized."""

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.release_bench import bench, cluster
from tests.cluster.support.release_requests import config_map as manifest
from tests.cluster.support.release_requests import request
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError, ConflictError, NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.apply.removal import (
    Deletion,
    Pruner,
    PruneReport,
    delete_exactly,
    disown,
    judge_leaving,
    why_kept,
)
from wharfinger.cluster.objects.desired import desired_object, desired_table
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.tables.transaction import write
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

OWNER = Owner("web", "default")
OTHER = Owner("db", "default")
KEEP: JsonObject = {"helm.sh/resource-policy": "keep"}


def annotated(obj: JsonObject, annotations: JsonObject) -> JsonObject:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


CLAIM = ObjectKey(
    ResourceType("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True), "default", "a"
)


@pytest.mark.parametrize(
    ("which", "wanted", "live", "protected", "why"),
    [
        (key("a"), config_map("a"), owned(config_map("a"), OWNER), False, ""),
        (key("a"), config_map("a"), owned(config_map("a"), OTHER), False, "belongs to default/db"),
        (key("a"), config_map("a"), config_map("a"), False, "does not belong to a release any more"),
        (
            key("a"),
            annotated(config_map("a"), KEEP),
            owned(config_map("a"), OWNER),
            True,
            "helm.sh/resource-policy: keep",
        ),
        (
            key("a"),
            config_map("a"),
            owned(annotated(config_map("a"), KEEP), OWNER),
            True,
            "helm.sh/resource-policy: keep",
        ),
        (
            CLAIM,
            config_map("a"),
            owned(config_map("a"), OWNER),
            False,
            "PersistentVolumeClaim objects are only deleted on request",
        ),
        (CLAIM, config_map("a"), owned(config_map("a"), OWNER), True, ""),
    ],
)
def test_the_reason_for_retaining_an_object_is_given(
    which: ObjectKey, wanted: JsonObject, live: JsonObject, protected: bool, why: str
) -> None:
    assert why_kept(which, wanted, live, OWNER, delete_protected=protected) == why


async def test_rows_to_remove_are_checked_by_uid_and_owner(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        uids = {name: find_str(await client.create(owned(config_map(name), OWNER)), "metadata", "uid") for name in "ab"}
        await client.create(owned(config_map("theirs"), OTHER))
        rows = [
            desired_object(key(name), OWNER, config_map(name), DriftPolicy()) for name in ("a", "b", "theirs", "gone")
        ]
        decision = await judge_leaving(client, rows, staying=frozenset({uids["b"]}))
        assert decision.to_delete == {rows[0].identity: uids["a"]}
        assert decision.kept == {key("theirs"): "belongs to default/db"}
        assert decision.absent == {rows[3].identity}


class Held(httpx.AsyncBaseTransport):
    """A transport that holds the first DELETE request until ``go`` is set."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.held = trio.Event()
        self.go = trio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE" and not self.held.is_set():
            self.held.set()
            await self.go.wait()
        return await self._inner.handle_async_request(request)


async def test_an_object_replaced_during_its_deletion_stays(autojump_clock: MockClock) -> None:
    """Another client replaces the object before our DELETE request arrives. The UID precondition protects the new object."""
    async with open_control_plane(simulate=False) as control_plane:
        held = Held(control_plane.transport())
        async with open_client(Connection(LOCAL), transport=held) as client, trio.open_nursery() as nursery:
            uid = find_str(await client.create(config_map("a", v="1")), "metadata", "uid")

            async def replace() -> None:
                await held.held.wait()
                await client.delete(key("a"))
                await client.create(config_map("a", v="theirs"))
                held.go.set()

            nursery.start_soon(replace)
            assert await delete_exactly(client, key("a"), uid) is Deletion.NOTHING
            assert (await client.get(key("a")))["data"] == {"v": "theirs"}
            assert await delete_exactly(client, key("never"), uid) is Deletion.NOTHING


async def test_an_unrelated_conflict_is_not_success(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        uid = find_str(await client.create(config_map("a")), "metadata", "uid")
        transport.fault = lambda asked: httpx.Response(409, content=b"{}") if asked.method == "DELETE" else None
        with pytest.raises(ConflictError):
            await delete_exactly(client, key("a"), uid)


async def test_disowning_removes_the_label_from_our_objects_only(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await client.create(owned(config_map("a"), OWNER))
        await client.create(owned(config_map("theirs"), OTHER))
        for name in ("a", "theirs", "gone"):
            await disown(client, key(name), OWNER)
        label = ("metadata", "labels", "wharfinger.dev/release")
        assert find(await client.get(key("a")), *label) is None
        assert find(await client.get(key("theirs")), *label) == "db"
        before = await client.get(key("a"))
        await disown(client, key("a"), OWNER)
        assert await client.get(key("a")) == before


async def test_pruning_deletes_only_our_objects_of_complete_releases(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        table = desired_table()
        await apply(client, owned(annotated(config_map("kept"), KEEP), OWNER))
        for name, owner in (("row", OWNER), ("left", OWNER), ("half", OTHER)):
            await apply(client, owned(config_map(name), owner))
        await client.create(owned(config_map("copy"), OWNER))
        await client.create(config_map("free"))
        renamed = owned(config_map("lies"), OWNER)
        await apply(client, renamed | {"metadata": {**as_metadata(renamed), "labels": {"wharfinger.dev/release": "x"}}})
        with write(table) as transaction:
            transaction.insert(table, desired_object(key("row"), OWNER, config_map("row"), DriftPolicy()))
        reports: list[PruneReport] = []
        pruner = Pruner(client, {OWNER}.__contains__, "wharfinger", reports.append)
        assert await pruner.prune(table.snapshot()) == (key("left"),)
        assert await pruner.prune(desired_table().snapshot()) == ()
        assert reports == [PruneReport({OWNER: [key("left")]}, {}), PruneReport()]


@pytest.mark.parametrize("refused", ["GET", "DELETE"])
async def test_a_refused_kind_or_object_does_not_stop_the_rest_of_a_prune(
    refused: str, autojump_clock: MockClock
) -> None:
    async with cluster() as (client, transport):
        table = desired_table()
        with write(table) as transaction:
            for which in (GONE, SECRET, key("row")):
                transaction.insert(table, desired_object(which, OWNER, config_map("row"), DriftPolicy()))
        for name in ("one", "two"):
            await apply(client, owned(config_map(name), OWNER))
        await apply(client, owned({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, OWNER))

        def fault(asked: httpx.Request) -> httpx.Response | None:
            return (
                httpx.Response(403, content=b"{}") if asked.method == refused and "secrets" in asked.url.path else None
            )

        transport.fault = fault
        reports: list[PruneReport] = []
        with pytest.raises(ApiError, match="403"):
            await Pruner(client, {OWNER}.__contains__, "wharfinger", reports.append).prune(table.snapshot())
        [report] = reports
        assert sorted(each.name for each in report.gone[OWNER]) == ["one", "two"]
        failed = [str(each) for each, _ in report.failed.get(OWNER, {}).values()]
        assert failed == (["Secret default/s"] if refused == "DELETE" else [])
        for name in ("one", "two"):
            with pytest.raises(NotFoundError):
                await client.get(key(name))


async def test_an_interrupted_prune_reports_its_deletions(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        table = desired_table()
        with write(table) as transaction:
            for which in (key("row"), SECRET):
                transaction.insert(table, desired_object(which, OWNER, config_map("row"), DriftPolicy()))
        await apply(client, owned(config_map("left"), OWNER))
        last = [entry.row.key for entry in table.snapshot().entries()][-1]
        asked, never = list[str](), trio.Event()

        def fault(sent: httpx.Request) -> trio.Event | None:
            if sent.url.params.get("labelSelector") is None:
                return None
            asked.append(sent.url.path)
            return never if len(asked) > 1 else None

        if last == key("row"):
            await apply(client, owned({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "left"}}, OWNER))
        transport.fault = fault
        reports: list[PruneReport] = []
        with trio.move_on_after(5) as scope:
            await Pruner(client, {OWNER}.__contains__, "wharfinger", reports.append).prune(table.snapshot())
        assert scope.cancelled_caught
        [report] = reports
        assert report.cut_off
        assert [each.name for each in report.gone[OWNER]] == ["left"]


GONE = ObjectKey(ResourceType("example.test", "v1", "Widget", "widgets", namespaced=True), "default", "row")
SECRET = ObjectKey(ResourceType("", "v1", "Secret", "secrets", namespaced=True), "default", "row")


async def apply(client: ClusterClient, obj: JsonObject) -> None:
    metadata = as_metadata(obj)
    await client.apply({**obj, "metadata": {"namespace": "default", **metadata}}, field_manager="wharfinger")


def as_metadata(obj: JsonObject) -> JsonObject:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    return metadata


async def test_the_engine_prunes_objects_of_no_record_once_all_releases_are_known(autojump_clock: MockClock) -> None:
    """A failed attempt may write objects but no record. The prune finds these objects by their label."""
    async with bench() as at:
        at.engine.expect([Owner("late", "default")])
        await at.engine.upgrade(request(manifest("a")))
        await apply(at.client, owned(config_map("stray"), OWNER))
        at.engine.prune()
        await trio.sleep(7200)
        assert set(await at.config_maps()) == {"a", "stray"}
        await at.engine.restore("late", "default")
        await trio.sleep(10)
        assert set(await at.config_maps()) == {"a"}
