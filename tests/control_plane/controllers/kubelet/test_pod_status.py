"""The status of Pods and their containers."""

import pytest

from wharfinger.control_plane.controllers.kubelet.pod_status import Fate, StatusFacts, pod_status
from wharfinger.formats.json.value import JsonObject, find

POD: JsonObject = {
    "metadata": {"name": "p", "namespace": "x", "uid": "1-2", "generation": 4},
    "spec": {"containers": [{"name": "a", "image": "i"}]},
}
FACTS = StatusFacts("2026-01-01T00:00:00Z", "10.244.0.1")


@pytest.mark.parametrize(
    ("fate", "phase", "ready"),
    [
        (Fate.RUNNING, "Running", "False"),
        (Fate.READY, "Running", "True"),
        (Fate.DONE, "Succeeded", "False"),
        (Fate.FAILED, "Failed", "False"),
        (Fate.CRASHING, "Running", "False"),
        (Fate.PULL_FAILED, "Pending", "False"),
    ],
)
def test_each_outcome_has_a_phase_and_readiness(fate: Fate, phase: str, ready: str) -> None:
    status = pod_status(POD, fate, FACTS)
    assert (status["phase"], find(status, "conditions", 2, "type"), find(status, "conditions", 2, "status")) == (
        phase,
        "Ready",
        ready,
    )
    assert status["observedGeneration"] == 4


def test_unchanged_conditions_keep_their_times() -> None:
    first = {**POD, "status": pod_status(POD, Fate.RUNNING, FACTS)}
    later = pod_status(first, Fate.READY, StatusFacts("2026-01-01T00:00:09Z", "other"))
    assert later["startTime"] == find(later, "containerStatuses", 0, "state", "running", "startedAt") == FACTS.time
    assert later["podIP"] == FACTS.ip
    assert find(later, "conditions", 2, "lastTransitionTime") == "2026-01-01T00:00:09Z"
    assert find(later, "conditions", 1, "lastTransitionTime") == FACTS.time


def test_the_back_off_is_formatted_as_in_go() -> None:
    said = [
        find(
            pod_status(POD, Fate.CRASHING, StatusFacts(FACTS.time, "", 1, restarts)),
            *("containerStatuses", 0, "state", "waiting", "message"),
        )
        for restarts in (1, 4, 50)
    ]
    assert [str(one).split()[1] for one in said] == ["10s", "1m20s", "5m0s"]


def test_a_pod_on_the_host_network_has_the_address_of_the_host() -> None:
    pod: JsonObject = {**POD, "spec": {"hostNetwork": True, "containers": []}}
    status = pod_status(pod, Fate.READY, FACTS)
    assert status["podIP"] == status["hostIP"]
