"""Validation of the schedules of existing CronJobs."""

from wharfinger.control_plane.api.batch.cron_jobs import cron_job_update_errors
from wharfinger.formats.json.value import JsonObject


def test_a_time_zone_in_a_stored_schedule_is_tolerated() -> None:
    template: JsonObject = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}
    spec: JsonObject = {
        "schedule": "TZ=UTC * * * * *",
        "concurrencyPolicy": "Allow",
        "jobTemplate": {"spec": {"template": template}},
    }
    old: JsonObject = {"spec": spec}
    new: JsonObject = {"spec": spec | {"timeZone": "UTC"}}
    assert not [error for error in cron_job_update_errors(old, old) if error.field == "spec.schedule"]
    assert [error for error in cron_job_update_errors(new, old) if error.field == "spec.schedule"]
