"""StatefulSets: the order of their Pods, ordinals, claims and revisions."""

import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import TEMPLATE, key, listed, look, open_cluster, settle, workload
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.control_plane.controllers.workloads.stateful_sets import ordinal
from wharfinger.formats.json.value import JsonObject, JsonValue, find

CLAIM: JsonObject = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
NEWER: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:2"}]}}


def db(annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    return workload("StatefulSet", "db", annotations=annotations, serviceName="db", **spec)


async def seen(client: ClusterClient) -> JsonValue:
    return find(await look(client, "apps/v1", "StatefulSet", "db"), "status")


async def pods(client: ClusterClient) -> list[tuple[JsonValue, JsonValue]]:
    """Return the name and the image of each Pod."""
    found = await listed(client, "v1", "Pod")
    return [(find(pod, "metadata", "name"), find(pod, "spec", "containers", 0, "image")) for pod in found]


async def test_pods_have_ordinals_and_claims(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(db(replicas=2, volumeClaimTemplates=[CLAIM]))
        await settle()
        assert (find(await seen(client), "readyReplicas"), find(await seen(client), "availableReplicas")) == (2, 2)
        first = await look(client, "v1", "Pod", "db-0")
        assert find(first, "spec", "hostname") == "db-0"
        assert find(first, "spec", "volumes", 0, "persistentVolumeClaim", "claimName") == "data-db-0"
        claims = await listed(client, "v1", "PersistentVolumeClaim")
        assert [(find(one, "metadata", "name"), find(one, "status", "phase")) for one in claims] == [
            ("data-db-0", "Bound"),
            ("data-db-1", "Bound"),
        ]
        await client.delete(await key(client, "apps/v1", "StatefulSet", "db"))
        await settle()
        assert await pods(client) == []
        assert len(await listed(client, "v1", "PersistentVolumeClaim")) == 2


async def test_pods_are_created_in_order(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(db({"wharfinger.dev/ready-after": "30"}, replicas=3))
        await trio.sleep(45)
        assert [name for name, _ in await pods(client)] == ["db-0", "db-1"]
        await trio.sleep(60)
        assert find(await seen(client), "readyReplicas") == 3


async def test_parallel_pod_management_creates_all_pods_at_once(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        never: JsonObject = {"wharfinger.dev/never-ready": "true"}
        await client.create(db(never, replicas=3, podManagementPolicy="Parallel"))
        await settle()
        assert len(await pods(client)) == 3


async def test_a_rollout_replaces_the_last_pod_first(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(db(replicas=3))
        await settle()
        where = await key(client, "apps/v1", "StatefulSet", "db")
        strategy: JsonObject = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await client.merge_patch(where, {"spec": {"template": NEWER, "updateStrategy": strategy}})
        await settle()
        assert [image for _, image in await pods(client)] == ["i:1", "i:1", "i:2"]
        status = await seen(client)
        assert find(status, "currentRevision") != find(status, "updateRevision")
        assert (find(status, "currentReplicas"), find(status, "updatedReplicas")) == (2, 1)
        await client.merge_patch(where, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await settle()
        assert [image for _, image in await pods(client)] == ["i:2", "i:2", "i:2"]
        status = await seen(client)
        assert find(status, "currentRevision") == find(status, "updateRevision")
        await client.merge_patch(where, {"spec": {"template": TEMPLATE}})
        await settle()
        revisions = await listed(client, "apps/v1", "ControllerRevision")
        assert sorted(str(one["revision"]) for one in revisions) == ["2", "3"]


async def test_scaling_down_deletes_the_last_pod_first(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(db(replicas=3))
        await settle()
        await client.merge_patch(await key(client, "apps/v1", "StatefulSet", "db"), {"spec": {"replicas": 1}})
        await settle()
        assert [name for name, _ in await pods(client)] == ["db-0"]


async def test_the_on_delete_strategy_replaces_only_deleted_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(db(replicas=2, updateStrategy={"type": "OnDelete"}))
        await settle()
        await client.merge_patch(await key(client, "apps/v1", "StatefulSet", "db"), {"spec": {"template": NEWER}})
        await settle()
        assert [image for _, image in await pods(client)] == ["i:1", "i:1"]
        await client.delete(await key(client, "v1", "Pod", "db-0"))
        await settle()
        assert [image for _, image in await pods(client)] == ["i:2", "i:1"]


def test_ordinals_are_read_from_pod_names() -> None:
    owner: JsonObject = {"metadata": {"name": "db"}}
    names = ("db-0", "db-12", "db-x", "other-1", "db")
    assert [ordinal(owner, {"metadata": {"name": name}}) for name in names] == [0, 12, None, None, None]
