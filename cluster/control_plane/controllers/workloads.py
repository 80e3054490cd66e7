"""Deployments, ReplicaSets, StatefulSets and DaemonSets that become available, without pods and nodes.

There is no kubelet: a workload is available a moment after it was first seen, as long as these annotations say nothing
else (a Deployment hands them down to its ReplicaSets):

* ``wharfinger.dev/ready-after: "5"`` — that many seconds later (a new template starts the time anew);
* ``wharfinger.dev/never-ready: "true"`` — never, so that waits and deadlines can be tried.

The statuses have the shapes recorded from a real controller manager. A Deployment has ReplicaSets, as upstream: clients
such as Helm 3 look for them.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from wharfinger.cluster.control_plane.controllers.conditions import Condition, conditions
from wharfinger.cluster.control_plane.controllers.writes import Create, Delete, Patch, Plan, Write, status_write
from wharfinger.cluster.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.formats.json_value import (
    JsonObject,
    JsonValue,
    checksum,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)

READY_AFTER: Final = "wharfinger.dev/ready-after"
NEVER_READY: Final = "wharfinger.dev/never-ready"
REVISION: Final = "deployment.kubernetes.io/revision"
HASH_LABEL: Final = "pod-template-hash"
REPLICA_SETS: Final = ResourceType("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)

_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
_NOT_COPIED: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION})


def annotation(obj: JsonObject, name: str) -> str:
    """An annotation's text, or ""."""
    return find_str(obj, "metadata", "annotations", name)


def is_set(obj: JsonObject, name: str) -> bool:
    """Whether an annotation says ``true``."""
    return annotation(obj, name).lower() == "true"


def seconds_left(obj: JsonObject, age_s: float) -> float | None:
    """Seconds until the workload is ready, 0.0 when it is, None for never. What is no number of seconds is none at all."""
    if is_set(obj, NEVER_READY):
        return None
    try:
        delay = float(annotation(obj, READY_AFTER) or 0)
    except ValueError:
        delay = 0.0
    return max(delay - age_s, 0.0) if math.isfinite(delay) else 0.0


