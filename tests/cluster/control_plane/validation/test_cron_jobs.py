"""Schedules of old."""

from wharfinger.cluster.control_plane.validation.cron_jobs import cron_job_update_errors


def test_a_zone_in_a_schedule_of_old_may_stay_there_alone() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}
    spec = {
        "schedule": "TZ=UTC * * * * *",
        "concurrencyPolicy": "Allow",
        "jobTemplate": {"spec": {"template": template}},
    }
    old = {"spec": spec}
    new = {"spec": spec | {"timeZone": "UTC"}}
    assert not [error for error in cron_job_update_errors(old, old) if error.field == "spec.schedule"]
    assert [error for error in cron_job_update_errors(new, old) if error.field == "spec.schedule"]
