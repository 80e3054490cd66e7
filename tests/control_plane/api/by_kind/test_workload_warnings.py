"""Warnings about workloads, which the API server sends with the answer to a write."""

from wharfinger.control_plane.api.by_kind.workload_warnings import (
    cron_job_warnings,
    job_warnings,
    named_template_warnings,
    stateful_set_warnings,
)
from wharfinger.formats.json.value import JsonObject


def test_names_with_dots_cause_a_warning_on_creation() -> None:
    warnings = named_template_warnings({"metadata": {"name": "a.b"}}, None)
    assert len(warnings) == 1
    assert warnings[0].endswith("a DNS label is recommended: [must not contain dots]")
    assert not named_template_warnings({"metadata": {"name": "a.b"}}, {})


def test_jobs_with_very_many_indexes_cause_a_warning() -> None:
    spec: JsonObject = {"completionMode": "Indexed", "completions": 100_001, "parallelism": 10_001}
    assert job_warnings({"metadata": {"name": "a"}, "spec": spec}, None)[0].startswith("spec: In Indexed Jobs")
    assert not job_warnings({"spec": spec}, {"spec": spec})


def test_history_limits_and_time_zones_cause_warnings() -> None:
    assert stateful_set_warnings({"spec": {"revisionHistoryLimit": -1}}, None)[0].startswith(
        "spec.revisionHistoryLimit"
    )
    cron_job: JsonObject = {"metadata": {"name": "a"}, "spec": {"schedule": "TZ=UTC * * * * *"}}
    assert not cron_job_warnings(cron_job, None)
    assert "spec.spec.schedule" in cron_job_warnings(cron_job, cron_job)[0]