def template_hash(template: JsonValue) -> str:
    """Ten characters that change with a pod template, of those upstream uses in names."""
    number = int(checksum(template).rpartition(":")[2], 16)
    return "".join(_SAFE[(number // len(_SAFE) ** place) % len(_SAFE)] for place in range(10))


def owner_reference(obj: JsonObject) -> JsonObject:
    """The reference of a controller's object to the object it is for."""
    return {
        "apiVersion": find_str(obj, "apiVersion"),
        "kind": find_str(obj, "kind"),
        "name": name_of(obj),
        "uid": find_str(obj, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_controlled_by(obj: JsonObject, uid: str) -> bool:
    """Whether the object's controller is the one of that uid."""
    owners = find_list(obj, "metadata", "ownerReferences")
    return any(find(owner, "controller") is True and find(owner, "uid") == uid for owner in owners)


def reconcile_replica_set(key: ObjectKey, obj: JsonObject, age_s: float) -> Plan:
    """All replicas at once, ready when it is time."""
    wanted = find_int(obj, "spec", "replicas", default=1)
    left = seconds_left(obj, age_s)
    ready = wanted if left == 0 else 0
    status: JsonObject = {"replicas": wanted, "terminatingReplicas": 0}
    counts = {"fullyLabeledReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}
    status |= _nonzero(counts) | _observed(obj)
    return Plan(tuple(status_write(key, obj, status)), left or None)


def reconcile_deployment(
    key: ObjectKey, obj: JsonObject, sets: Sequence[JsonObject], age_s: float, now: datetime
) -> Plan:
    """Its ReplicaSets, and the status they add up to; ``sets`` are those it controls, ``age_s`` that of its template."""
    if find(obj, "spec", "paused") is True:
        return Plan(tuple(status_write(key, obj, find_object(obj, "status") | _observed(obj))))
    digest = template_hash(find(obj, "spec", "template"))
    current = next((one for one in sets if find(one, "metadata", "labels", HASH_LABEL) == digest), None)
    wanted = find_int(obj, "spec", "replicas", default=1)
    revision = _revision_of(current, sets)
    writes: list[Write] = []
    if current is None:
        writes.append(Create(_new_replica_set(obj, digest, wanted, revision)))
    elif _revision(current) != revision:
        writes.append(Patch(_set_key(current), {"metadata": {"annotations": {REVISION: str(revision)}}}))
    for one in sets:
        writes += _scaled(one, wanted if one is current else 0)
    writes += _history(obj, [one for one in sets if one is not current])
    status, again_s = _deployment_status(obj, current, sets, age_s, now)
    writes += status_write(key, obj, status, {REVISION: str(revision)})
    return Plan(tuple(writes), again_s)


def _revision_of(current: JsonObject | None, sets: Sequence[JsonObject]) -> int:
    """The current set's revision where it is the newest, else the next one."""
    newest = max((_revision(one) for one in sets), default=0)
    own = _revision(current) if current is not None else 0
    return own if own and own == newest else newest + 1


def _revision(obj: JsonObject) -> int:
    text = annotation(obj, REVISION)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _new_replica_set(deployment: JsonObject, digest: str, replicas: int, revision: int) -> JsonObject:
    template = find_object(deployment, "spec", "template")
    labels = find_object(template, "metadata", "labels") | {HASH_LABEL: digest}
    selector = find_object(deployment, "spec", "selector")
    copied = {
        name: value
        for name, value in find_object(deployment, "metadata", "annotations").items()
        if name not in _NOT_COPIED
    }
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{name_of(deployment)}-{digest}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": copied | {REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector | {"matchLabels": find_object(selector, "matchLabels") | {HASH_LABEL: digest}},
            "template": template | {"metadata": find_object(template, "metadata") | {"labels": labels}},
        },
    }


def _scaled(one: JsonObject, replicas: int) -> list[Write]:
    if find_int(one, "spec", "replicas", default=1) == replicas:
        return []
    return [Patch(_set_key(one), {"spec": {"replicas": replicas}})]


def _history(deployment: JsonObject, old: Sequence[JsonObject]) -> list[Write]:
    """Deletions of the oldest empty sets over ``revisionHistoryLimit``."""
    limit = find_int(deployment, "spec", "revisionHistoryLimit", default=10)
    empty = sorted((one for one in old if find_int(one, "spec", "replicas", default=1) == 0), key=_revision)
    surplus = empty[: max(len(empty) - limit, 0)]
    return [Delete(_set_key(one), find_str(one, "metadata", "uid")) for one in surplus]


def _set_key(one: JsonObject) -> ObjectKey:
    return ObjectKey(REPLICA_SETS, namespace_of(one), name_of(one))


def _deployment_status(
    obj: JsonObject, current: JsonObject | None, sets: Sequence[JsonObject], age_s: float, now: datetime
) -> tuple[JsonObject, float | None]:
    """The status, and when the progress deadline has to be looked at."""
    wanted = find_int(obj, "spec", "replicas", default=1)
    seen = [find_object(one, "status") for one in sets]
    updated = find_int(current, "status", "replicas")
    counts = {
        "replicas": sum(find_int(status, "replicas") for status in seen),
        "updatedReplicas": updated,
        "readyReplicas": sum(find_int(status, "readyReplicas") for status in seen),
        "availableReplicas": sum(find_int(status, "availableReplicas") for status in seen),
    }
    counts["unavailableReplicas"] = max(wanted - counts["availableReplicas"], 0)
    available = counts["availableReplicas"] >= wanted
    settled = current is not None and find_int(current, "status", "observedGeneration") >= find_int(
        current, "metadata", "generation"
    )
    complete = settled and available and updated == wanted == counts["replicas"]
    said, again_s = _deployment_conditions(obj, current, age_s, available=available, complete=complete)
    status: JsonObject = {"terminatingReplicas": 0, "conditions": conditions(obj, said, now, updated="lastUpdateTime")}
    return status | _nonzero(counts) | _observed(obj), again_s


def _deployment_conditions(
    obj: JsonObject, current: JsonObject | None, age_s: float, *, available: bool, complete: bool
) -> tuple[list[Condition], float | None]:
    digest = template_hash(find(obj, "spec", "template"))
    name = name_of(current) if current is not None else f"{name_of(obj)}-{digest}"
    if available:
        first = Condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        why = "Deployment does not have minimum availability."
        first = Condition("Available", "False", "MinimumReplicasUnavailable", why)
    if complete:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        return [first, Condition("Progressing", "True", "NewReplicaSetAvailable", message)], None
    left = find_int(obj, "spec", "progressDeadlineSeconds", default=600) - age_s
    if left <= 0:
        message = f'ReplicaSet "{name}" has timed out progressing.'
        return [first, Condition("Progressing", "False", "ProgressDeadlineExceeded", message)], None
    message = f'ReplicaSet "{name}" is progressing.'
    return [first, Condition("Progressing", "True", "ReplicaSetUpdated", message)], left


def reconcile_stateful_set(key: ObjectKey, obj: JsonObject, claims: frozenset[str], age_s: float) -> Plan:
    """Its claims (``claims`` are the names that exist in the namespace), and its status."""
    wanted = find_int(obj, "spec", "replicas", default=1)
    left = seconds_left(obj, age_s)
    ready = wanted if left == 0 else 0
    revision = f"{name_of(obj)}-{template_hash(find(obj, 'spec', 'template'))}"
    current = revision if left == 0 else find_str(obj, "status", "currentRevision") or revision
    counts = {
        "readyReplicas": ready,
        "currentReplicas": wanted if current == revision else 0,
        "updatedReplicas": wanted,
    }
    status: JsonObject = {"replicas": wanted, "availableReplicas": ready, "collisionCount": 0}
    status |= {"currentRevision": current, "updateRevision": revision}
    writes: list[Write] = [*_claims(obj, wanted, claims)]
    writes += status_write(key, obj, status | _nonzero(counts) | _observed(obj))
    return Plan(tuple(writes), left or None)


def _claims(stateful_set: JsonObject, replicas: int, present: frozenset[str]) -> list[Write]:
    labels = find_object(stateful_set, "spec", "selector", "matchLabels")
    made: list[Write] = []
    for template in find_list(stateful_set, "spec", "volumeClaimTemplates"):
        metadata = find_object(template, "metadata")
        for number in range(replicas):
            name = f"{find_str(metadata, 'name')}-{name_of(stateful_set)}-{number}"
            if name not in present:
                own: JsonObject = {"name": name, "namespace": namespace_of(stateful_set)}
                own["labels"] = find_object(metadata, "labels") | labels
                claim: JsonObject = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata | own}
                made.append(Create(claim | {"spec": find(template, "spec")}))
    return made


def reconcile_daemon_set(key: ObjectKey, obj: JsonObject, nodes: int, age_s: float) -> Plan:
    """One pod for each node; a cluster without nodes counts as one node."""
    wanted = max(nodes, 1)
    left = seconds_left(obj, age_s)
    ready = wanted if left == 0 else 0
    status: JsonObject = {
        "currentNumberScheduled": wanted,
        "desiredNumberScheduled": wanted,
        "numberMisscheduled": 0,
        "numberReady": ready,
    }
    counts = {
        "numberAvailable": ready,
        "numberUnavailable": wanted - ready,
        "updatedNumberScheduled": wanted,
    }
    return Plan(tuple(status_write(key, obj, status | _nonzero(counts) | _observed(obj))), left or None)


def _observed(obj: JsonObject) -> JsonObject:
    return {"observedGeneration": find_int(obj, "metadata", "generation")}


def _nonzero(counts: dict[str, int]) -> JsonObject:
    return {name: count for name, count in counts.items() if count}
