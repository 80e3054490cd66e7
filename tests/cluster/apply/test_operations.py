"""Single attempts to apply or delete the object of a row in the table of wanted objects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.release_bench import CLAIM, Faulty, cluster
from tests.cluster.support.release_requests import objects_of
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.apply.operations import FRESH_S, ApplyOperations, BeingDeletedError, InterruptedApplyError
from wharfinger.cluster.apply.writer import ObjectWriter
from wharfinger.cluster.fields.conflicts import FieldConflictError
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, desired_object, desired_table
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy, IgnoreRule
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner, owned
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey

OWNER = Owner("web", "default")
MARKS: JsonObject = {"meta.helm.sh/release-name": None, "meta.helm.sh/release-namespace": None}


class Bench:
    """The :class:`ApplyOperations` of a new cluster in memory, and the server's answers that they have reported."""

    def __init__(self, client: ClusterClient, transport: Faulty) -> None:
        self.client = client
        self.transport = transport
        self.applied = AppliedObjects("wharfinger")
        self.answers: list[tuple[ObjectKey, str]] = []
        self.resting: set[Owner] = set()
        self.operations = ApplyOperations(
            client,
            ObjectWriter(client, "wharfinger"),
            self.applied,
            self._answered,
            {OWNER}.__contains__,
            self.resting.__contains__,
        )

    def _answered(self, which: ObjectKey, obj: JsonObject) -> None:
        self.answers.append((which, find_str(obj, "metadata", "resourceVersion")))

    async def update(self, row: DesiredObject, number: int = 1, *, refreshing: bool = False) -> None:
        """Make one attempt to apply the object of a row."""
        await self.operations.update(Attempt(row.identity, row, 1, number, refreshing))

    async def delete(self, row: DesiredObject) -> None:
        """Make one attempt to delete the object of a removed row."""
        await self.operations.delete(Attempt(row.identity, row, 1, 1, deleting=True))

    async def there(self) -> bool:
        try:
            await self.client.get(key("a"))
        except NotFoundError:
            return False
        return True


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with cluster() as (client, transport):
        yield Bench(client, transport)


def row(drift: DriftPolicy | None = None, **data: str) -> DesiredObject:
    return desired_object(key("a"), OWNER, config_map("a") | {"data": {**data}}, drift or DriftPolicy())


