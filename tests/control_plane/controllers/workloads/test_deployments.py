"""Deployments and their ReplicaSets: revisions, rollouts, scaling, pauses and history."""

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import (
    TEMPLATE,
    conditions_of,
    key,
    listed,
    look,
    obj,
    open_cluster,
    owner_of,
    settle,
    workload,
)
from wharfinger.cluster.api.client import ClusterClient, Propagation
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int

NEVER: JsonObject = {"wharfinger.dev/never-ready": "true"}
NEWER: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:2"}]}}


async def web(client: ClusterClient, **patch: JsonValue) -> JsonObject:
    """Return the Deployment ``web``. If a patch is given, patch it first, and wait for the controllers."""
    where = await key(client, "apps/v1", "Deployment", "web")
    if patch:
        await client.merge_patch(where, patch)
        await settle()
    return await client.get(where)


async def sets(client: ClusterClient) -> list[tuple[int, str]]:
    """Return the replicas and the revision of each ReplicaSet, sorted by revision."""
    found = await listed(client, "apps/v1", "ReplicaSet")
    pairs = [
        (
            find_int(one, "spec", "replicas"),
            str(find(one, "metadata", "annotations", "deployment.kubernetes.io/revision")),
        )
        for one in found
    ]
    return sorted(pairs, key=lambda pair: pair[1])


async def test_pods_are_created_and_counted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=3))
        await settle()
        found = await web(client)
        counts = {name: find(found, "status", name) for name in ("replicas", "updatedReplicas", "availableReplicas")}
        assert set(counts.values()) == {3}
        assert conditions_of(found) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }
        pods = await listed(client, "v1", "Pod")
        assert [find(pod, "status", "phase") for pod in pods] == ["Running"] * 3
        assert [str(find(pod, "metadata", "name")).startswith("web-") for pod in pods] == [True] * 3
        reasons = {one["reason"] for one in await listed(client, "v1", "Event")}
        assert {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"} <= reasons


async def test_a_rollback_reuses_the_replica_set_of_the_old_template(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=4))
        await settle()
        await web(client, spec={"template": NEWER})
        assert await sets(client) == [(0, "1"), (4, "2")]
        await web(client, spec={"template": TEMPLATE})
        assert await sets(client) == [(0, "2"), (4, "3")]
        back = next(one for one in await listed(client, "apps/v1", "ReplicaSet") if find(one, "spec", "replicas") == 4)
        assert find(back, "metadata", "annotations", "deployment.kubernetes.io/revision-history") == "1"


async def test_a_stuck_rollout_leaves_the_deployment_available(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=4, progressDeadlineSeconds=60))
        await settle()
        found = await web(client, metadata={"annotations": NEVER}, spec={"template": NEWER})
        assert await sets(client) == [(3, "1"), (2, "2")]
        assert find(found, "status", "availableReplicas") == 3
        assert conditions_of(found)["Progressing"] == ("True", "ReplicaSetUpdated")
        await settle(60)
        found = await web(client)
        assert conditions_of(found)["Progressing"] == ("False", "ProgressDeadlineExceeded")
        assert conditions_of(found)["Available"] == ("True", "MinimumReplicasAvailable")


async def test_a_new_scale_during_a_rollout_is_distributed_proportionally(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=4))
        await settle()
        await web(client, metadata={"annotations": NEVER}, spec={"template": NEWER})
        await web(client, spec={"replicas": 8})
        assert sum(replicas for replicas, _ in await sets(client)) == 10


async def test_recreate_deletes_old_pods_before_creating_new_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
        await settle()
        await web(client, metadata={"annotations": NEVER}, spec={"template": NEWER})
        assert await sets(client) == [(0, "1"), (2, "2")]


