"""Every object operation that the hook contract permits, applied to a control plane in this process."""

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import NAMESPACE, config_map, key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import in_turn, status_reply
from tests.cluster.support.scripted_client import Server, client_of
from tests.hooks.support.patching import PATCHES, applied, data_of, exists, failed, meddled_cluster, patch_of
from tests.hooks.support.patience import PATIENT_FILTERS
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.hook_made import HookMark
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.hooks.running.object_operations import read_operations
from wharfinger.hooks.running.object_patches import ATTEMPTS, apply_operations
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.kube.resource import ObjectKey

# -- creations


def pod() -> JsonObject:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "prod"}}


async def test_create_fails_for_existing_or_invalid_objects() -> None:
    async with memory_cluster() as client:
        create: JsonObject = {"operation": "Create", "object": config_map("a", v="1")}
        assert await applied(client, create) == ()
        failure = await failed(client, {"operation": "Create", "object": config_map("a", v="2")})
        assert failure.message.startswith("Create object v1/ConfigMap/default/a: create ConfigMap default/a: ")
        assert "already exists" in str(failure)
        assert failure.transient
        assert await data_of(client) == {"v": "1"}
        failure = await failed(client, {"operation": "Create", "object": config_map("Bad.Name")})
        assert not failure.transient
        failure = await failed(client, {"operation": "Create", "object": {"kind": "ConfigMap"}})
        assert (failure.message[:23], failure.transient) == ("Create object /ConfigMa", False)


async def test_create_if_not_exists_leaves_an_existing_object_unchanged() -> None:
    async with memory_cluster() as client:
        for value in ("1", "2"):
            document: JsonObject = {"operation": "CreateIfNotExists", "object": config_map("a", v=value)}
            assert await applied(client, document) == ()
        assert await data_of(client) == {"v": "1"}
        nowhere: JsonObject = {"operation": "CreateIfNotExists", "object": config_map("a", namespace="nowhere")}
        assert (await failed(client, nowhere)).transient


async def test_conflict_other_than_already_exists_is_a_failure(autojump_clock: MockClock) -> None:
    conflict = status_reply(409, "Conflict", "the namespace is being deleted")
    for operation, attempts in (("CreateIfNotExists", 1), ("CreateOrUpdate", ATTEMPTS)):
        async with client_of(Server(in_turn(*[conflict] * attempts))) as (client, transport):
            failure = await failed(client, {"operation": operation, "object": pod()})
            assert "the namespace is being deleted" in failure.message
            assert failure.transient
            assert transport.paths.count("POST /api/v1/namespaces/prod/pods") == attempts


async def test_create_or_update_replaces_the_whole_object() -> None:
    async with memory_cluster() as client:
        for obj in (config_map("a", v="1", w="1"), config_map("a", v="2")):
            assert await applied(client, {"operation": "CreateOrUpdate", "object": obj}) == ()
        assert await data_of(client) == {"v": "2"}
        namespace: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "n", "labels": {"a": "b"}},
        }
        for _ in range(2):
            assert await applied(client, {"operation": "CreateOrUpdate", "object": namespace}) == ()
        assert find(await client.get(ObjectKey(NAMESPACE, "", "n")), "metadata", "labels", "a") == "b"


async def test_only_newly_created_objects_are_marked() -> None:
    mark = HookMark(Owner("web", "default"))
    async with memory_cluster() as client:
        await client.create(config_map("there"))
        made = ("Create", "new"), ("CreateIfNotExists", "fresh"), ("CreateOrUpdate", "first")
        there = ("CreateIfNotExists", "there"), ("CreateOrUpdate", "there")
        for operation, name in (*made, *there, ("CreateOrUpdate", "first")):
            document: JsonObject = {"operation": operation, "object": config_map(name, v="1")}
            assert await applied(client, document, mark=mark) == ()
        for _, name in made:
            assert mark.is_on(await client.get(key(name))), name
        assert not mark.is_on(await client.get(key("there")))


async def test_create_or_update_retries_after_a_conflict(autojump_clock: MockClock) -> None:
    async with meddled_cluster() as (ours, other, way):
        await other.create(config_map("a", v="1"))
        values = iter("23")

        async def write() -> None:
            value = next(values, None)
            if value is not None:
                await other.merge_patch(key("a"), {"data": {"v": value}})

        way.before["PUT"] = write
        assert await applied(ours, {"operation": "CreateOrUpdate", "object": config_map("a", v="ours")}) == ()
        assert way.methods == ["POST", "GET", "PUT"] * 3
        assert await data_of(other) == {"v": "ours"}


async def test_create_or_update_recreates_an_object_deleted_meanwhile(autojump_clock: MockClock) -> None:
    async with meddled_cluster() as (ours, other, way):
        await other.create(config_map("a", v="1"))

        async def delete() -> None:
            del way.before["GET"]
            await other.delete(key("a"))

        way.before["GET"] = delete
        assert await applied(ours, {"operation": "CreateOrUpdate", "object": config_map("a", v="ours")}) == ()
        assert way.methods == ["POST", "GET", "POST"]
        assert await data_of(other) == {"v": "ours"}


