"""Claims that are bound, and protection of what is in use."""

from typing import Final

import pytest

from wharfinger.cluster.control_plane.controllers.claims import (
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    reconcile_claim,
    reconcile_volume,
)
from wharfinger.cluster.control_plane.controllers.writes import NOTHING, Patch, Plan
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue

CLAIM: Final = ObjectKey(
    ResourceType("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True), "n", "c"
)
VOLUME: Final = ObjectKey(ResourceType("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False), "", "v")


def claim(
    *,
    annotations: JsonObject | None = None,
    deleted: bool = False,
    finalizers: list[JsonValue] | None = None,
    **spec: JsonValue,
) -> JsonObject:
    metadata: JsonObject = {"name": "c", "uid": "u", "resourceVersion": "7", "annotations": annotations or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    metadata["finalizers"] = [CLAIM_PROTECTION] if finalizers is None else finalizers
    whole: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": metadata, "spec": whole, "status": {"phase": "Pending"}}


BOUND: Final[JsonObject] = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}


def test_binding() -> None:
    named = Patch(
        CLAIM,
        {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "pvc-u"},
        },
    )
    bound = Patch(CLAIM, {"status": BOUND}, "status")
    assert reconcile_claim(CLAIM, claim(), [], 0) == Plan((named, bound))
    assert reconcile_claim(CLAIM, claim(volumeName="mine"), [], 0) == Plan((bound,))
    assert reconcile_claim(CLAIM, claim(volumeName="mine") | {"status": BOUND}, [], 0) == Plan()


def test_binding_waits_for_its_time() -> None:
    assert reconcile_claim(CLAIM, claim(annotations={"wharfinger.dev/ready-after": "4"}), [], 1) == Plan(again_s=3)
    assert reconcile_claim(CLAIM, claim(annotations={"wharfinger.dev/never-ready": "true"}), [], 1) == NOTHING


def pod(phase: str, claim_name: str) -> JsonObject:
    volume: JsonObject = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    return {"spec": {"volumes": [{"name": "e", "emptyDir": {}}, volume]}, "status": {"phase": phase}}


@pytest.mark.parametrize(("pods", "released"), [
    ([], True),
    ([pod("Running", "c")], False),
    ([pod("Succeeded", "c"), pod("Running", "other")], True),
])  # fmt: skip
def test_a_claim_in_use_is_kept(pods: list[JsonObject], *, released: bool) -> None:
    patch = Patch(CLAIM, {"metadata": {"finalizers": ["x/y"], "resourceVersion": "7"}})
    doomed = claim(deleted=True, finalizers=[CLAIM_PROTECTION, "x/y"])
    assert reconcile_claim(CLAIM, doomed, pods, 0) == (Plan((patch,)) if released else NOTHING)
    assert reconcile_claim(CLAIM, claim(deleted=True, finalizers=["x/y"]), pods, 0) == NOTHING


def test_volumes() -> None:
    volume: JsonObject = {"metadata": {"name": "v", "resourceVersion": "7", "finalizers": [VOLUME_PROTECTION]}}
    users = [claim(volumeName="v")]
    assert reconcile_volume(VOLUME, volume, []) == Plan((Patch(VOLUME, {"status": {"phase": "Available"}}, "status"),))
    assert reconcile_volume(VOLUME, volume, users) == Plan((Patch(VOLUME, {"status": {"phase": "Bound"}}, "status"),))
    doomed: JsonObject = (
        {"metadata": volume["metadata"] | {"deletionTimestamp": "x"}} if isinstance(volume["metadata"], dict) else {}
    )
    released = Patch(VOLUME, {"metadata": {"finalizers": None, "resourceVersion": "7"}})
    assert reconcile_volume(VOLUME, doomed, []) == Plan((released,))
    assert reconcile_volume(VOLUME, doomed, users) == NOTHING
