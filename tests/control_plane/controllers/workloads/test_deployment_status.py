"""The conditions of Deployments."""

from datetime import UTC, datetime

from wharfinger.control_plane.controllers.workloads.deployment_status import complete, paused_condition, status_of
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
STARTED: JsonObject = {
    "type": "Progressing",
    "status": "True",
    "reason": "ReplicaSetUpdated",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def deployment(conditions: list[JsonValue], **spec: JsonValue) -> JsonObject:
    status: JsonObject = {"conditions": conditions}
    whole: JsonObject = {"replicas": 1, "progressDeadlineSeconds": 600, **spec}
    return {"metadata": {"name": "d", "generation": 1}, "spec": whole, "status": status}


def one(**status: JsonValue) -> JsonObject:
    return {"metadata": {"name": "d-1"}, "spec": {"replicas": 1}, "status": status}


def test_a_rollout_completes_or_exceeds_its_deadline() -> None:
    status, again_s = status_of(deployment([STARTED]), one(), [one()], NOW)
    reasons = {find(entry, "type"): find(entry, "reason") for entry in find_list(status, "conditions")}
    assert (reasons["Progressing"], again_s) == ("ProgressDeadlineExceeded", None)
    status, again_s = status_of(deployment([STARTED], progressDeadlineSeconds=700), one(), [one()], NOW)
    assert again_s == 100.0


def test_progress_is_not_reported_without_a_deadline() -> None:
    endless = deployment([STARTED], progressDeadlineSeconds=2147483647)
    done = one(replicas=1, readyReplicas=1, availableReplicas=1)
    status, _ = status_of(endless, done, [done], NOW)
    assert [find(entry, "type") for entry in find_list(status, "conditions")] == ["Available"]
    assert complete(endless, status)
    assert paused_condition(endless, "") is None


def test_failures_of_replica_sets_are_reported() -> None:
    failed: JsonObject = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}
    broken = one(conditions=[failed])
    status, _ = status_of(deployment([]), broken, [broken], NOW)
    assert any(find(entry, "reason") == "FailedCreate" for entry in find_list(status, "conditions"))