async def test_repeated_conflicts_are_a_transient_failure(autojump_clock: MockClock) -> None:
    async with meddled_cluster() as (ours, other, way):
        await other.create(config_map("a"))
        count = 0

        async def write() -> None:
            nonlocal count
            count += 1
            await other.merge_patch(key("a"), {"data": {"v": str(count)}})

        way.before["PUT"] = write
        started = trio.current_time()
        create: JsonObject = {"operation": "CreateOrUpdate", "object": config_map("a")}
        for document in (create, patch_of("JQPatch", jqFilter="touch")):
            count = 0
            failure = await failed(ours, document)
            assert failure.transient
            assert "Conflict" in failure.message
            assert count == ATTEMPTS
        # For both documents, the pauses are 10, 50 and 250 ms, each 5 % longer because of the jitter.
        assert trio.current_time() - started == pytest.approx(2 * 0.31 * 1.05)


# -- deletions


async def test_deletions_of_missing_objects_succeed() -> None:
    async with memory_cluster() as client:
        for operation in ("Delete", "DeleteInBackground", "DeleteNonCascading"):
            assert await applied(client, patch_of(operation)) == ()


@pytest.mark.parametrize(
    ("operation", "propagation"),
    [("Delete", "Foreground"), ("DeleteInBackground", "Background"), ("DeleteNonCascading", "Orphan")],
)
async def test_deletions_set_the_propagation_policy(
    operation: str, propagation: str, autojump_clock: MockClock
) -> None:
    async with meddled_cluster(simulate=True) as (ours, other, way):
        await other.create(config_map("a"))
        assert await applied(ours, patch_of(operation)) == ()
        assert way.policies == [propagation]
        await trio.sleep(10)
        assert not await exists(other, "a")


def held(name: str) -> JsonObject:
    obj = config_map(name)
    find_object(obj, "metadata")["finalizers"] = ["example.test/hold"]
    return obj


async def test_a_delete_waits_until_the_object_is_deleted(autojump_clock: MockClock) -> None:
    async with memory_cluster(simulate=True) as client:
        await client.create(held("a"))
        ended_at: list[float] = []

        async def delete() -> None:
            assert await applied(client, patch_of("Delete")) == ()
            ended_at.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(delete)
            await trio.sleep(15)
            assert ended_at == []
            released_at = trio.current_time()
            await client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
            await trio.sleep(1)
        assert released_at <= ended_at[0] < released_at + 1


async def test_a_delete_times_out(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await client.create(held("a"))
        started = trio.current_time()
        failure = await failed(client, patch_of("Delete"))
        assert trio.current_time() - started == pytest.approx(20, abs=0.01)
        assert failure.message.startswith(
            "Delete object /configmap/default/a: ConfigMap default/a still exists after 20 s: "
        )
        assert "example.test/hold" in failure.message
        assert failure.transient


async def test_background_deletion_ends_while_a_finalizer_remains() -> None:
    async with memory_cluster() as client:
        await client.create(held("a"))
        assert await applied(client, patch_of("DeleteInBackground")) == ()
        assert find_str(await client.get(key("a")), "metadata", "deletionTimestamp")


# -- patches


async def test_patches_change_only_the_named_fields() -> None:
    async with memory_cluster() as client:
        await client.create(config_map("a", v="1", w="1"))
        jq = patch_of("JQPatch", jqFilter="touch")
        merge = patch_of("MergePatch", mergePatch="data: {w: null}")
        json = patch_of("JSONPatch", jsonPatch=[{"op": "remove", "path": "/data/v"}])
        assert await applied(client, jq, merge, json) == ()
        assert await data_of(client) == {"touched": "yes"}


async def test_a_filter_that_changes_nothing_writes_nothing() -> None:
    async with meddled_cluster() as (ours, other, way):
        await other.create(config_map("a"))
        assert await applied(ours, patch_of("JQPatch", jqFilter="same")) == ()
        assert way.methods == ["GET"]


async def test_a_filter_is_applied_again_after_a_conflict(autojump_clock: MockClock) -> None:
    async with meddled_cluster() as (ours, other, way):
        await other.create(config_map("a", v="1"))

        async def write() -> None:
            del way.before["PUT"]
            await other.merge_patch(key("a"), {"data": {"v": "2"}})

        way.before["PUT"] = write
        assert await applied(ours, patch_of("JQPatch", jqFilter="touch")) == ()
        assert await data_of(other) == {"v": "2", "touched": "yes"}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("nothing", "must return an object for the given object, not null"),
        ("move", "must not change apiVersion, kind, namespace or name"),
        ("fail", "null cannot be parsed as a number"),
    ],
)
async def test_failing_filters_are_permanent_failures(program: str, why: str) -> None:
    async with memory_cluster() as client:
        await client.create(config_map("a", v="1"))
        failure = await failed(client, patch_of("JQPatch", jqFilter=program))
        assert failure.message.startswith("Filter object /configmap/default/a: ")
        assert why in failure.message
        assert not failure.transient
        assert await data_of(client) == {"v": "1"}


