"""StatefulSets: numbered Pods, created and replaced in order, each with its own PersistentVolumeClaims.

The messages and the order of steps are those of kube-controller-manager's statefulset controller.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    CLAIMS,
    PODS,
    STATEFUL_SETS,
    generation_of,
    is_deleted,
    is_over,
    is_true,
    key_of,
    labels_of,
    name_of,
    owner_reference,
    replicas_of,
    with_fields,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.workloads.pod_making import pod_of_template
from wharfinger.control_plane.controllers.workloads.replica_sets import MOST_PODS, available_in_s
from wharfinger.control_plane.controllers.workloads.revisions import (
    delete_old_revisions,
    ensure_revision,
    revision_hashes,
    revision_of_pod,
    revisions_of,
    template_of,
)
from wharfinger.control_plane.controllers.workloads.template_hash import revision_data, revision_hash
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str

_COMPONENT: Final = "statefulset-controller"


class StatefulSetController:
    """The controller of StatefulSets."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("StatefulSet", self.reconcile, {STATEFUL_SETS: itself, PODS: self._of_pod})

    def _of_pod(self, change: Change) -> Iterable[Key]:
        key = self._state.controller_key(change.obj)
        if key is not None and key.collection == STATEFUL_SETS:
            yield key

    def reconcile(self, key: Key) -> float | None:
        """Take one step in the rollout of one StatefulSet. Return the seconds until the next step is due, None if only a change
        requires one.
        """
        one = self._state.get(key)
        if one is None or is_deleted(one):
            return None
        update = self._revision(one)
        if update is None:
            return None
        current = self._current(one, update)
        failure = self._step(one, current, update)
        pods = self._pods(one)
        status, again_s = self._status(one, pods, name_of(current), name_of(update))
        self._state.set_status(key, one, status)
        delete_old_revisions(self._state, one, {name_of(current), name_of(update), *revision_hashes(pods)})
        if failure is not None:
            raise failure
        return again_s

    def _pods(self, one: JsonObject) -> list[JsonObject]:
        """Return the Pods of the set, by ordinal."""
        found = [pod for pod in self._state.owned(PODS, one) if ordinal(one, pod) is not None]
        return sorted(found, key=lambda pod: ordinal(one, pod) or 0)

    def _revision(self, one: JsonObject) -> JsonObject | None:
        data = revision_data(find(one, "spec", "template"))
        digest = revision_hash(data, find_int(one, "status", "collisionCount"))
        labels = labels_of(find_object(one, "spec", "template")) | {"controller.kubernetes.io/hash": digest}
        copied: JsonObject = {**find_object(one, "metadata", "annotations")}
        return ensure_revision(self._state, one, data, labels, digest, copied)

    def _current(self, one: JsonObject, update: JsonObject) -> JsonObject:
        name = find_str(one, "status", "currentRevision")
        return next((found for found in revisions_of(self._state, one) if name_of(found) == name), update)

    # -- steps

    def _step(self, one: JsonObject, current: JsonObject, update: JsonObject) -> StatusError | None:
        """Create, delete or replace as many Pods as ``podManagementPolicy`` allows at this time. If the creation of a Pod or of
        a claim was refused, return the error; otherwise return None.
        """
        start = find_int(one, "spec", "ordinals", "start")
        wanted = min(replicas_of(one), MOST_PODS)
        parallel = find_str(one, "spec", "podManagementPolicy") == "Parallel"
        have = {ordinal(one, pod): pod for pod in self._pods(one)}
        for number in range(start, start + wanted):
            pod = have.get(number)
            if pod is not None and is_over(pod):
                self._remove(one, pod)
                return None
            if pod is None:
                revision = current if self._keeps_current(one, number - start, current, update) else update
                try:
                    self._make(one, number, revision)
                except StatusError as error:
                    message = f"create Pod {name_of(one)}-{number} in StatefulSet {name_of(one)} failed error: {error}"
                    self._state.record_event(one, _COMPONENT, "FailedCreate", message, warning=True)
                    return error
            if not parallel and not is_true(self._state.get(self._key(one, number)), "Ready"):
                return None
        surplus = [pod for number, pod in have.items() if number is not None and not start <= number < start + wanted]
        for pod in reversed(surplus):
            if not is_deleted(pod):
                self._remove(one, pod)
            if not parallel:
                return None
        self._replace(one, update)
        return None

    def _keeps_current(self, one: JsonObject, place: int, current: JsonObject, update: JsonObject) -> bool:
        """Return whether a missing Pod is created from the current revision instead of the update revision."""
        partition = find_int(one, "spec", "updateStrategy", "rollingUpdate", "partition")
        if name_of(current) == name_of(update) or find_str(one, "spec", "updateStrategy", "type") == "OnDelete":
            return False
        return place < partition

    def _make(self, one: JsonObject, number: int, revision: JsonObject) -> None:
        for claim in claims_of(one, number):
            if self._state.get(key_of(CLAIMS, claim)) is None and self._state.create(claim) is not None:
                message = (
                    f"Create Claim {name_of(claim)} Pod {name_of(one)}-{number} in StatefulSet {name_of(one)} success"
                )
                self._state.record_event(one, _COMPONENT, "SuccessfulCreate", message)
        if self._state.create(pod_of(one, number, revision)) is not None:
            message = f"Create Pod {name_of(one)}-{number} in StatefulSet {name_of(one)} successful"
            self._state.record_event(one, _COMPONENT, "SuccessfulCreate", message)

    def _remove(self, one: JsonObject, pod: JsonObject) -> None:
        self._state.delete(key_of(PODS, pod), pod)
        message = f"Delete Pod {name_of(pod)} in StatefulSet {name_of(one)} successful"
        self._state.record_event(one, _COMPONENT, "SuccessfulDelete", message)

    def _replace(self, one: JsonObject, update: JsonObject) -> None:
        """In a rolling update, delete the outdated Pod with the highest ordinal.

        Delete nothing if this ordinal is below the partition, or if a Pod with a higher ordinal is not ready.
        """
        if find_str(one, "spec", "updateStrategy", "type", default="RollingUpdate") != "RollingUpdate":
            return
        start = find_int(one, "spec", "ordinals", "start")
        first = start + find_int(one, "spec", "updateStrategy", "rollingUpdate", "partition")
        for pod in reversed(self._pods(one)):
            if (ordinal(one, pod) or 0) < first:
                return
            if revision_of_pod(pod) != name_of(update) and not is_deleted(pod):
                self._remove(one, pod)
                return
            if not is_true(pod, "Ready"):
                return

    def _key(self, one: JsonObject, number: int) -> Key:
        return Key(PODS, find_str(one, "metadata", "namespace"), f"{name_of(one)}-{number}")

    # -- status

    def _status(
        self, one: JsonObject, pods: Sequence[JsonObject], current: str, update: str
    ) -> tuple[JsonObject, float | None]:
        living = [pod for pod in pods if not is_deleted(pod)]
        wait_s = find_int(one, "spec", "minReadySeconds")
        lefts = [available_in_s(pod, wait_s, self._state.now()) for pod in living]
        updated = sum(revision_of_pod(pod) == update for pod in living)
        ready = sum(left is not None for left in lefts)
        done = updated == len(living) == ready and len(living) == min(replicas_of(one), MOST_PODS)
        if done and find_str(one, "spec", "updateStrategy", "type", default="RollingUpdate") == "RollingUpdate":
            current = update
        counts = {
            "readyReplicas": ready,
            "currentReplicas": sum(revision_of_pod(pod) == current for pod in living),
            "updatedReplicas": updated,
        }
        status: JsonObject = {
            "observedGeneration": generation_of(one),
            "replicas": len(living),
            "availableReplicas": sum(left == 0 for left in lefts),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": find_int(one, "status", "collisionCount"),
        }
        waits = [left for left in lefts if left]
        return status | {name: count for name, count in counts.items() if count}, min(waits, default=None)


