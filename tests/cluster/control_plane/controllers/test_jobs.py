"""Jobs that complete, fail, wait and are cleaned up."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from wharfinger.cluster.control_plane.controllers.jobs import reconcile_job
from wharfinger.cluster.control_plane.controllers.writes import NOTHING, Delete, Patch, Plan
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue, as_object, find, find_list

JOBS: Final = ResourceType("batch", "v1", "Job", "jobs", namespaced=True)
KEY: Final = ObjectKey(JOBS, "n", "j")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
STARTED: Final = "2026-01-01T00:00:00Z"


def job(*, annotations: JsonObject | None = None, status: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    metadata: JsonObject = {"name": "j", "uid": "u", "annotations": annotations or {}}
    return {
        "metadata": metadata,
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 2, **spec},
        "status": status or {},
    }


def status_of(plan: Plan) -> JsonObject:
    (write,) = plan.writes
    assert isinstance(write, Patch)
    assert write.subresource == "status"
    return as_object(write.patch["status"], "status")


def said(status: JsonObject) -> list[tuple[JsonValue, JsonValue]]:
    return [(find(one, "type"), find(one, "reason")) for one in find_list(status, "conditions")]


def test_a_job_completes_at_once() -> None:
    status = status_of(reconcile_job(KEY, job(completions=3), 0, NOW))
    assert said(status) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert (status["succeeded"], status["startTime"], status["completionTime"]) == (3, STARTED, STARTED)
    assert status["ready"] == status["terminating"] == 0


def test_a_job_fails_where_it_is_told_to() -> None:
    status = status_of(reconcile_job(KEY, job(annotations={"wharfinger.dev/fail": "true"}), 0, NOW))
    assert said(status) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert status["failed"] == 3
    assert "completionTime" not in status


def test_a_job_runs_for_its_time() -> None:
    slow = job(annotations={"wharfinger.dev/ready-after": "5"})
    plan = reconcile_job(KEY, slow, 2, NOW)
    status = status_of(plan)
    assert plan.again_s == 3
    assert (status["active"], status["startTime"]) == (1, STARTED)
    ended = status_of(reconcile_job(KEY, slow | {"status": status}, 5, NOW + timedelta(seconds=5)))
    assert ended["completionTime"] == "2026-01-01T00:00:05Z"
    assert "startTime" not in ended, "it stays as it is"
    assert ended["active"] is None


def test_a_job_that_never_ends_has_a_deadline() -> None:
    stuck = job(annotations={"wharfinger.dev/never-ready": "true"})
    assert reconcile_job(KEY, stuck, 0, NOW).again_s is None
    limited = job(annotations={"wharfinger.dev/never-ready": "true"}, activeDeadlineSeconds=10)
    assert reconcile_job(KEY, limited, 4, NOW).again_s == 6
    status = status_of(reconcile_job(KEY, limited, 10, NOW))
    assert said(status) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]


def test_a_suspended_job_waits() -> None:
    status = status_of(reconcile_job(KEY, job(suspend=True), 0, NOW))
    assert said(status) == [("Suspended", "JobSuspended")]
    assert "startTime" not in status


def test_a_job_of_another_controller_is_left_alone() -> None:
    assert reconcile_job(KEY, job(managedBy="example.com/other"), 0, NOW) == NOTHING


@pytest.mark.parametrize(("ttl", "after_s", "plan"), [
    (None, 100, NOTHING),
    (60, 40, Plan(again_s=20)),
    (60, 60, Plan((Delete(KEY, "u"),))),
])  # fmt: skip
def test_a_job_that_is_over(ttl: int | None, after_s: int, plan: Plan) -> None:
    finished = status_of(reconcile_job(KEY, job(), 0, NOW))
    over = job(status=finished, ttlSecondsAfterFinished=ttl)
    assert reconcile_job(KEY, over, 0, NOW + timedelta(seconds=after_s)) == plan
