"""Validation of the statuses of Jobs."""

from wharfinger.control_plane.api.batch.job_status import job_status_errors
from wharfinger.formats.json.value import JsonObject


def test_overlapping_completed_and_failed_indexes_are_refused() -> None:
    spec: JsonObject = {"completions": 5, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
    new: JsonObject = {"spec": spec, "status": {"completedIndexes": "0-2", "failedIndexes": "2"}}
    assert [error.field for error in job_status_errors(new, {"spec": spec})] == ["status.failedIndexes"]


def test_unchanged_fields_are_not_checked() -> None:
    obj: JsonObject = {
        "spec": {},
        "status": {"completedIndexes": "x", "conditions": [{"type": "Complete", "status": "True"}]},
    }
    assert not job_status_errors(obj, obj)
