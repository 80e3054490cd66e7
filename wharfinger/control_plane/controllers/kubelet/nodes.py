"""Simulated nodes: Node objects that users create become ready after one second.

A new cluster has no nodes, like a real cluster without machines; Pods run nevertheless
(:mod:`~wharfinger.control_plane.controllers.kubelet.pods`).
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Ages, Controller, itself
from wharfinger.control_plane.controllers.framework.objects import NODES, is_deleted, labels_of, name_of, uid_of
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str

READY_S: Final = 1.0
"""Seconds until a new Node is ready."""
NOT_READY: Final = "node.kubernetes.io/not-ready"
_CAPACITY: Final[JsonObject] = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class NodeController:
    """The part of a kubelet that reports its node."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._ages = Ages()

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("Node", self.reconcile, {NODES: itself})

    def reconcile(self, key: Key) -> float | None:
        """Report a Node as ready, unless its status already has conditions. A new Node becomes ready after READY_S: until then,
        return the remaining seconds.
        """
        node = self._state.get(key)
        if node is None:
            self._ages.forget(key)
            return None
        if is_deleted(node) or find_list(node, "status", "conditions"):
            return None
        left = READY_S - self._ages.age(key, uid_of(node))
        if left > 0:
            return left
        time = self._state.time()
        conditions: list[JsonValue] = [
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": time,
                "lastTransitionTime": time,
                "reason": reason,
                "message": message,
            }
            for kind, status, reason, message in _CONDITIONS
        ]
        reported: JsonObject = {
            "conditions": conditions,
            "addresses": [{"type": "Hostname", "address": name_of(node)}],
            "capacity": _CAPACITY,
            "allocatable": _CAPACITY,
        }
        status = reported | find_object(node, "status") | {"conditions": conditions}
        node = self._state.set_status(key, node, status, manager="kubelet")
        taints: list[JsonValue] = [one for one in find_list(node, "spec", "taints") if find(one, "key") != NOT_READY]
        if taints != find_list(node, "spec", "taints"):
            spec = {name: value for name, value in find_object(node, "spec").items() if name != "taints"}
            self._state.update(key, {**node, "spec": spec | ({"taints": taints} if taints else {})})
        return None


def fitting_nodes(pod: JsonObject, nodes: Iterable[JsonObject], *, daemon: bool = False) -> list[str]:
    """Return the names of the nodes that fit a Pod, sorted; ``daemon`` has the same meaning as in :func:`fits`."""
    return sorted(name_of(node) for node in nodes if fits(pod, node, daemon=daemon))


def fits(pod: JsonObject, node: JsonObject, *, daemon: bool = False) -> bool:
    """Return whether a node fits a Pod (or a pod template).

    The node must have the labels of the Pod's node selector, be ready, and not be cordoned. The Pod must tolerate the node's
    taints. For a Pod of a DaemonSet (``daemon``), the node may be cordoned or not ready, and its ``node.kubernetes.io/`` taints
    are ignored.
    """
    wanted, labels = find_object(pod, "spec", "nodeSelector"), labels_of(node)
    if is_deleted(node) or any(labels.get(name) != value for name, value in wanted.items()):
        return False
    if not daemon and (find(node, "spec", "unschedulable") is True or not _is_ready(node)):
        return False
    taints = [one for one in find_list(node, "spec", "taints") if find_str(one, "effect") != "PreferNoSchedule"]
    if daemon:
        taints = [one for one in taints if not find_str(one, "key").startswith("node.kubernetes.io/")]
    return all(_tolerated(pod, taint) for taint in taints)


def _is_ready(node: JsonObject) -> bool:
    entries = find_list(node, "status", "conditions")
    return any(find(one, "type") == "Ready" and find(one, "status") == "True" for one in entries)


def _tolerated(pod: JsonObject, taint: JsonValue) -> bool:
    for one in find_list(pod, "spec", "tolerations"):
        key, exists = find_str(one, "key"), find_str(one, "operator") == "Exists"
        effect = find_str(one, "effect")
        if effect and effect != find_str(taint, "effect"):
            continue
        if (not key and exists) or (
            key == find_str(taint, "key") and (exists or find_str(one, "value") == find_str(taint, "value"))
        ):
            return True
    return False


def affine_node(pod: JsonObject) -> str:
    """Return the node that the Pod's affinity requires by name, as in Pods of DaemonSets; "" if it requires none."""
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    field = find(pod, "spec", *path, 0, "matchFields", 0)
    return find_str(field, "values", 0) if find(field, "key") == "metadata.name" else ""
