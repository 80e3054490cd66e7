"""Writes: what is carried out, and what counts as done already."""

import pytest

from tests.cluster.control_plane.controllers.harness import config_map, key, look, obj, open_cluster
from wharfinger.cluster.client import Propagation
from wharfinger.cluster.control_plane.controllers.writes import (
    Create,
    Delete,
    Patch,
    compare_and_set,
    perform,
    status_write,
)
from wharfinger.cluster.errors import ConflictError, NotFoundError
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, find, find_str

PODS = ResourceType("", "v1", "Pod", "pods", namespaced=True)


async def test_writes_may_be_carried_out_twice() -> None:
    async with open_cluster(controllers=False) as client:
        made = await key(client, "v1", "ConfigMap", "a")
        for _ in range(2):
            await perform(client, Create(config_map("a")))
        for _ in range(2):
            await perform(client, Patch(made, {"data": {"x": "1"}}))
        found = await look(client, "v1", "ConfigMap", "a")
        assert find(found, "data") == {"x": "1"}
        for _ in range(2):
            await perform(client, Delete(made, find_str(found, "metadata", "uid"), Propagation.BACKGROUND))
        await perform(client, Patch(made, {"data": {"x": "1"}}))
        assert await look(client, "v1", "ConfigMap", "a") is None


async def test_what_is_not_done_is_raised() -> None:
    async with open_cluster(controllers=False) as client:
        with pytest.raises(NotFoundError):
            await perform(client, Create(config_map("a", namespace="absent")))
        seen = await client.create(config_map("a"))
        made = await key(client, "v1", "ConfigMap", "a")
        await perform(client, Patch(made, {"data": {"x": "1"}}))
        with pytest.raises(ConflictError):
            await perform(client, Patch(made, compare_and_set(seen, {"finalizers": ["a/b"]})))
        with pytest.raises(ConflictError):
            await perform(client, Delete(made, "another uid"))


async def test_a_namespace_that_is_being_deleted_takes_nothing_more() -> None:
    async with open_cluster(controllers=False) as client:
        await client.create(obj("v1", "Namespace", "x", ""))
        await client.delete(await key(client, "v1", "Namespace", "x"))
        await perform(client, Create(config_map("a", namespace="x")))
        assert await look(client, "v1", "ConfigMap", "a", "x") is None


def test_status_writes_say_only_what_differs() -> None:
    pod = ObjectKey(PODS, "n", "p")
    pod_object: JsonObject = {
        "metadata": {"annotations": {"a": "1"}},
        "status": {"phase": "Pending", "message": "m", "n": {"x": 1}},
    }
    wanted: JsonObject = {"phase": "Running", "n": {"x": 1}}
    assert status_write(pod, pod_object, wanted) == [
        Patch(pod, {"status": {"message": None, "phase": "Running"}}, "status")
    ]
    assert status_write(pod, pod_object, wanted, {"b": "2"}) == [
        Patch(pod, {"status": {"message": None, "phase": "Running"}, "metadata": {"annotations": {"b": "2"}}}, "status")
    ]
    assert status_write(pod, pod_object | {"status": wanted}, wanted, {"a": "1"}) == []
