"""DaemonSets: one Pod per node.

In a cluster without Node objects they have no Pods, as in a real cluster without machines. A DaemonSet with simulation
annotations (:mod:`~wharfinger.control_plane.controllers.framework.simulation_annotations`) then has one Pod on the simulated
node, so that the annotations can be tried.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.control_plane.api.by_kind.workload_defaults import TEMPLATE_GENERATION
from wharfinger.control_plane.api.core.nodes import SIMULATED_NODE
from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    DAEMON_SETS,
    NODES,
    PODS,
    annotation,
    generation_of,
    is_deleted,
    is_over,
    key_of,
    labels_of,
    name_of,
    with_fields,
)
from wharfinger.control_plane.controllers.framework.simulation_annotations import read_options
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.kubelet.nodes import affine_node, fits
from wharfinger.control_plane.controllers.workloads.pod_making import pod_of_template
from wharfinger.control_plane.controllers.workloads.replica_sets import available_in_s
from wharfinger.control_plane.controllers.workloads.revisions import (
    delete_old_revisions,
    ensure_revision,
    revision_hashes,
    revision_of_pod,
)
from wharfinger.control_plane.controllers.workloads.rolling import share
from wharfinger.control_plane.controllers.workloads.template_hash import revision_data, template_hash
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str

_COMPONENT: Final = "daemonset-controller"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSetController:
    """The controller of DaemonSets."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        wakes = {DAEMON_SETS: itself, PODS: self._of_pod, NODES: self._all}
        return Controller("DaemonSet", self.reconcile, wakes)

    def _of_pod(self, change: Change) -> Iterable[Key]:
        key = self._state.controller_key(change.obj)
        if key is not None and key.collection == DAEMON_SETS:
            yield key

    def _all(self, _change: Change) -> Iterable[Key]:
        return [key_of(DAEMON_SETS, one) for one in self._state.objects(DAEMON_SETS)]

    def reconcile(self, key: Key) -> float | None:
        """Create and delete the Pods of one DaemonSet, and update its counts."""
        one = self._state.get(key)
        if one is None or is_deleted(one):
            return None
        template = find_object(one, "spec", "template")
        digest = template_hash(template)
        labels = labels_of(template) | {"controller-revision-hash": digest}
        generation = annotation(one, TEMPLATE_GENERATION)
        annotations: JsonObject = {TEMPLATE_GENERATION: generation} if generation else {}
        made = ensure_revision(self._state, one, revision_data(template), labels, digest, annotations)
        if made is not None:
            digest = find_str(labels_of(made), "controller-revision-hash") or digest
        nodes = self._nodes(one)
        self._step(one, nodes, digest)
        pods = self._pods(one)
        status, again_s = _status(self._state, one, pods, nodes, digest)
        self._state.set_status(key, one, status)
        delete_old_revisions(self._state, one, {f"{name_of(one)}-{used}" for used in (digest, *revision_hashes(pods))})
        return again_s

    def _pods(self, one: JsonObject) -> list[JsonObject]:
        return list(self._state.owned(PODS, one))

    def _nodes(self, one: JsonObject) -> list[str]:
        """Return the names of the nodes that should have a Pod."""
        nodes = list(self._state.objects(NODES))
        if not nodes:
            return [SIMULATED_NODE] if read_options(find_object(one, "metadata", "annotations")).given else []
        pod: JsonObject = {"spec": find_object(one, "spec", "template", "spec")}
        return sorted(name_of(node) for node in nodes if fits(pod, node, daemon=True))

    def _step(self, one: JsonObject, nodes: Sequence[str], digest: str) -> None:
        living: dict[str, JsonObject] = {}
        for pod in self._pods(one):
            node = target_of(pod)
            if is_over(pod) or node not in nodes or node in living:
                self._remove(one, pod)
            else:
                living[node] = pod
        for node in nodes:
            if node not in living:
                made = self._state.create(pod_for_node(one, node, digest))
                if made is not None:
                    self._state.record_event(one, _COMPONENT, "SuccessfulCreate", f"Created pod: {name_of(made)}")
        self._replace(one, living, digest)

    def _replace(self, one: JsonObject, living: dict[str, JsonObject], digest: str) -> None:
        """In a rolling update, delete Pods of an older template: all unavailable ones, and as many others as ``maxUnavailable``
        still allows.
        """
        if find_str(one, "spec", "updateStrategy", "type", default="RollingUpdate") != "RollingUpdate":
            return
        given = find(one, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
        allowed = max(share(1 if given is None else given, len(living), up=True), 1)
        wait_s, now = find_int(one, "spec", "minReadySeconds"), self._state.now()
        old = [pod for pod in living.values() if revision_of_pod(pod) != digest and not is_deleted(pod)]
        down = [pod for pod in living.values() if available_in_s(pod, wait_s, now) != 0]
        allowed -= len(down)
        for pod in sorted(old, key=lambda pod: available_in_s(pod, wait_s, now) == 0):
            if available_in_s(pod, wait_s, now) == 0:
                if allowed <= 0:
                    return
                allowed -= 1
            self._remove(one, pod)

    def _remove(self, one: JsonObject, pod: JsonObject) -> None:
        if not is_deleted(pod):
            self._state.delete(key_of(PODS, pod), pod)
            self._state.record_event(one, _COMPONENT, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")


def _status(
    state: ClusterState, one: JsonObject, pods: Sequence[JsonObject], nodes: Sequence[str], digest: str
) -> tuple[JsonObject, float | None]:
    wait_s = find_int(one, "spec", "minReadySeconds")
    placed = {target_of(pod): pod for pod in pods if not is_deleted(pod) and target_of(pod) in nodes}
    lefts = [available_in_s(pod, wait_s, state.now()) for pod in placed.values()]
    available = sum(left == 0 for left in lefts)
    counts = {
        "numberAvailable": available,
        "numberUnavailable": len(nodes) - available,
        "updatedNumberScheduled": sum(revision_of_pod(pod) == digest for pod in placed.values()),
    }
    status: JsonObject = {
        "observedGeneration": generation_of(one),
        "currentNumberScheduled": len(placed),
        "desiredNumberScheduled": len(nodes),
        "numberMisscheduled": sum(target_of(pod) not in nodes for pod in pods if not is_deleted(pod)),
        "numberReady": sum(left is not None for left in lefts),
    }
    waits = [left for left in lefts if left]
    return status | {name: count for name, count in counts.items() if count}, min(waits, default=None)


def pod_for_node(one: JsonObject, node: str, digest: str) -> JsonObject:
    """Return the Pod of a DaemonSet for a node. The Pod's affinity names the node, so the scheduler assigns the Pod to it."""
    pod = pod_of_template(one, find_object(one, "spec", "template"))
    labels = labels_of(pod) | {"controller-revision-hash": digest}
    generation = annotation(one, TEMPLATE_GENERATION)
    if generation:
        labels["pod-template-generation"] = generation
    spec = find_object(pod, "spec")
    field: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node]}
    required: JsonObject = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = find_object(spec, "affinity")
    node_affinity = find_object(affinity, "nodeAffinity") | {"requiredDuringSchedulingIgnoredDuringExecution": required}
    tolerated: list[JsonValue] = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
    spec = spec | {
        "affinity": affinity | {"nodeAffinity": node_affinity},
        "tolerations": [*find_list(spec, "tolerations"), *tolerated],
    }
    return with_fields({**pod, "spec": spec}, labels=labels)


def target_of(pod: JsonObject) -> str:
    """Return the node that a Pod of a DaemonSet runs on or is meant for."""
    return find_str(pod, "spec", "nodeName") or affine_node(pod)
