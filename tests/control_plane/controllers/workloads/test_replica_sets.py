"""The controllers of ReplicaSets and ReplicationControllers."""

import pytest
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import (
    TEMPLATE,
    key,
    listed,
    look,
    obj,
    open_cluster,
    pod,
    settle,
    workload,
)
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.control_plane.controllers.workloads.replica_sets import MOST_PODS
from wharfinger.formats.json.value import JsonObject, find


def one(kind: str, replicas: int) -> JsonObject:
    if kind == "ReplicaSet":
        return workload("ReplicaSet", "r", replicas=replicas)
    return obj("v1", kind, "r", spec={"selector": {"a": "b"}, "replicas": replicas, "template": TEMPLATE})


async def names(client: ClusterClient) -> list[str]:
    return [str(find(found, "metadata", "name")) for found in await listed(client, "v1", "Pod")]


@pytest.mark.parametrize(("kind", "version"), [("ReplicaSet", "apps/v1"), ("ReplicationController", "v1")])
async def test_a_replica_set_is_scaled_up_and_down(kind: str, version: str, autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(one(kind, 3))
        await settle()
        assert len(await names(client)) == 3
        where = await key(client, version, kind, "r")
        await client.merge_patch(where, {"spec": {"replicas": 1}})
        await settle()
        assert len(await names(client)) == 1
        found = await look(client, version, kind, "r")
        counts = ("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
        assert [find(found, "status", name) for name in counts] == [1, 1, 1, 1]
        reasons = {event["reason"] for event in await listed(client, "v1", "Event")}
        assert {"SuccessfulCreate", "SuccessfulDelete"} <= reasons


async def test_a_deleted_pod_is_replaced_and_an_orphan_is_adopted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(pod("mine"))
        await client.create(one("ReplicaSet", 2))
        await settle()
        before = await names(client)
        assert ("mine" in before, len(before)) == (True, 2)
        await client.delete(await key(client, "v1", "Pod", "mine"))
        await settle()
        after = await names(client)
        assert ("mine" in after, len(after)) == (False, 2)


async def test_a_replica_set_has_at_most_max_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(one("ReplicaSet", 0))
        assert MOST_PODS == 500
        await settle()
        assert find(await look(client, "apps/v1", "ReplicaSet", "r"), "status", "terminatingReplicas") == 0