@pytest.mark.parametrize("operation", PATCHES)
async def test_patches_of_a_subresource_change_only_the_subresource(operation: str) -> None:
    async with memory_cluster() as client:
        await client.apply(widget_crd(), field_manager="test")
        meta: JsonObject = {"name": "one", "namespace": "default"}
        await client.create({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": meta, "spec": {"a": 1}})
        document: JsonObject = {"operation": operation, "kind": "widgets", **meta, **PATCHES[operation]}
        assert await applied(client, {**document, "subresource": "/status"}) == ()
        widget = ObjectKey(await client.resource_type("example.test/v1", "Widget"), "default", "one")
        obj = await client.get(widget)
        assert (obj["status"], obj["spec"]) == ({"done": True}, {"a": 1})
        assert await applied(client, {**document, "apiVersion": "example.test/v1"}) == ()
        assert (await client.get(widget))["spec"] == {"a": 2}


@pytest.mark.parametrize("operation", PATCHES)
async def test_patches_of_missing_objects_fail_unless_ignored(operation: str) -> None:
    async with memory_cluster() as client:
        document = patch_of(operation, **PATCHES[operation])
        failure = await failed(client, document)
        assert "/configmap/default/a: " in failure.message
        assert failure.transient
        assert await applied(client, {**document, "ignoreMissingObject": True}) == ()


async def test_inapplicable_json_patch_is_a_permanent_failure() -> None:
    async with memory_cluster() as client:
        await client.create(config_map("a", v="1"))
        failure = await failed(client, patch_of("JSONPatch", jsonPatch=[{"op": "remove", "path": "/data/x"}]))
        assert failure.message.startswith("Patch object /configmap/default/a: patch ConfigMap default/a: ")
        assert not failure.transient


# -- several operations


async def test_a_failed_operation_does_not_prevent_the_others() -> None:
    async with memory_cluster() as client:
        failures = await applied(
            client,
            patch_of("MergePatch", mergePatch={"data": {"v": "1"}}),
            {"operation": "Create", "object": config_map("a", v="1")},
            {**patch_of("Delete"), "kind": "gizmo"},
            patch_of("JSONPatch", jsonPatch=[{"op": "add", "path": "/data/w", "value": "2"}]),
        )
        assert [str(one).split(": ")[0] for one in failures] == [
            "Patch object /configmap/default/a",
            "Delete object /gizmo/default/a",
        ]
        assert [one.transient for one in failures] == [True, True]
        assert await data_of(client) == {"v": "1", "w": "2"}


async def test_a_namespaced_object_needs_a_namespace() -> None:
    async with memory_cluster() as client:
        failure = await failed(client, {"operation": "Delete", "kind": "cm", "name": "a"})
        assert (failure.message, failure.transient) == (
            "Delete object /cm//a: ConfigMap is namespaced: name a namespace",
            False,
        )


async def test_a_kind_defined_by_an_operation_is_known_to_the_next() -> None:
    async with memory_cluster() as client:
        widget: JsonObject = {
            "apiVersion": "example.test/v1",
            "kind": "Widget",
            "metadata": {"name": "one", "namespace": "default"},
        }
        failures = await applied(
            client,
            {"operation": "Create", "object": widget_crd()},
            {"operation": "CreateOrUpdate", "object": widget},
            {
                "operation": "MergePatch",
                "kind": "widget",
                "name": "one",
                "namespace": "default",
                "mergePatch": {"a": 1},
            },
        )
        assert failures == ()


async def test_jq_patches_run_with_the_real_jq() -> None:
    async with memory_cluster() as client, open_jq_pool(None, workers=1, limits=PATIENT_FILTERS) as filters:
        await client.create(config_map("a", v="1"))
        programs = (".data.v |= (tonumber + 1 | tostring)", ".data.v | tonumber", "empty", ". , .", ".data.v |= error")
        documents: list[JsonObject] = [patch_of("JQPatch", jqFilter=program) for program in programs]
        with trio.fail_after(60):
            failures = await apply_operations(client, filters, read_operations(documents, hook="h"))
        assert [one.message.removeprefix("Filter object /configmap/default/a: ")[:60] for one in failures] == [
            "the jq filter must return an object for the given object, no"
        ] * 3 + ["jq filter '.data.v |= error': the program failed on this obj"]
        assert [one.transient for one in failures] == [False] * 4
        assert await data_of(client) == {"v": "2"}
