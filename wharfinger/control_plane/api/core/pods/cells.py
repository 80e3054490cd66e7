"""The table cells of ``kubectl get pods``: phase, reason and restarts, computed from a pod's containers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.common.cells import NONE, condition, deleted, holds, integer, said
from wharfinger.control_plane.api.common.filling import objects
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import age

_COMPLETED: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


@dataclass(slots=True)
class _Summary:
    """The combined state of the containers of one pod."""

    reason: str
    ready: int = 0
    restarts: int = 0
    restarted: str = ""
    """The latest time at which a container ended before its restart; "" if no container was restarted."""

    def add_restarts(self, container: JsonObject) -> None:
        self.restarts += integer(container, "restartCount")
        self.restarted = max(self.restarted, said(container, "lastState", "terminated", "finishedAt"))


def pod_ready(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return how many of the containers that should keep running are ready: ``1/2``."""
    total = len(objects(obj, "spec", "containers")) + len(_sidecars(obj))
    return f"{_summary(obj).ready}/{total}"


def pod_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the phase, or the reason why the pod is not running normally."""
    return _summary(obj).reason


def pod_restarts(obj: JsonObject, now: datetime) -> JsonValue:
    """Return the number of a Pod's restarts, and the age of the last one: ``3 (2m ago)``."""
    found = _summary(obj)
    return (
        f"{found.restarts} ({age(found.restarted, now)} ago)"
        if found.restarts and found.restarted
        else str(found.restarts)
    )


def pod_ip(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the first address of a Pod."""
    ips = objects(obj, "status", "podIPs")
    return said(ips[0], "ip", default=NONE) if ips else NONE


def readiness_gates(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return how many of the readiness gates have a condition that is True: ``1/2``."""
    gates = [said(gate, "conditionType") for gate in objects(obj, "spec", "readinessGates")]
    return f"{sum(holds(obj, gate) for gate in gates)}/{len(gates)}" if gates else NONE


def row_conditions(obj: JsonObject) -> list[JsonValue]:
    """Return the conditions of the table row of a Pod: they mark a completed Pod, so that clients can dim or omit its row."""
    phase = said(obj, "status", "phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _sidecars(obj: JsonObject) -> set[str]:
    """Return the names of the init containers that keep running."""
    known = objects(obj, "spec", "initContainers")
    return {said(item, "name") for item in known if item.get("restartPolicy") == "Always"}


def _summary(obj: JsonObject) -> _Summary:
    phase = said(obj, "status", "phase")
    found = _Summary(said(obj, "status", "reason", default=phase))
    if said(condition(obj, "PodScheduled"), "reason") == "SchedulingGated":
        found.reason = "SchedulingGated"
    beside = _Summary("")
    initializing = _add_init_containers(obj, found, beside)
    if not initializing or holds(obj, "Initialized"):
        found.restarts, found.restarted = beside.restarts, beside.restarted
        _add_containers(obj, found)
    if deleted(obj) and said(obj, "status", "reason") == "NodeLost":
        found.reason = "Unknown"
    elif deleted(obj) and phase not in _COMPLETED:
        found.reason = "Terminating"
    return found


def _add_init_containers(obj: JsonObject, found: _Summary, beside: _Summary) -> bool:
    """Evaluate the init containers up to the first one that is not done. Return whether there is such a container.

    The Pod's state is written to ``found``, and the restarts of sidecars to ``beside``.
    """
    sidecars, total = _sidecars(obj), len(objects(obj, "spec", "initContainers"))
    for index, container in enumerate(objects(obj, "status", "initContainerStatuses")):
        found.add_restarts(container)
        sidecar = said(container, "name") in sidecars
        if sidecar:
            beside.add_restarts(container)
        ended = find(container, "state", "terminated")
        if ended is not None and not integer(ended, "exitCode"):
            continue
        if sidecar and container.get("started") is True:
            found.ready += container.get("ready") is True
            continue
        waiting = said(container, "state", "waiting", "reason")
        if ended is not None:
            found.reason = f"Init:{_end_reason(ended)}"
        elif waiting and waiting != "PodInitializing":
            found.reason = f"Init:{waiting}"
        else:
            found.reason = f"Init:{index}/{total}"
        return True
    return False


def _end_reason(ended: JsonValue) -> str:
    """Return the reason why a container ended."""
    signal = integer(ended, "signal")
    return said(ended, "reason") or (f"Signal:{signal}" if signal else f"ExitCode:{integer(ended, 'exitCode')}")


def _add_containers(obj: JsonObject, found: _Summary) -> None:
    """Evaluate the containers from the last to the first; the reason of each replaces the reasons of the ones after it."""
    running, failed = False, ""
    for container in reversed(objects(obj, "status", "containerStatuses")):
        found.add_restarts(container)
        ended = find(container, "state", "terminated")
        if waiting := said(container, "state", "waiting", "reason"):
            found.reason = waiting
        elif ended is not None:
            found.reason = _end_reason(ended)
            failed = found.reason if integer(ended, "exitCode") else failed
        elif container.get("ready") is True and find(container, "state", "running") is not None:
            running = True
            found.ready += 1
    if found.reason == "Completed":
        if running and holds(obj, "Ready"):
            found.reason = "Running"
        elif failed or running:
            found.reason = failed or "NotReady"
