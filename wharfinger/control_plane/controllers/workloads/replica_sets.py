"""ReplicaSets and ReplicationControllers: they keep the requested number of Pods of a template, and count the ready ones.

The messages and the order of fields are those of kube-controller-manager's replicaset controller. Of the criteria by
which that controller chooses surplus Pods to delete, only two are used here: whether a Pod is scheduled, and whether it is ready.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    CONTROLLERS,
    PODS,
    REPLICA_SETS,
    condition_of,
    controller_of,
    generation_of,
    is_deleted,
    is_over,
    is_true,
    key_of,
    labels_of,
    name_of,
    replicas_of,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.workloads.pod_making import created_pod
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.storage.interface import Change, Collection, Key
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.kube.times import parse_time

MOST_PODS: Final = 500
"""The maximum number of Pods of one ReplicaSet, ReplicationController, StatefulSet or Job; it limits the use of memory."""
_COMPONENT: Final = {"ReplicaSet": "replicaset-controller", "ReplicationController": "replication-controller"}


class ReplicaSetController:
    """The controller of ReplicaSets or of ReplicationControllers."""

    def __init__(self, state: ClusterState, collection: Collection) -> None:
        self._state = state
        self._collection = collection

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller(self._collection.plural, self.reconcile, {self._collection: itself, PODS: self._of_pod})

    def reconcile(self, key: Key) -> float | None:
        """Create or delete Pods, and update the counts in the status. Return the seconds after which the object must be
        reconciled again; None if only a change requires it.
        """
        one = self._state.get(key)
        if one is None:
            return None
        pods = self._pods(one)
        failure: StatusError | None = None
        if not is_deleted(one):
            failure = self._manage(one, [pod for pod in pods if not is_deleted(pod)])
            one = self._state.get(key)
            if one is None:
                return None
            pods = self._pods(one)
        status, again_s = _status(one, pods, self._state.now())
        conditions = _failure_condition(one, failure, self._state.time())
        if conditions:
            status["conditions"] = conditions
        self._state.set_status(key, one, status)
        if failure is not None:
            raise failure
        return again_s

    def _pods(self, one: JsonObject) -> list[JsonObject]:
        """Return the set's Pods that have not ended; orphans that its selector matches are adopted."""
        owned = [pod for pod in self._state.owned(PODS, one) if not is_over(pod)]
        if not is_deleted(one):
            owned += [self._state.adopt(key_of(PODS, pod), pod, one) for pod in self._orphans(one)]
        return owned

    def _orphans(self, one: JsonObject) -> Iterable[JsonObject]:
        namespace, selector = find_str(one, "metadata", "namespace"), selector_of(one)
        return [
            pod
            for pod in self._state.objects(PODS, namespace)
            if controller_of(pod) is None
            and not is_deleted(pod)
            and not is_over(pod)
            and selects(selector, labels_of(pod))
        ]

    def _of_pod(self, change: Change) -> Iterable[Key]:
        if controller_of(change.obj) is not None:
            key = self._state.controller_key(change.obj)
            if key is not None and key.collection == self._collection:
                yield key
        else:
            for one in self._state.objects(self._collection, change.key.namespace):
                if selects(selector_of(one), labels_of(change.obj)):
                    yield key_of(self._collection, one)

    def _manage(self, one: JsonObject, pods: list[JsonObject]) -> StatusError | None:
        """Create missing Pods and delete surplus ones; return the error if the creation of a Pod was refused."""
        wanted = min(replicas_of(one), MOST_PODS)
        component = _COMPONENT[find_str(one, "kind")]
        for _ in range(wanted - len(pods)):
            try:
                pod = created_pod(self._state, one)
            except StatusError as error:
                message = f"Error creating: {error.message}"
                self._state.record_event(one, component, "FailedCreate", message, warning=True)
                return error
            if pod is None:
                return None
            self._state.record_event(one, component, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        for pod in sorted(pods, key=_deletion_order)[: max(len(pods) - wanted, 0)]:
            self._state.delete(key_of(PODS, pod), pod)
            self._state.record_event(one, component, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        return None


def selector_of(one: JsonObject) -> JsonValue:
    """Return the label selector; a ReplicationController's map of labels is converted to a label selector."""
    if find_str(one, "kind") == "ReplicationController":
        return {"matchLabels": find_object(one, "spec", "selector")}
    return find(one, "spec", "selector")


def _deletion_order(pod: JsonObject) -> tuple[bool, bool, str]:
    """Return the sort key for deletion: unscheduled Pods before scheduled ones, unready before ready ones, then by name."""
    return bool(find_str(pod, "spec", "nodeName")), is_true(pod, "Ready"), name_of(pod)


def available_in_s(pod: JsonObject, wait_s: int, now: datetime) -> float | None:
    """Return the seconds until a ready Pod counts as available (after ``wait_s``), or None if it is not ready."""
    ready = condition_of(pod, "Ready")
    if find(ready, "status") != "True":
        return None
    since = parse_time(find_str(ready, "lastTransitionTime"))
    if not wait_s or since is None:
        return 0.0
    return max(wait_s - (now - since).total_seconds(), 0.0)


def _status(one: JsonObject, pods: list[JsonObject], now: datetime) -> tuple[JsonObject, float | None]:
    """Return the fields of the status that depend on ``pods``, and the seconds until a ready Pod becomes available (None if no
    Pod is waiting for that).
    """
    living = [pod for pod in pods if not is_deleted(pod)]
    wait_s = find_int(one, "spec", "minReadySeconds")
    lefts = [available_in_s(pod, wait_s, now) for pod in living]
    labels = find_object(one, "spec", "template", "metadata", "labels")
    counts = {
        "fullyLabeledReplicas": sum(labels.items() <= labels_of(pod).items() for pod in living),
        "readyReplicas": sum(left is not None for left in lefts),
        "availableReplicas": sum(left == 0 for left in lefts),
    }
    status: JsonObject = {"replicas": len(living), "observedGeneration": generation_of(one)}
    if find_str(one, "kind") == "ReplicaSet":
        status["terminatingReplicas"] = len(pods) - len(living)
    waits = [left for left in lefts if left]
    return status | {name: count for name, count in counts.items() if count}, min(waits, default=None)


def _failure_condition(one: JsonObject, failure: StatusError | None, time: str) -> list[JsonValue]:
    others = [entry for entry in find_list(one, "status", "conditions") if find(entry, "type") != "ReplicaFailure"]
    if failure is None:
        return others
    old = condition_of(one, "ReplicaFailure")
    if old is not None:
        return [*others, old]
    failed: JsonObject = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": time}
    return [*others, failed | {"reason": "FailedCreate", "message": failure.message}]


def replica_set_controllers(state: ClusterState) -> list[Controller]:
    """Return the controllers of ReplicaSets and of ReplicationControllers."""
    return [ReplicaSetController(state, one).controller() for one in (REPLICA_SETS, CONTROLLERS)]
