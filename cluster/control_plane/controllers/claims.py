"""Volume claims that are bound without a volume, and the finalizers that protect claims and volumes in use.

A PersistentVolumeClaim is bound after ``wharfinger.dev/ready-after`` seconds, never with ``wharfinger.dev/never-ready``.
One that is being deleted is let go when no Pod uses it; a PersistentVolume when no claim is bound to it.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.cluster.control_plane.controllers.workloads import seconds_left
from wharfinger.cluster.control_plane.controllers.writes import (
    NOTHING,
    Patch,
    Plan,
    Write,
    compare_and_set,
    status_write,
)
from wharfinger.cluster.resource import ObjectKey, name_of
from wharfinger.formats.json_value import JsonObject, JsonValue, find, find_list, find_object, find_str

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def reconcile_claim(key: ObjectKey, obj: JsonObject, pods: Iterable[JsonObject], age_s: float) -> Plan:
    """Bind a claim, or let go of one that is being deleted; ``pods`` are those of its namespace."""
    if find(obj, "metadata", "deletionTimestamp") is not None:
        in_use = any(_uses(pod, name_of(obj)) for pod in pods)
        return NOTHING if in_use else _released(key, obj, CLAIM_PROTECTION)
    left = seconds_left(obj, age_s)
    if left != 0:
        return Plan(again_s=left)
    writes: list[Write] = []
    if not find_str(obj, "spec", "volumeName"):
        volume = f"pvc-{find_str(obj, 'metadata', 'uid')}"
        annotations: JsonObject = {"pv.kubernetes.io/bind-completed": "yes"}
        writes.append(Patch(key, {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}))
    status: JsonObject = {
        "phase": "Bound",
        "accessModes": find_list(obj, "spec", "accessModes"),
        "capacity": find_object(obj, "spec", "resources", "requests"),
    }
    return Plan((*writes, *status_write(key, obj, find_object(obj, "status") | status)))


def reconcile_volume(key: ObjectKey, obj: JsonObject, claims: Iterable[JsonObject]) -> Plan:
    """Let go of a volume that is being deleted and no claim names; one that is not yet claimed is available."""
    bound = any(find(claim, "spec", "volumeName") == name_of(obj) for claim in claims)
    if find(obj, "metadata", "deletionTimestamp") is not None:
        return NOTHING if bound else _released(key, obj, VOLUME_PROTECTION)
    status = find_object(obj, "status") | {"phase": "Bound" if bound else "Available"}
    return Plan(tuple(status_write(key, obj, status)))


def _uses(pod: JsonObject, claim: str) -> bool:
    if find(pod, "status", "phase") in _ENDED:
        return False
    volumes = find_list(pod, "spec", "volumes")
    return any(find(volume, "persistentVolumeClaim", "claimName") == claim for volume in volumes)


def _released(key: ObjectKey, obj: JsonObject, finalizer: str) -> Plan:
    finalizers = find_list(obj, "metadata", "finalizers")
    if finalizer not in finalizers:
        return NOTHING
    kept: list[JsonValue] = [item for item in finalizers if item != finalizer]
    return Plan((Patch(key, compare_and_set(obj, {"finalizers": kept or None})),))