async def test_a_pause_stops_a_rollout_but_not_scaling(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=1))
        await settle()
        found = await web(client, spec={"paused": True, "replicas": 3, "template": NEWER})
        assert await sets(client) == [(3, "1")]
        assert conditions_of(found)["Progressing"] == ("Unknown", "DeploymentPaused")
        found = await web(client, spec={"paused": False})
        assert await sets(client) == [(0, "1"), (3, "2")]
        assert conditions_of(found)["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_a_deployment_that_is_created_paused_has_a_stable_status(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=0, paused=True))
        await settle()
        found = await web(client)
        assert conditions_of(found)["Progressing"] == ("Unknown", "DeploymentPaused")
        await settle()
        assert find(await web(client), "metadata", "resourceVersion") == find(found, "metadata", "resourceVersion")


async def test_the_revision_history_is_limited(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", revisionHistoryLimit=1))
        await settle()
        for number in range(3):
            labels: JsonObject = {"labels": {"a": "b", "number": str(number)}}
            await web(client, spec={"template": {"metadata": labels}})
        assert await sets(client) == [(0, "3"), (1, "4")]


async def test_delays_count_from_the_creation_of_the_pod(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", annotations={"wharfinger.dev/ready-after": "30"}))
        await trio.sleep(29)
        assert conditions_of(await web(client))["Available"][0] == "False"
        await settle(1)
        assert conditions_of(await web(client))["Available"][0] == "True"


async def test_a_pod_is_available_after_min_ready_seconds(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", minReadySeconds=20))
        await settle()
        found = await web(client)
        assert (find(found, "status", "readyReplicas"), find(found, "status", "availableReplicas")) == (1, None)
        await settle(20)
        assert find(await web(client), "status", "availableReplicas") == 1


@pytest.mark.parametrize("propagation", [Propagation.BACKGROUND, Propagation.FOREGROUND])
async def test_replica_sets_and_pods_are_deleted_with_their_deployment(
    propagation: Propagation, autojump_clock: MockClock
) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=2))
        await settle()
        await client.delete(await key(client, "apps/v1", "Deployment", "web"), propagation=propagation)
        await settle()
        assert await look(client, "apps/v1", "Deployment", "web") is None
        assert not await listed(client, "apps/v1", "ReplicaSet")
        assert not await listed(client, "v1", "Pod")


async def test_orphaned_replica_sets_are_adopted_by_a_new_deployment(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web"))
        await settle()
        await client.delete(await key(client, "apps/v1", "Deployment", "web"), propagation=Propagation.ORPHAN)
        await settle()
        before = {find(pod, "metadata", "uid") for pod in await listed(client, "v1", "Pod")}
        made = await client.create(workload("Deployment", "web"))
        await settle()
        (one,) = await listed(client, "apps/v1", "ReplicaSet")
        assert find(one, "metadata", "ownerReferences", 0, "uid") == owner_of(made)["uid"]
        assert {find(pod, "metadata", "uid") for pod in await listed(client, "v1", "Pod")} == before


async def test_a_replica_set_name_in_use_counts_as_a_collision(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=0))
        await settle()
        (one,) = await listed(client, "apps/v1", "ReplicaSet")
        name = str(find(one, "metadata", "name"))
        await client.delete(await key(client, "apps/v1", "Deployment", "web"))
        await settle()
        labels: JsonObject = {"x": "y"}
        other: JsonObject = {"selector": {"matchLabels": labels}, "replicas": 0}
        other["template"] = {**TEMPLATE, "metadata": {"labels": labels}}
        await client.create(obj("apps/v1", "ReplicaSet", name, spec=other))
        await client.create(workload("Deployment", "web", replicas=0))
        await settle()
        assert find(await web(client), "status", "collisionCount") == 1
        assert len(await listed(client, "apps/v1", "ReplicaSet")) == 2


async def test_pods_refused_by_a_quota_are_reported(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "ResourceQuota", "q", spec={"hard": {"pods": "1"}}))
        await settle()
        await client.create(workload("Deployment", "web", replicas=2))
        await settle()
        found = await web(client)
        assert conditions_of(found)["ReplicaFailure"] == ("True", "FailedCreate")
        assert find(found, "status", "replicas") == 1
        quota = await key(client, "v1", "ResourceQuota", "q")
        await client.merge_patch(quota, {"spec": {"hard": {"pods": "5"}}})
        await settle(60)
        assert "ReplicaFailure" not in conditions_of(await web(client))
