"""DaemonSets: one Pod per node. Without nodes there is no Pod, unless the DaemonSet has simulation annotations."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import key, listed, look, obj, open_cluster, settle, workload
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, JsonValue, find

NEWER: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:2"}]}}


async def counts(client: ClusterClient, name: str = "agent") -> tuple[JsonValue, JsonValue]:
    """Return the number of desired Pods and the number of ready Pods in the status of a DaemonSet."""
    status = find(await look(client, "apps/v1", "DaemonSet", name), "status")
    return find(status, "desiredNumberScheduled"), find(status, "numberReady")


async def test_a_daemon_set_without_nodes_has_no_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("DaemonSet", "agent"))
        never: JsonObject = {"wharfinger.dev/never-ready": "true"}
        await client.create(workload("DaemonSet", "stuck", annotations=never))
        await client.create(workload("DaemonSet", "slow", annotations={"wharfinger.dev/ready-after": "2"}))
        await settle()
        assert [await counts(client, name) for name in ("agent", "stuck", "slow")] == [(0, 0), (1, 0), (1, 1)]


async def test_each_matching_node_gets_one_pod(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        for name in ("one", "two"):
            await client.create(obj("v1", "Node", name, "", metadata={"labels": {"disk": name}}))
        await client.create(workload("DaemonSet", "agent"))
        await settle()
        assert await counts(client) == (2, 2)
        pods = await listed(client, "v1", "Pod")
        assert {find(pod, "spec", "nodeName") for pod in pods} == {"one", "two"}
        await client.delete(await key(client, "v1", "Node", "two"))
        await settle()
        assert await counts(client) == (1, 1)
        where = await key(client, "apps/v1", "DaemonSet", "agent")
        await client.merge_patch(where, {"spec": {"template": {"spec": {"nodeSelector": {"disk": "two"}}}}})
        await settle()
        assert await counts(client) == (0, 0)


async def test_a_changed_template_replaces_all_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        for name in ("one", "two"):
            await client.create(obj("v1", "Node", name, ""))
        await client.create(workload("DaemonSet", "agent"))
        await settle()
        await client.merge_patch(await key(client, "apps/v1", "DaemonSet", "agent"), {"spec": {"template": NEWER}})
        await settle()
        images = [find(pod, "spec", "containers", 0, "image") for pod in await listed(client, "v1", "Pod")]
        assert images == ["i:2", "i:2"]
        found = await look(client, "apps/v1", "DaemonSet", "agent")
        assert find(found, "status", "updatedNumberScheduled") == 2
        assert len(await listed(client, "apps/v1", "ControllerRevision")) == 2
