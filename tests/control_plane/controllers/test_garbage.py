"""Garbage collection in a cluster: background and foreground deletion, orphans, missing owners, and invalid owners."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import (
    config_map,
    key,
    listed,
    look,
    obj,
    open_cluster,
    owner_of,
    settle,
)
from wharfinger.cluster.api.client import ClusterClient, Propagation
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list


async def there(client: ClusterClient, *names: str) -> list[str]:
    return [name for name in names if await look(client, "v1", "ConfigMap", name) is not None]


async def test_dependents_are_deleted_with_their_last_owner(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        one, two = await client.create(config_map("one")), await client.create(config_map("two"))
        both = await client.create(config_map("both", one, two))
        await client.create(config_map("child", both))
        await client.delete(await key(client, "v1", "ConfigMap", "one"))
        await settle()
        left = await look(client, "v1", "ConfigMap", "both")
        assert find(left, "metadata", "ownerReferences") == [owner_of(two)]
        await client.delete(await key(client, "v1", "ConfigMap", "two"))
        await settle()
        assert await there(client, "one", "two", "both", "child") == []


async def test_orphaned_dependents_are_not_deleted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        owner = await client.create(config_map("owner"))
        await client.create(config_map("child", owner))
        await client.delete(await key(client, "v1", "ConfigMap", "owner"), propagation=Propagation.ORPHAN)
        await settle()
        assert await there(client, "owner", "child") == ["child"]
        assert not find_list(await look(client, "v1", "ConfigMap", "child"), "metadata", "ownerReferences")


async def test_an_orphaning_owner_without_dependents_is_deleted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(config_map("owner"))
        await client.delete(await key(client, "v1", "ConfigMap", "owner"), propagation=Propagation.ORPHAN)
        await settle()
        assert await there(client, "owner") == []


def blocking(name: str, owner: JsonObject, *finalizers: str) -> JsonObject:
    """Return a dependent object that blocks the foreground deletion of its owner."""
    references: list[JsonValue] = [owner_of(owner, blocks=True)]
    return config_map(name, finalizers=list[JsonValue](finalizers), ownerReferences=references)


async def test_an_owner_deleted_in_the_foreground_waits_for_blocking_dependents(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        owner = await client.create(config_map("owner"))
        child = await client.create(blocking("child", owner, "example.com/hold"))
        await client.create(blocking("grandchild", child))
        await client.create(config_map("loose", owner))
        await settle()
        await client.delete(await key(client, "v1", "ConfigMap", "owner"), propagation=Propagation.FOREGROUND)
        await settle()
        assert await there(client, "owner", "child", "grandchild", "loose") == ["owner", "child"]
        held = await key(client, "v1", "ConfigMap", "child")
        await client.merge_patch(held, {"metadata": {"finalizers": None}})
        await settle()
        assert await there(client, "owner", "child") == []


async def test_a_cycle_of_owners_is_deleted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        one = await client.create(config_map("one"))
        two = await client.create(blocking("two", one))
        three = await client.create(blocking("three", two))
        first = await key(client, "v1", "ConfigMap", "one")
        references: list[JsonValue] = [owner_of(three, blocks=True)]
        await client.merge_patch(first, {"metadata": {"ownerReferences": references}})
        await settle()
        await client.delete(first, propagation=Propagation.FOREGROUND)
        await settle()
        assert await there(client, "one", "two", "three") == []


async def test_an_owner_that_never_existed_counts_as_missing(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        never: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never", "uid": "11111111"}}
        await client.create(config_map("child", never))
        await settle()
        assert await there(client, "child") == []


async def test_an_object_with_another_uid_is_not_the_owner(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(config_map("owner"))
        former: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "uid": "11111111"}}
        await client.create(config_map("child", former))
        await settle()
        assert await there(client, "owner", "child") == ["owner"]


async def test_owners_of_unknown_kinds_do_not_count_as_missing(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        stranger: JsonObject = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "uid": "1"}}
        await client.create(config_map("child", stranger))
        elsewhere: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "2"}}
        await client.create(obj("v1", "Node", "node", "", metadata={"ownerReferences": [owner_of(elsewhere)]}))
        await settle(5)
        assert await there(client, "child") == ["child"]
        assert await look(client, "v1", "Node", "node") is not None


async def test_dependents_of_a_cluster_scoped_owner_are_deleted_with_the_owner(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        node = await client.create(obj("v1", "Node", "node", ""))
        await client.create(config_map("child", node))
        await settle()
        assert await there(client, "child") == ["child"]
        await client.delete(await key(client, "v1", "Node", "node"))
        await settle()
        assert await there(client, "child") == []


async def test_an_owner_in_another_namespace_is_ignored(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Namespace", "x", ""))
        owner = await client.create(config_map("owner", namespace="x"))
        await client.create(config_map("child", owner))
        await settle()
        assert await there(client, "child") == []
        event = next(one for one in await listed(client, "v1", "Event") if one["reason"] == "OwnerRefInvalidNamespace")
        assert str(event["message"]).endswith('does not exist in namespace "default"')
