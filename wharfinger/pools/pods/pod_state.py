"""The state of a pod of a pool, and the objects and patches that are written for pods. Pure.

A pod is *idle* at first. It becomes *claimed* when a claim gets it, or *retiring* when its pool gives it up. Both changes are
written with the pod's resourceVersion, so only one of two writers succeeds, and a pod that was claimed is never retired. Any
other value of the phase label counts as claimed: the pod belongs to the writer of that value, and is left as it is.

Versions are resourceVersions as numbers. They are decimal numbers that grow with each change: Kubernetes guarantees this since
1.35, and earlier servers with etcd behave in the same way.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from wharfinger.cluster.watch.readiness import Failed, InProgress, readiness
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.pods.resources import (
    CLAIM_LABEL,
    CLAIM_UID,
    OWNER,
    PHASE_LABEL,
    POD,
    POOL_LABEL,
    TEMPLATE_LABEL,
    WORKER_CLAIM,
    WORKER_POOL,
    ClaimSpec,
    PoolSpec,
    owner_reference,
)


class Phase(StrEnum):
    """The phase of a pod in its pool."""

    IDLE = "idle"
    CLAIMED = "claimed"
    RETIRING = "retiring"


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod of a pool as it was last seen.

    ``pool_uid`` is the uid of the WorkerPool that owns it, and ``claim_uid`` the uid of its WorkerClaim; each is empty if there
    is no such owner. ``ended``: its containers have ended for good. ``leaving``: its deletion was requested. ``problem`` says why
    it is not ready.
    """

    namespace: str
    name: str
    uid: str
    version: int
    pool: str
    pool_uid: str
    template: str
    phase: Phase
    ready: bool = False
    ended: bool = False
    leaving: bool = False
    claim: str = ""
    claim_uid: str = ""
    problem: str = ""
    containers: list[JsonValue] = field(default_factory=list, hash=False, compare=False, repr=False)

    @property
    def key(self) -> ObjectKey:
        """The key of the pod."""
        return ObjectKey(POD, self.namespace, self.name)

    @property
    def alive(self) -> bool:
        """True as long as the pod's containers run or may run, and nobody has requested its deletion."""
        return not self.ended and not self.leaving

    def usable(self, pool: PoolSpec) -> bool:
        """Return whether a claim may get the pod: it is idle and ready, and belongs to the pool."""
        return self.phase is Phase.IDLE and self.ready and self.alive and self.pool_uid == pool.uid


def read_pod(obj: JsonObject) -> PodState | None:
    """Return the state of a pod with the pool label; None if it cannot be read, as if there were no such pod."""
    labels, annotations = find_object(obj, "metadata", "labels"), find_object(obj, "metadata", "annotations")
    version = find_str(obj, "metadata", "resourceVersion")
    if not (version.isascii() and version.isdigit()):
        return None
    state = readiness(obj)
    phase = find_str(labels, PHASE_LABEL)
    return PodState(
        namespace=find_str(obj, "metadata", "namespace"),
        name=find_str(obj, "metadata", "name"),
        uid=find_str(obj, "metadata", "uid"),
        version=int(version),
        pool=find_str(labels, POOL_LABEL),
        pool_uid=_owner(obj),
        template=find_str(labels, TEMPLATE_LABEL),
        phase=Phase(phase) if phase in (Phase.IDLE, Phase.RETIRING) else Phase.CLAIMED,
        ready=_is_ready(obj),
        ended=find_str(obj, "status", "phase") in ("Failed", "Succeeded"),
        leaving=find(obj, "metadata", "deletionTimestamp") is not None,
        claim=find_str(labels, CLAIM_LABEL),
        claim_uid=find_str(annotations, CLAIM_UID),
        problem=state.message if isinstance(state, InProgress | Failed) else "",
        containers=find_list(obj, "spec", "containers"),
    )


def _is_ready(obj: JsonObject) -> bool:
    if find_str(obj, "status", "phase") != "Running":
        return False
    conditions = find_list(obj, "status", "conditions")
    return any(find(one, "type") == "Ready" and find(one, "status") == "True" for one in conditions)


def _owner(obj: JsonObject) -> str:
    references = find_list(obj, "metadata", "ownerReferences")
    owners = (one for one in references if find(one, "kind") == WORKER_POOL.kind and find(one, "controller") is True)
    return find_str(next(owners, None), "uid")


def make_pod(pool: PoolSpec, name: str) -> JsonObject:
    """Return the pod to create for a pool."""
    made = find_object(pool.template, "metadata")
    labels: JsonObject = {POOL_LABEL: pool.name, PHASE_LABEL: Phase.IDLE.value, TEMPLATE_LABEL: pool.template_hash}
    metadata: JsonObject = {
        "namespace": pool.namespace,
        "name": name,
        "labels": {**find_object(made, "labels"), **labels},
        "annotations": find_object(made, "annotations"),
        "ownerReferences": [owner_reference(WORKER_POOL, pool.name, pool.uid)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": find_object(pool.template, "spec")}


def claim_patch(pod: PodState, claim: ClaimSpec) -> JsonObject:
    """Return the one patch that claims a pod; it fails if the pod has changed since it was seen.

    The claim becomes the owner of the pod, so that the cluster's garbage collector removes the pod with the claim.
    """
    annotations: JsonObject = {**claim.annotations, CLAIM_UID: claim.uid}
    if claim.owner:
        annotations[OWNER] = claim.owner
    metadata: JsonObject = {
        **_precondition(pod),
        "labels": {**claim.labels, PHASE_LABEL: Phase.CLAIMED.value, CLAIM_LABEL: claim.name},
        "annotations": annotations,
        "ownerReferences": [owner_reference(WORKER_CLAIM, claim.name, claim.uid)],
    }
    if not claim.images:
        return {"metadata": metadata}
    # A merge patch replaces lists. This list is from the version that the patch requires, so no entry of it is lost.
    containers: list[JsonValue] = [_with_image(one, claim.images) for one in pod.containers]
    return {"metadata": metadata, "spec": {"containers": containers}}


def unknown_containers(pod: PodState, claim: ClaimSpec) -> tuple[str, ...]:
    """Return the names of the containers that are missing in the pod although a claim sets images for them, sorted."""
    return tuple(sorted(claim.images.keys() - {find_str(one, "name") for one in pod.containers}))


def retire_patch(pod: PodState) -> JsonObject:
    """Return the patch that takes an idle pod out of its pool; it fails if the pod has changed since it was seen."""
    return {"metadata": {**_precondition(pod), "labels": {PHASE_LABEL: Phase.RETIRING.value}}}


def _precondition(pod: PodState) -> JsonObject:
    return {"uid": pod.uid, "resourceVersion": str(pod.version)}


def _with_image(container: JsonValue, images: JsonObject) -> JsonValue:
    image = images.get(find_str(container, "name"))
    return {**container, "image": image} if isinstance(container, dict) and image is not None else container


def kept_of_pod(obj: JsonObject) -> JsonObject:
    """Return the part of a pod that the pools read. The cache of pods keeps only this part."""
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name != "managedFields"}
    spec: JsonObject = {"containers": find_list(obj, "spec", "containers")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": find_object(obj, "status")}
