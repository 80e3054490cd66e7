import pytest

from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.api.core.pods import cells as pod
from wharfinger.formats.json.value import JsonObject, JsonValue


def shown(obj: JsonObject) -> list[JsonValue]:
    return [pod.pod_ready(obj, NOW), pod.pod_status(obj, NOW), pod.pod_restarts(obj, NOW)]


def running(*statuses: JsonValue, phase: str = "Running", **more: JsonValue) -> JsonObject:
    return {
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": phase, "containerStatuses": [*statuses], **more},
    }


UP: JsonObject = {"ready": True, "restartCount": 0, "state": {"running": {}}}
READY: JsonValue = [{"type": "Ready", "status": "True"}]


def ended(code: int, **more: JsonValue) -> JsonObject:
    return {"restartCount": 1, "state": {"terminated": {"exitCode": code, **more}}}


@pytest.mark.parametrize(
    ("obj", "cells"),
    [
        ({"status": {"phase": "Pending"}}, ["0/0", "Pending", "0"]),
        (running(UP, UP), ["2/2", "Running", "0"]),
        (running(UP, {"state": {"waiting": {"reason": "ImagePullBackOff"}}}), ["1/2", "ImagePullBackOff", "0"]),
        (running(ended(3), UP), ["1/2", "ExitCode:3", "1"]),
        (running(ended(0, signal=9)), ["0/2", "Signal:9", "1"]),
        (running(ended(0, reason="Completed"), UP, conditions=READY), ["1/2", "Running", "1"]),
        (running(ended(0, reason="Completed"), UP), ["1/2", "NotReady", "1"]),
        (running(ended(0, reason="Completed"), ended(1, reason="Error")), ["0/2", "Error", "2"]),
        (running(reason="Evicted", phase="Failed"), ["0/2", "Evicted", "0"]),
        (
            running(conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            ["0/2", "SchedulingGated", "0"],
        ),
        ({**running(UP), "metadata": {"deletionTimestamp": "t"}}, ["1/2", "Terminating", "0"]),
        (
            {**running(phase="Succeeded"), "metadata": {"deletionTimestamp": "t"}},
            ["0/2", "Succeeded", "0"],
        ),
        ({**running(reason="NodeLost"), "metadata": {"deletionTimestamp": "t"}}, ["0/2", "Unknown", "0"]),
    ],
)
def test_cells_show_readiness_state_and_restarts(obj: JsonObject, cells: list[JsonValue]) -> None:
    assert shown(obj) == cells


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"state": {"running": {}}}, "Init:0/1"),
        ({"state": {"waiting": {"reason": "PodInitializing"}}}, "Init:0/1"),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, "Init:CrashLoopBackOff"),
        ({"state": {"terminated": {"exitCode": 2}}}, "Init:ExitCode:2"),
        ({"state": {"terminated": {"exitCode": 2, "reason": "Error"}}}, "Init:Error"),
        ({"state": {"terminated": {"exitCode": 0}}}, "Pending"),
    ],
)
def test_the_status_cell_shows_the_init_container_reason(status: JsonObject, reason: str) -> None:
    obj: JsonObject = {
        "spec": {"initContainers": [{"name": "i"}]},
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", **status}]},
    }

    assert pod.pod_status(obj, NOW) == reason


def test_cells_count_sidecars_and_show_the_last_restart() -> None:
    last: JsonObject = {"terminated": {"finishedAt": "2026-11-21T03:58:00Z"}}
    side: JsonObject = {**UP, "name": "s", "started": True, "restartCount": 2, "lastState": last}
    obj: JsonObject = {
        "spec": {"initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "a"}]},
        "status": {"phase": "Running", "initContainerStatuses": [side], "containerStatuses": [UP]},
    }

    assert shown(obj) == ["2/2", "Running", "2 (2m ago)"]


def test_cells_show_the_pod_address_and_readiness_gates() -> None:
    conditions: JsonValue = [{"type": "x", "status": "True"}, {"type": "y", "status": "False"}]
    obj: JsonObject = {
        "spec": {"readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]},
        "status": {"phase": "Failed", "podIPs": [{"ip": "10.0.0.1"}], "conditions": conditions},
    }

    assert pod.pod_ip(obj, NOW) == "10.0.0.1"
    assert pod.pod_ip({}, NOW) == "<none>"
    assert pod.readiness_gates(obj, NOW) == "1/2"
    assert pod.readiness_gates({}, NOW) == "<none>"
    assert pod.row_conditions({}) == []
    assert pod.row_conditions(obj) == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
