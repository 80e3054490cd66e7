"""The validation of CronJobs: a schedule, a time zone, and the Job to create."""

import re
from typing import Final

from wharfinger.control_plane.api.batch.cron_schedules import schedule_problem, zone_problem
from wharfinger.control_plane.api.batch.jobs import cron_job_template_errors
from wharfinger.control_plane.objects.amounts import none_negative, text
from wharfinger.control_plane.wire.field_errors import invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find, find_object

_NAME_LENGTH: Final = 52
_POLICIES: Final = ("Allow", "Forbid", "Replace")
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def cron_job_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a new CronJob; its name must be short enough for the suffix that its Jobs' names get."""
    errors, name = _spec_errors(obj, None), text(obj, "metadata", "name")
    if len(name.encode()) > _NAME_LENGTH:
        errors.append(invalid("metadata.name", name, f"must be no more than {_NAME_LENGTH} characters"))
    return errors


def cron_job_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed CronJob; the schedule may keep a time zone that it already contained."""
    return _spec_errors(new, old)


def _spec_errors(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    spec = find_object(obj, "spec")
    errors = _schedule_errors(spec, allow_zone="TZ" in text(old, "spec", "schedule"))
    errors += none_negative(spec, "spec", ["startingDeadlineSeconds"])
    if old is None or find(old, "spec", "timeZone") != spec.get("timeZone"):
        errors += _zone_errors(spec)
    if not (policy := text(spec, "concurrencyPolicy")):
        errors.append(required("spec.concurrencyPolicy"))
    elif policy not in _POLICIES:
        errors.append(not_supported("spec.concurrencyPolicy", policy, _POLICIES))
    errors += cron_job_template_errors(find_object(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec")
    return errors + none_negative(spec, "spec", ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"])


def _schedule_errors(spec: JsonObject, *, allow_zone: bool) -> list[FieldError]:
    schedule, path = text(spec, "schedule"), "spec.schedule"
    if not schedule:
        return [required(path)]
    problem = schedule_problem(schedule)
    errors = [invalid(path, schedule, problem)] if problem else []
    if "TZ" in schedule:
        if not allow_zone:
            why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid(path, schedule, why))
        elif spec.get("timeZone") is not None:
            errors.append(invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
    return errors


def _zone_errors(spec: JsonObject) -> list[FieldError]:
    zone, path = spec.get("timeZone"), "spec.timeZone"
    if not isinstance(zone, str):
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in {".", ".."} or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    errors: list[FieldError] = []
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid(path, zone, why))
    problem = zone_problem(zone)
    return [*errors, invalid(path, zone, problem)] if problem else errors