def ordinal(one: JsonObject, pod: JsonObject) -> int | None:
    """Return the ordinal of a Pod, or None if its name has no ordinal."""
    prefix, dash, digits = name_of(pod).rpartition("-")
    return int(digits) if dash and prefix == name_of(one) and digits.isascii() and digits.isdigit() else None


def pod_of(one: JsonObject, number: int, revision: JsonObject) -> JsonObject:
    """Return the Pod with the ordinal ``number``, made from the template of a revision."""
    pod = pod_of_template(one, template_of(revision))
    name = f"{name_of(one)}-{number}"
    own: JsonObject = {
        "apps.kubernetes.io/pod-index": str(number),
        "controller-revision-hash": name_of(revision),
        "statefulset.kubernetes.io/pod-name": name,
    }
    spec = find_object(pod, "spec") | {"hostname": name}
    if find_str(one, "spec", "serviceName"):
        spec["subdomain"] = find_str(one, "spec", "serviceName")
    claimed: list[JsonValue] = [
        {
            "name": find_str(claim, "metadata", "name"),
            "persistentVolumeClaim": {"claimName": _claim(one, claim, number)},
        }
        for claim in find_list(one, "spec", "volumeClaimTemplates")
    ]
    taken = {find_str(volume, "name") for volume in claimed}
    others = [volume for volume in find_list(spec, "volumes") if find_str(volume, "name") not in taken]
    if claimed:
        spec["volumes"] = [*claimed, *others]
    return with_fields({**pod, "spec": spec}, name=name, labels=labels_of(pod) | own)


def claims_of(one: JsonObject, number: int) -> list[JsonObject]:
    """Return the PersistentVolumeClaims that the Pod with the ordinal ``number`` needs."""
    labels = find_object(one, "spec", "selector", "matchLabels")
    made: list[JsonObject] = []
    for template in find_list(one, "spec", "volumeClaimTemplates"):
        metadata: JsonObject = {
            **find_object(template, "metadata"),
            "name": _claim(one, template, number),
            "namespace": find_str(one, "metadata", "namespace"),
            "labels": labels_of(template) | labels,
        }
        if find_str(one, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
            metadata["ownerReferences"] = [owner_reference(one) | {"blockOwnerDeletion": False}]
        made.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": metadata,
                "spec": find(template, "spec"),
            }
        )
    return made


def _claim(one: JsonObject, template: JsonValue, number: int) -> str:
    return f"{find_str(template, 'metadata', 'name')}-{name_of(one)}-{number}"
