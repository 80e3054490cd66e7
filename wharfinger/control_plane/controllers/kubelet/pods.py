"""The simulation of Pods, which are scheduled and run without a scheduler, without kubelets, and even without nodes.

A Pod of a controller runs and is ready immediately. A Pod without a controller runs after three seconds (:data:`BARE_S`), so
that clients can observe it unscheduled, as on a cluster without nodes. A Helm hook, or a Pod with simulation annotations,
runs without this delay. A Pod is ignored if a manager that is not a component of the cluster has written its status. Containers
of Pods with ``restartPolicy: Always`` run without end; all others succeed immediately. Annotations change this behavior
(:mod:`~wharfinger.control_plane.controllers.framework.simulation_annotations`).

If there are Node objects, a Pod is assigned to one that fits it
(:func:`~wharfinger.control_plane.controllers.kubelet.nodes.fits`). If there are none, Pods are assigned to the node
``simulated``, for which no Node object exists.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from wharfinger.control_plane.api.core.nodes import SIMULATED_NODE
from wharfinger.control_plane.controllers.framework.controller import Ages, Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    controller_of,
    is_deleted,
    is_over,
    key_of,
    name_of,
    uid_of,
)
from wharfinger.control_plane.controllers.framework.simulation_annotations import (
    SimulationOptions,
    changed,
    pod_annotations,
    read_options,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.kubelet.nodes import affine_node, fitting_nodes
from wharfinger.control_plane.controllers.kubelet.pod_status import Fate, StatusFacts, pod_status
from wharfinger.control_plane.merging.managed_fields import record_update
from wharfinger.control_plane.storage.interface import Change, ChangeType, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.kube.times import parse_time

BARE_S: Final = 3.0
"""Seconds until a Pod without a controller runs."""
HOOK: Final = "helm.sh/hook"
_OURS: Final = frozenset({"kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver"})
_LONGEST_BACK_OFF_S: Final = 300.0


class PodController:
    """The controller that simulates the scheduler and the kubelets."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._ages = Ages()
        self._addresses = 0
        self._turn = 0

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        wakes = {PODS: itself, NODES: self._unscheduled}
        owners = dict.fromkeys((DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS), self._of_owner)
        return Controller("Pod", self.reconcile, {**wakes, **owners})

    def reconcile(self, key: Key) -> float | None:
        """Schedule, run or end one Pod. Return the seconds after which the Pod must be reconciled again; None if only a change
        requires it.
        """
        pod = self._state.get(key)
        if pod is None:
            self._ages.forget(key)
            return None
        if is_deleted(pod):
            return self._finish(key, pod)
        if is_over(pod) or _reported_by_others(pod):
            return None
        annotations = pod_annotations(self._state, pod)
        options = read_options(annotations)
        age_s = self._ages.age(key, uid_of(pod))
        node = find_str(pod, "spec", "nodeName")
        if not node:
            if _is_left_unscheduled(pod, options):
                return None
            wait = 0.0 if controller_of(pod) is not None or options.given or HOOK in annotations else BARE_S
            if age_s < wait:
                return wait - age_s
            node = self._choose(pod)
            if not node:
                self._unschedulable(key, pod)
                return None
        elif node != SIMULATED_NODE and self._state.get(Key(NODES, "", node)) is None:
            return None
        fate, again_s = _fate(pod, options, age_s)
        crashes = _restarts(pod)
        if fate is Fate.CRASHING:
            crashes, again_s = _crashes(max(age_s - options.ready_after_s, 0.0))
            crashes = max(crashes, self._tolerated_failures(pod) + 1)
        self._report(key, pod, node, fate, StatusFacts(self._state.time(), "", options.exit_code, crashes))
        return again_s

    # -- keys to reconcile

    def _of_owner(self, change: Change) -> Iterable[Key]:
        """Yield the Pods of a workload if the workload's simulation annotations changed."""
        if change.type is not ChangeType.MODIFIED or not changed(change.previous, change.obj):
            return
        for key, one in self._state.dependents(uid_of(change.obj)):
            if key.collection == PODS:
                yield key
            elif key.collection == REPLICA_SETS:
                yield from (pod for pod, _ in self._state.dependents(uid_of(one)) if pod.collection == PODS)

    def _unscheduled(self, change: Change) -> Iterable[Key]:
        """Yield the Pods that have no node, and the Pods on the changed node."""
        if change.type is ChangeType.DELETED:
            return
        for pod in self._state.objects(PODS):
            if not find_str(pod, "spec", "nodeName") or find(pod, "spec", "nodeName") == name_of(change.obj):
                yield key_of(PODS, pod)

    # -- actions

    def _choose(self, pod: JsonObject) -> str:
        """Return the node for a Pod, or "" if none fits."""
        target = affine_node(pod)
        if target:
            return target
        nodes = list(self._state.objects(NODES))
        if not nodes:
            return SIMULATED_NODE
        fitting = fitting_nodes(pod, nodes)
        self._turn += 1
        return fitting[self._turn % len(fitting)] if fitting else ""

    def _unschedulable(self, key: Key, pod: JsonObject) -> None:
        count = sum(1 for _ in self._state.objects(NODES))
        message = f"0/{count} nodes are available: {count} node(s) were unschedulable or not ready."
        condition: JsonObject = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": self._state.time(),
            "reason": "Unschedulable",
            "message": message,
        }
        if find(pod, "status", "conditions", 0, "message") != message:
            status = find_object(pod, "status") | {"conditions": [condition]}
            self._state.set_status(key, pod, status, manager="kube-scheduler")
            self._state.record_event(pod, "default-scheduler", "FailedScheduling", message, warning=True)

    def _report(self, key: Key, pod: JsonObject, node: str, fate: Fate, facts: StatusFacts) -> None:
        """Bind the Pod and report its status in one write."""
        bound = {**pod, "spec": find_object(pod, "spec") | {"nodeName": node}}
        if not find_str(pod, "status", "podIP"):
            self._addresses += 1
        code = facts.exit_code or int(fate in (Fate.CRASHING, Fate.FAILED))
        facts = replace(facts, ip=_address(self._addresses), exit_code=code)
        new = {**bound, "status": pod_status(bound, fate, facts)}
        if new == pod:
            return
        served = self._state.served(key, pod)
        new = record_update(
            bound, new, manager="kubelet", subresource="status", now=self._state.now(), lists=served.version.lists
        )
        stored = self._state.backend.put(key, new)
        if node != find_str(pod, "spec", "nodeName"):
            place = f"{key.namespace}/{key.name}"
            self._state.record_event(
                stored, "default-scheduler", "Scheduled", f"Successfully assigned {place} to {node}"
            )
        match fate:
            case Fate.CRASHING:
                message = "Back-off restarting failed container"
                self._state.record_event(stored, "kubelet", "BackOff", message, warning=True)
            case Fate.PULL_FAILED:
                self._state.record_event(stored, "kubelet", "Failed", "Error: ImagePullBackOff", warning=True)
            case _:
                pass

    def _tolerated_failures(self, pod: JsonObject) -> int:
        """Return the number of failures that the Job of a Pod tolerates, or -1 for a Pod without a Job.

        A crashing Pod reports at least one restart more than this number from the start. So its Job fails immediately, and does
        not wait for the back-off of the Pod.
        """
        if find(controller_of(pod), "kind") != "Job":
            return -1
        key = self._state.controller_key(pod)
        job = None if key is None else self._state.get(key)
        return -1 if job is None else find_int(job, "spec", "backoffLimit", default=6)

    def _finish(self, key: Key, pod: JsonObject) -> float | None:
        """Remove a Pod that is being deleted, unless it has finalizers or no node.

        If the Pod's node is neither the simulated node nor a Node object, no kubelet stops its containers. The Pod is then
        removed at the end of its grace period; until then, return the seconds that are left.
        """
        node = find_str(pod, "spec", "nodeName")
        if not node or find_list(pod, "metadata", "finalizers"):
            return None
        ends = parse_time(find_str(pod, "metadata", "deletionTimestamp"))
        if node != SIMULATED_NODE and self._state.get(Key(NODES, "", node)) is None and ends is not None:
            left_s = (ends - self._state.now()).total_seconds()
            if left_s > 0:
                return left_s
        self._state.end_pod(key, pod)
        return None