async def test_an_object_seen_just_before_is_not_read_again(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.operations.saw(row().identity, None)
        await at.update(row(v="1"))
        assert at.transport.requests == ["PATCH a"]
        applied = at.applied.get(row().identity)
        assert applied is not None
        assert at.answers == [(key("a"), applied.resource_version)]
        await at.update(row(v="2"))
        assert at.transport.requests[1:] == ["GET a", "PATCH a"]


@pytest.mark.parametrize("why", ["old", "again", "refreshing"])
async def test_an_object_is_read_if_the_seen_state_may_be_outdated(why: str, autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.operations.saw(row().identity, None)
        if why == "old":
            await trio.sleep(FRESH_S + 1)
        await at.update(row(v="1"), 2 if why == "again" else 1, refreshing=why == "refreshing")
        assert at.transport.requests == ["GET a", "PATCH a"]


async def test_a_known_object_is_read_only_after_a_conflict(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        at.transport.requests.clear()
        at.operations.knows(row().identity)
        await at.update(row(v="2"))
        assert at.transport.requests == ["PATCH a"]
        theirs: JsonObject = {**config_map("a", v="9"), "metadata": {"name": "a", "namespace": "default"}}
        at.operations.knows(row().identity)
        await at.client.apply(theirs, field_manager="ann", force=True)
        at.transport.requests.clear()
        ignoring = DriftPolicy(ignore=(IgnoreRule(("/data/v",)),))
        await at.update(row(ignoring, v="3", w="1"))
        assert at.transport.requests == ["PATCH a", "GET a", "PATCH a"]
        assert (await at.client.get(key("a")))["data"] == {"v": "9", "w": "1"}


async def test_a_known_object_that_now_belongs_to_another_release_is_not_changed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        await at.client.delete(key("a"))
        await at.client.create(owned(config_map("a"), Owner("db", "default")))
        at.operations.knows(row().identity)
        with pytest.raises(ForeignObjectError, match="belongs to the release default/db"):
            await at.update(row(v="2"))


async def test_a_known_object_recreated_by_a_user_is_not_adopted(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        at.operations.knows(row().identity)
        await at.client.delete(key("a"))
        await at.client.create(config_map("a", other="1"))
        with pytest.raises(ForeignObjectError, match="not part of any release"):
            await at.update(row(v="2"))
        assert (await at.client.get(key("a")))["data"] == {"other": "1"}


async def test_an_object_of_another_release_is_not_changed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.client.create(owned(config_map("a"), Owner("db", "default")))
        with pytest.raises(ForeignObjectError, match="belongs to the release default/db"):
            await at.update(row(v="1"))


async def test_removed_ownership_annotations_of_our_object_are_restored(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        await at.client.merge_patch(key("a"), {"metadata": {"annotations": MARKS}})
        await at.update(row(v="1"), refreshing=True)
        assert find_str(await at.client.get(key("a")), "metadata", "annotations", "meta.helm.sh/release-name") == "web"
        await at.client.delete(key("a"))
        await at.client.create(config_map("a"))
        with pytest.raises(ForeignObjectError, match="not part of any release"):
            await at.update(row(v="1"), refreshing=True)


async def test_an_object_being_deleted_is_not_written(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": ["example.test/hold"]}})
        live = await at.client.get(key("a"))
        await at.client.delete(key("a"))
        with pytest.raises(BeingDeletedError, match=r"waits for finalizers: example\.test/hold") as caught:
            await at.update(row(v="2"))
        assert (caught.value.transient, caught.value.retry_after_s) == (True, 1.0)
        at.operations.saw(row().identity, live)
        with pytest.raises(BeingDeletedError):
            await at.update(row(v="2"))


async def test_fields_formerly_ours_are_taken_back_and_others_conflict(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(w="1"))
        theirs: JsonObject = {**config_map("a", v="9"), "metadata": {"name": "a", "namespace": "default"}}
        await at.client.apply(theirs, field_manager="ann", force=True)
        with pytest.raises(FieldConflictError):
            await at.update(row(v="2", w="1"))
        at.operations.replaces(row().identity, row(v="1").body)
        await at.update(row(v="2", w="1"), 2)
        assert (await at.client.get(key("a")))["data"] == {"v": "2", "w": "1"}
        await at.client.apply(theirs, field_manager="ann", force=True)
        await at.update(row(v="2", w="1"), refreshing=True)
        assert (await at.client.get(key("a")))["data"] == {"v": "2", "w": "1"}


async def test_fields_left_to_others_are_listed_until_they_are_ours(autojump_clock: MockClock) -> None:
    async with bench() as at:
        warn = DriftPolicy(DriftMode.WARN)
        await at.update(row(v="1"))
        theirs: JsonObject = {**config_map("a", v="9"), "metadata": {"name": "a", "namespace": "default"}}
        await at.client.apply(theirs, field_manager="ann", force=True)
        at.operations.replaces(row().identity, row(v="1").body)
        await at.update(row(warn, v="2"))
        assert [one.field for one in at.operations.left(row().identity)] == [".data.v"]
        await at.client.apply({**theirs, "data": {"z": "1"}}, field_manager="ann")
        await at.update(row(warn, v="2"))
        assert at.operations.left(row().identity) == ()


async def test_an_interrupted_update_ends_at_once(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.transport.fault = lambda asked: trio.Event() if asked.method == "PATCH" else None

        async def update() -> None:
            with pytest.raises(InterruptedApplyError):
                await at.update(row(v="1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(update)
            await wait_all_tasks_blocked()
            at.operations.interrupt(row().identity)
        at.operations.interrupt(row().identity)


async def test_deletion_leaves_orphaned_and_retained_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        await at.delete(row(v="1").as_orphan())
        assert await at.there()
        assert at.applied.get(row().identity) is None
        await at.update(row(v="1"))
        kept = desired_object(key("a"), OWNER, owned(config_map("a"), OWNER) | {"metadata": KEPT}, DriftPolicy())
        await at.delete(kept)
        assert await at.there()
        await at.delete(row(v="1"))
        assert not await at.there()
        await at.delete(row(v="1"))


KEPT: JsonObject = {"name": "a", "namespace": "default", "annotations": {"helm.sh/resource-policy": "keep"}}


async def test_a_planned_deletion_uses_its_uid_without_another_read(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.client.create(owned(config_map("a", v="1"), OWNER))
        planned = at.operations.plan_delete(row().identity, "another-uid")
        await at.delete(row(v="1"))
        assert await at.there()
        assert planned.deleted == ""
        await at.update(row(v="1"))
        uid = find_str(await at.client.get(key("a")), "metadata", "uid")
        planned = at.operations.plan_delete(row().identity, uid)
        at.transport.requests.clear()
        await at.delete(row(v="1"))
        assert at.transport.requests == ["DELETE a"]
        assert planned.deleted == uid


@pytest.mark.parametrize("judged", ["", "another-uid"])
async def test_an_object_applied_after_the_plan_is_deleted_by_its_new_uid(
    judged: str, autojump_clock: MockClock
) -> None:
    async with bench() as at:
        planned = at.operations.plan_delete(row().identity, judged)
        await at.update(row(v="1"))
        uid = find_str(await at.client.get(key("a")), "metadata", "uid")
        await at.delete(row(v="1"))
        assert not await at.there()
        assert planned.deleted == uid


async def test_a_protected_object_is_deleted_only_if_the_latest_plan_allows_it(autojump_clock: MockClock) -> None:
    async with bench() as at:
        (claim,) = objects_of(CLAIM)
        resource = await at.client.resource_type("v1", "PersistentVolumeClaim")
        claimed = desired_object(ObjectKey(resource, "default", "data"), OWNER, owned(claim, OWNER), DriftPolicy())
        await at.update(claimed)
        uid = find_str(await at.client.get(claimed.key), "metadata", "uid")
        planned = at.operations.plan_delete(claimed.identity, "", delete_protected=True)
        at.operations.interrupt(claimed.identity)  # the object stays, so the plan is discarded
        await at.delete(claimed)
        assert planned.deleted == ""
        planned = at.operations.plan_delete(claimed.identity, "", delete_protected=True)
        await at.delete(claimed)
        assert planned.deleted == uid


async def test_pruning_leaves_objects_without_the_label(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        await at.operations.prune(desired_table().snapshot())
        assert await at.there()


async def test_a_correction_requested_before_its_release_was_suspended_is_not_made(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.update(row(v="1"))
        at.resting.add(OWNER)
        at.transport.requests.clear()
        await at.update(row(v="1"), refreshing=True)
        assert at.transport.requests == []
        await at.update(row(v="2"))
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}


async def test_state_prepared_for_the_next_row_outlives_the_deletion_of_the_last(autojump_clock: MockClock) -> None:
    """A row may be inserted again before its object is deleted. Fields that the former row applied then still count as ours."""
    async with bench() as at:
        await at.update(row(v="1"))
        await at.client.apply(config_map("a", v="9"), field_manager="ann", force=True)
        at.operations.replaces(row().identity, row(v="1").body)
        await at.delete(row(v="1").as_orphan())
        await at.update(row(v="2"))
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}
        at.operations.replaces(row().identity, row(v="2").body)
        at.operations.interrupt(row().identity)  # the row is dropped again
        await at.client.apply(config_map("a", v="9"), field_manager="ann", force=True)
        with pytest.raises(FieldConflictError):
            await at.update(row(v="3"))
