"""Workloads, jobs and claims in a cluster: delays, updates, removal."""

import trio
from trio.testing import MockClock

from tests.cluster.control_plane.controllers.harness import key, look, obj, open_cluster, settle, workload
from wharfinger.cluster.client import ClusterClient
from wharfinger.formats.json_value import JsonObject, JsonValue, find, find_list


async def available(client: ClusterClient, name: str) -> JsonValue:
    found = await look(client, "apps/v1", "Deployment", name)
    return next(
        (find(one, "status") for one in find_list(found, "status", "conditions") if find(one, "type") == "Available"),
        None,
    )


async def test_a_deployment_becomes_available(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", replicas=3))
        await settle()
        web = await look(client, "apps/v1", "Deployment", "web")
        assert find(web, "status", "availableReplicas") == 3
        assert find(web, "status", "observedGeneration") == find(web, "metadata", "generation") == 1
        assert await available(client, "web") == "True"


async def test_delays_and_never(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "slow", annotations={"wharfinger.dev/ready-after": "30"}))
        never: JsonObject = {"wharfinger.dev/never-ready": "true"}
        await client.create(workload("Deployment", "never", annotations=never, progressDeadlineSeconds=60))
        await trio.sleep(29)
        assert await available(client, "slow") == "False"
        await settle(1)
        assert (await available(client, "slow"), await available(client, "never")) == ("True", "False")
        await settle(60)
        stuck = await look(client, "apps/v1", "Deployment", "never")
        reasons = [find(one, "reason") for one in find_list(stuck, "status", "conditions")]
        assert reasons == ["MinimumReplicasUnavailable", "ProgressDeadlineExceeded"]


async def test_a_new_template_and_a_scale(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web"))
        await settle()
        web = await key(client, "apps/v1", "Deployment", "web")
        await client.merge_patch(web, {"spec": {"replicas": 4, "template": {"metadata": {"labels": {"new": "label"}}}}})
        await settle()
        found = await client.get(web)
        assert find(found, "metadata", "annotations", "deployment.kubernetes.io/revision") == "2"
        assert find(found, "status", "updatedReplicas") == find(found, "status", "replicas") == 4
        sets = (await client.list(await client.resource_type("apps/v1", "ReplicaSet"))).items
        assert sorted(str(find(one, "spec", "replicas")) for one in sets) == ["0", "4"]


async def test_replica_sets_go_with_their_deployment(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web"))
        await settle()
        await client.delete(await key(client, "apps/v1", "Deployment", "web"))
        await settle()
        assert not (await client.list(await client.resource_type("apps/v1", "ReplicaSet"))).items


async def test_stateful_sets_and_their_claims(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        spec: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claims: list[JsonValue] = [{"metadata": {"name": "data"}, "spec": spec}]
        await client.create(workload("StatefulSet", "db", serviceName="db", replicas=2, volumeClaimTemplates=claims))
        await client.create(workload("DaemonSet", "agent"))
        await settle()
        assert find(await look(client, "apps/v1", "StatefulSet", "db"), "status", "readyReplicas") == 2
        assert find(await look(client, "apps/v1", "DaemonSet", "agent"), "status", "numberReady") == 1
        for name in ("data-db-0", "data-db-1"):
            claim = await look(client, "v1", "PersistentVolumeClaim", name)
            assert find(claim, "status", "phase") == "Bound"
        await client.delete(await key(client, "apps/v1", "StatefulSet", "db"))
        await settle()
        assert await look(client, "v1", "PersistentVolumeClaim", "data-db-0") is not None


async def test_a_claim_that_a_pod_uses_is_kept_until_the_pod_goes(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        spec: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        finalizers: list[JsonValue] = ["kubernetes.io/pvc-protection"]
        await client.create(obj("v1", "PersistentVolumeClaim", "c", metadata={"finalizers": finalizers}, spec=spec))
        volume: JsonObject = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        containers: list[JsonValue] = [{"name": "a", "image": "i"}]
        await client.create(obj("v1", "Pod", "p", spec={"containers": containers, "volumes": [volume]}))
        await client.delete(await key(client, "v1", "PersistentVolumeClaim", "c"))
        await settle()
        assert await look(client, "v1", "PersistentVolumeClaim", "c") is not None
        await client.delete(await key(client, "v1", "Pod", "p"))
        await settle()
        assert await look(client, "v1", "PersistentVolumeClaim", "c") is None


async def test_volumes_know_their_claims(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        spec: JsonObject = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/x"},
        }
        await client.create(obj("v1", "PersistentVolume", "v", "", spec=spec))
        await settle()
        assert find(await look(client, "v1", "PersistentVolume", "v"), "status", "phase") == "Available"
        wanted: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await client.create(obj("v1", "PersistentVolumeClaim", "c", spec=wanted | {"volumeName": "v"}))
        await settle()
        assert find(await look(client, "v1", "PersistentVolume", "v"), "status", "phase") == "Bound"


def job(name: str, annotations: JsonObject, **spec: JsonValue) -> JsonObject:
    pod: JsonObject = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}
    whole: JsonObject = {"template": {"spec": pod}, **spec}
    return obj("batch/v1", "Job", name, metadata={"annotations": annotations}, spec=whole)


async def test_jobs(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(job("done", {}, ttlSecondsAfterFinished=10))
        await client.create(job("fails", {"wharfinger.dev/fail": "true", "wharfinger.dev/ready-after": "3"}))
        await client.create(job("waits", {}, suspend=True))
        await settle()

        async def last_condition(name: str) -> JsonValue:
            found = find_list(await look(client, "batch/v1", "Job", name), "status", "conditions")
            return find(found[-1], "type") if found else None

        assert [await last_condition(name) for name in ("done", "fails", "waits")] == ["Complete", None, "Suspended"]
        await settle(3)
        assert await last_condition("fails") == "Failed"
        await client.merge_patch(await key(client, "batch/v1", "Job", "waits"), {"spec": {"suspend": False}})
        await settle(10)
        assert await last_condition("waits") == "Complete"
        assert await look(client, "batch/v1", "Job", "done") is None