def _reported_by_others(pod: JsonObject) -> bool:
    """Return whether a manager that is not a component of the cluster wrote the Pod's status."""
    entries = find_list(pod, "metadata", "managedFields")
    return any(find(one, "subresource") == "status" and find_str(one, "manager") not in _OURS for one in entries)


def _is_left_unscheduled(pod: JsonObject, options: SimulationOptions) -> bool:
    scheduler = find_str(pod, "spec", "schedulerName", default="default-scheduler")
    gated = find_list(pod, "spec", "schedulingGates")
    return options.never_scheduled or bool(gated) or scheduler != "default-scheduler"


def _fate(pod: JsonObject, options: SimulationOptions, age_s: float) -> tuple[Fate, float | None]:
    """Return the state of the containers now, and the seconds until this state must be checked again."""
    if options.pull_failure:
        return Fate.PULL_FAILED, None
    left = options.ready_after_s - age_s
    if options.crash_loop:
        return Fate.CRASHING, None
    if find_str(pod, "spec", "restartPolicy") in {"Never", "OnFailure"}:
        if options.never_ready:
            return Fate.READY, None
        if left > 0:
            return Fate.READY, left
        if not options.exit_code:
            return Fate.DONE, None
        if find_str(pod, "spec", "restartPolicy") == "OnFailure":
            return Fate.CRASHING, None
        return Fate.FAILED, None
    own = find_str(pod, "metadata", "annotations", "wharfinger.dev/never-ready")
    if _was_ready(pod) and own.lower() != "true":
        return Fate.READY, None
    if options.never_ready:
        return Fate.RUNNING, None
    return (Fate.RUNNING, left) if left > 0 else (Fate.READY, None)


def _crashes(age_s: float) -> tuple[int, float]:
    """Return the number of crashes of a container that crashes at each start, and the seconds until its next crash."""
    count, at, back_off = 1, 10.0, 10.0
    while at <= age_s:
        count += 1
        back_off = min(back_off * 2, _LONGEST_BACK_OFF_S)
        at += back_off
    return count, at - age_s


def _was_ready(pod: JsonValue) -> bool:
    statuses = find_list(pod, "status", "containerStatuses")
    return bool(statuses) and all(find(one, "ready") is True for one in statuses)


def _restarts(pod: JsonValue) -> int:
    return find_int(pod, "status", "containerStatuses", 0, "restartCount")


def _address(number: int) -> str:
    return f"10.{244 + number // 65025 % 8}.{number // 255 % 255}.{number % 255 + 1}"
