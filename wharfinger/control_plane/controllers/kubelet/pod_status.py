"""The status that a kubelet reports for a Pod: its phase, its conditions, and the state of each container."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from wharfinger.control_plane.controllers.framework.objects import generation_of, name_of, uid_of
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.kube.times import transition_time

HOST_IP: Final = "192.168.0.2"


class Fate(Enum):
    """The simulated state of a Pod's containers."""

    RUNNING = "running"
    READY = "ready"
    DONE = "done"
    FAILED = "failed"
    CRASHING = "crashing"
    PULL_FAILED = "pull failed"


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """The facts for one status: the time in RFC 3339, the Pod's address, and its containers' exit code and number of restarts."""

    time: str
    ip: str
    exit_code: int = 0
    restarts: int = 0


_PHASES: Final = {Fate.DONE: "Succeeded", Fate.FAILED: "Failed", Fate.PULL_FAILED: "Pending"}


def pod_status(pod: JsonObject, fate: Fate, facts: StatusFacts) -> JsonObject:
    """Return the whole status; unchanged conditions keep their times, and conditions of other managers are kept."""
    host_network = find(pod, "spec", "hostNetwork") is True
    ip = HOST_IP if host_network else find_str(pod, "status", "podIP") or facts.ip
    status: JsonObject = {
        **find_object(pod, "status"),
        "phase": _PHASES.get(fate, "Running"),
        "conditions": _conditions(pod, fate, facts),
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": find_str(pod, "status", "startTime") or facts.time,
        "observedGeneration": generation_of(pod),
        "containerStatuses": [
            _container(pod, container, fate, facts) for container in find_list(pod, "spec", "containers")
        ],
    }
    if not find_str(status, "qosClass"):
        status["qosClass"] = "BestEffort"
    initial = find_list(pod, "spec", "initContainers")
    if initial:
        status["initContainerStatuses"] = [_initial(pod, container, fate, facts) for container in initial]
    return status


def _conditions(pod: JsonObject, fate: Fate, facts: StatusFacts) -> list[JsonValue]:
    names = " ".join(name for name in (find_str(one, "name") for one in find_list(pod, "spec", "containers")))
    over = {Fate.DONE: "PodCompleted", Fate.FAILED: "PodFailed"}.get(fate, "")
    ready = fate is Fate.READY
    unready = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
    why: JsonObject = {} if ready else {"reason": over} if over else {**unready}
    gates = [find_str(gate, "conditionType") for gate in find_list(pod, "spec", "readinessGates")]
    closed = [gate for gate in gates if find(_old(pod, gate), "status") != "True"]
    if ready and closed:
        message = "; ".join(
            f'corresponding condition of pod readiness gate "{gate}" does not exist.' for gate in closed
        )
        gated: JsonObject = {"reason": "ReadinessGatesNotReady", "message": message}
    else:
        gated = why
    wanted: dict[str, tuple[bool, JsonObject]] = {
        "PodReadyToStartContainers": (not over, {}),
        "Initialized": (True, {"reason": "PodCompleted"} if fate is Fate.DONE else {}),
        "Ready": (ready and not closed, gated),
        "ContainersReady": (ready, why),
        "PodScheduled": (True, {}),
    }
    made: list[JsonValue] = [_condition(pod, kind, *what, facts.time) for kind, what in wanted.items()]
    others = [one for one in find_list(pod, "status", "conditions") if find_str(one, "type") not in wanted]
    return [*made, *others]


def _condition(pod: JsonObject, kind: str, true: bool, why: JsonObject, time: str) -> JsonObject:  # noqa: FBT001
    status = "True" if true else "False"
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": transition_time(find_list(pod, "status", "conditions"), kind, status, time),
        "observedGeneration": generation_of(pod),
        **why,
    }


def _old(pod: JsonObject, kind: str) -> JsonValue:
    return next((one for one in find_list(pod, "status", "conditions") if find(one, "type") == kind), None)


def _container(pod: JsonObject, container: JsonValue, fate: Fate, facts: StatusFacts) -> JsonObject:
    name, image = find_str(container, "name"), find_str(container, "image")
    state: JsonObject
    last: JsonObject = {}
    started = _started(pod, name) or facts.time
    match fate:
        case Fate.RUNNING | Fate.READY:
            state = {"running": {"startedAt": started}}
        case Fate.DONE | Fate.FAILED:
            state = _ended(pod, name, started, facts)
        case Fate.CRASHING:
            back_off = min(10 * (1 << min(max(facts.restarts - 1, 0), 5)), 300)
            message = (
                f"back-off {_go_duration(back_off)} restarting failed container={name} "
                f"pod={name_of(pod)}_{find_str(pod, 'metadata', 'namespace')}({uid_of(pod)})"
            )
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            last = _ended(pod, name, started, facts)
        case Fate.PULL_FAILED:
            state = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}}
    status: JsonObject = {
        "name": name,
        "image": image,
        "imageID": "" if fate is Fate.PULL_FAILED else image,
        "ready": fate is Fate.READY,
        "started": fate in (Fate.RUNNING, Fate.READY),
        "restartCount": facts.restarts,
        "state": state,
        "lastState": last,
    }
    if fate is not Fate.PULL_FAILED:
        status["containerID"] = _container_id(pod, name)
    return status


def _initial(pod: JsonObject, container: JsonValue, fate: Fate, facts: StatusFacts) -> JsonObject:
    """Return the status of an init container: it has succeeded, or runs as a sidecar (``restartPolicy: Always``)."""
    name = find_str(container, "name")
    sidecar = find_str(container, "restartPolicy") == "Always" and fate in (Fate.RUNNING, Fate.READY)
    time = find_str(pod, "status", "startTime") or facts.time
    return {
        "name": name,
        "image": find_str(container, "image"),
        "imageID": find_str(container, "image"),
        "containerID": _container_id(pod, name),
        "ready": True,
        "started": sidecar,
        "restartCount": 0,
        "state": {"running": {"startedAt": time}} if sidecar else _ended(pod, name, time, StatusFacts(time, "")),
        "lastState": {},
    }


def _ended(pod: JsonObject, name: str, started: str, facts: StatusFacts) -> JsonObject:
    return {
        "terminated": {
            "exitCode": facts.exit_code,
            "reason": "Error" if facts.exit_code else "Completed",
            "startedAt": started,
            "finishedAt": facts.time,
            "containerID": _container_id(pod, name),
        }
    }


def _started(pod: JsonObject, name: str) -> str:
    for status in find_list(pod, "status", "containerStatuses"):
        if find(status, "name") == name:
            return find_str(status, "state", "running", "startedAt")
    return ""


def _container_id(pod: JsonObject, name: str) -> str:
    digest = (uid_of(pod).replace("-", "") + name.encode().hex())[:64].ljust(64, "0")
    return f"containerd://{digest}"


def _go_duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
