"""PersistentVolumeClaims and PersistentVolumes: their binding, and their protection while they are in use."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import key, look, obj, open_cluster, pod, settle
from wharfinger.control_plane.controllers.claims import fits
from wharfinger.formats.json.value import JsonObject, JsonValue, find

WANTED: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def claim(name: str, annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    whole: JsonObject = {**WANTED, **spec}
    return obj("v1", "PersistentVolumeClaim", name, metadata={"annotations": annotations or {}}, spec=whole)


def volume(name: str, size: str = "2Gi", **spec: JsonValue) -> JsonObject:
    whole: JsonObject = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/x"}}
    return obj("v1", "PersistentVolume", name, "", spec=whole | spec)


async def test_a_claim_is_bound_to_the_smallest_fitting_volume(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        for name, size in (("large", "9Gi"), ("small", "2Gi"), ("tiny", "1Mi")):
            await client.create(volume(name, size))
        await settle()
        assert find(await look(client, "v1", "PersistentVolume", "large"), "status", "phase") == "Available"
        await client.create(claim("c", storageClassName=""))
        await settle()
        found = await look(client, "v1", "PersistentVolumeClaim", "c")
        assert (find(found, "status", "phase"), find(found, "spec", "volumeName")) == ("Bound", "small")
        assert find(found, "status", "capacity", "storage") == "2Gi"
        taken = await look(client, "v1", "PersistentVolume", "small")
        assert (find(taken, "status", "phase"), find(taken, "spec", "claimRef", "name")) == ("Bound", "c")
        await client.delete(await key(client, "v1", "PersistentVolumeClaim", "c"))
        await settle()
        assert find(await look(client, "v1", "PersistentVolume", "small"), "status", "phase") == "Released"


async def test_a_claim_without_a_volume_is_bound_after_a_delay(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(claim("c"))
        await client.create(claim("never", {"wharfinger.dev/never-ready": "true"}))
        await client.create(claim("slow", {"wharfinger.dev/ready-after": "60"}))
        await settle()
        phases = [
            find(await look(client, "v1", "PersistentVolumeClaim", name), "status", "phase")
            for name in ("c", "never", "slow")
        ]
        assert phases == ["Bound", "Pending", "Pending"]
        await settle(60)
        assert find(await look(client, "v1", "PersistentVolumeClaim", "slow"), "status", "phase") == "Bound"


async def test_a_claim_in_use_is_not_removed_before_its_pod(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        finalizers: list[JsonValue] = ["kubernetes.io/pvc-protection"]
        await client.create(
            obj("v1", "PersistentVolumeClaim", "c", metadata={"finalizers": finalizers}, spec={**WANTED})
        )
        await client.create(pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
        await client.delete(await key(client, "v1", "PersistentVolumeClaim", "c"))
        await settle()
        assert await look(client, "v1", "PersistentVolumeClaim", "c") is not None
        await client.delete(await key(client, "v1", "Pod", "p"))
        await settle()
        assert await look(client, "v1", "PersistentVolumeClaim", "c") is None


def test_volumes_fit_claims_by_class_labels_and_phase() -> None:
    wanted = claim("c", storageClassName="fast", selector={"matchLabels": {"disk": "x"}})
    right = volume("v", storageClassName="fast")
    right["metadata"] = {"name": "v", "labels": {"disk": "x"}}
    assert fits(wanted, right)
    assert not fits(claim("c"), right)
    assert not fits(wanted, {**right, "metadata": {"name": "v"}})
    assert not fits(wanted, {**right, "status": {"phase": "Bound"}})
    reserved: JsonObject = {**volume("v", storageClassName="fast", claimRef={"namespace": "x", "name": "other"})}
    assert not fits(wanted, reserved)
