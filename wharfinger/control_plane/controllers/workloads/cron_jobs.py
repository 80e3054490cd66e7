"""CronJobs: a Job at each time of a schedule, by the control plane's clock.

If several times were missed, only the latest counts, and only if ``startingDeadlineSeconds`` allows it. If an earlier Job
still runs, ``concurrencyPolicy`` decides whether the new one is skipped, replaces it or runs beside it. Jobs beyond the
history limits are deleted.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    CRON_JOBS,
    JOBS,
    is_deleted,
    is_true,
    key_of,
    name_of,
    owner_reference,
    uid_of,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.workloads.jobs import finished_at, is_finished
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.formats.cron import parse_cron
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.kube.times import format_time, parse_time

STAMP: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_COMPONENT: Final = "cronjob-controller"
_MOST_MISSED: Final = 100


class CronJobController:
    """The controller of CronJobs."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("CronJob", self.reconcile, {CRON_JOBS: itself, JOBS: self._of_job})

    def _of_job(self, change: Change) -> Iterable[Key]:
        key = self._state.controller_key(change.obj)
        if key is not None and key.collection == CRON_JOBS:
            yield key

    def reconcile(self, key: Key) -> float | None:
        """Start the Job that is due, update the status, and delete old Jobs."""
        cron = self._state.get(key)
        if cron is None or is_deleted(cron):
            return None
        cron = self._with_current_status(key, cron)
        self._delete_old_jobs(cron)
        if find(cron, "spec", "suspend") is True:
            return None
        try:
            due, following = self._times(cron)
        except (FormatError, ZoneInfoNotFoundError, ValueError) as error:
            self._state.record_event(
                cron, _COMPONENT, "UnparseableSchedule", f"unparseable schedule: {error}", warning=True
            )
            return None
        if due is not None:
            self._start(key, cron, due)
        return max((following - self._state.now()).total_seconds(), 1.0)

    def _times(self, cron: JsonObject) -> tuple[datetime | None, datetime]:
        """Return the latest of the first 100 missed times (None if no time was missed), and the next time."""
        zone = find_str(cron, "spec", "timeZone")
        schedule = parse_cron(find_str(cron, "spec", "schedule"), zone=ZoneInfo(zone) if zone else UTC)
        now = self._state.now()
        last = parse_time(find_str(cron, "status", "lastScheduleTime"))
        since = last or parse_time(find_str(cron, "metadata", "creationTimestamp")) or now
        deadline = find(cron, "spec", "startingDeadlineSeconds")
        if isinstance(deadline, int):
            since = max(since, now - timedelta(seconds=deadline))
        due: datetime | None = None
        following = schedule.next_after(since)
        for _ in range(_MOST_MISSED):
            if following > now:
                break
            due, following = following, schedule.next_after(following)
        else:
            following = schedule.next_after(now)
        return due, following

    def _start(self, key: Key, cron: JsonObject, due: datetime) -> None:
        active = [job for job in self._state.owned(JOBS, cron) if not is_finished(job)]
        policy = find_str(cron, "spec", "concurrencyPolicy")
        if active and policy == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._state.record_event(cron, _COMPONENT, "JobAlreadyActive", message)
            return
        if policy == "Replace":
            for job in active:
                self._state.delete(key_of(JOBS, job), job)
                self._state.record_event(cron, _COMPONENT, "SuccessfulDelete", f"Deleted job {name_of(job)}")
        made = self._state.create(job_of(cron, due))
        if made is not None:
            self._state.record_event(cron, _COMPONENT, "SuccessfulCreate", f"Created job {name_of(made)}")
        found = self._state.get(key)
        if found is not None:
            status = find_object(found, "status") | {"lastScheduleTime": format_time(due)}
            self._with_current_status(key, self._state.set_status(key, found, status))

    def _with_current_status(self, key: Key, cron: JsonObject) -> JsonObject:
        """Write the running Jobs and the time of the last success to the CronJob's status, and return the CronJob."""
        jobs = list(self._state.owned(JOBS, cron))
        running: list[JsonValue] = [_reference(job) for job in jobs if not is_finished(job)]
        status = {name: value for name, value in find_object(cron, "status").items() if name != "active"}
        if running:
            status["active"] = running
        ends = [finished_at(job) for job in jobs if is_true(job, "Complete")]
        last = max((end for end in ends if end is not None), default=None)
        known = parse_time(find_str(status, "lastSuccessfulTime"))
        if last is not None and (known is None or last > known):
            status["lastSuccessfulTime"] = format_time(last)
        self._record_finished_jobs(cron, jobs)
        return self._state.set_status(key, cron, status)

    def _record_finished_jobs(self, cron: JsonObject, jobs: Iterable[JsonObject]) -> None:
        was = {find_str(one, "uid") for one in find_list(cron, "status", "active")}
        for job in jobs:
            if uid_of(job) in was and is_finished(job):
                how = "Complete" if is_true(job, "Complete") else "Failed"
                message = f"Saw completed job: {name_of(job)}, condition: {how}"
                self._state.record_event(cron, _COMPONENT, "SawCompletedJob", message)

    def _delete_old_jobs(self, cron: JsonObject) -> None:
        jobs = sorted(self._state.owned(JOBS, cron), key=lambda job: find_str(job, "status", "startTime"))
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = [job for job in jobs if is_true(job, kind) and not is_deleted(job)]
            surplus = len(ended) - find_int(cron, "spec", field, default=default)
            for job in ended[: max(surplus, 0)]:
                self._state.delete(key_of(JOBS, job), job)
                self._state.record_event(cron, _COMPONENT, "SuccessfulDelete", f"Deleted job {name_of(job)}")


def job_of(cron: JsonObject, due: datetime) -> JsonObject:
    """Return the Job that a CronJob creates for the scheduled time ``due``."""
    template = find_object(cron, "spec", "jobTemplate")
    metadata: JsonObject = {
        "name": f"{name_of(cron)}-{int(due.timestamp()) // 60}",
        "namespace": find_str(cron, "metadata", "namespace"),
        "annotations": find_object(template, "metadata", "annotations") | {STAMP: format_time(due)},
        "ownerReferences": [owner_reference(cron)],
    }
    labels = find_object(template, "metadata", "labels")
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": find_object(template, "spec")}


def _reference(job: JsonObject) -> JsonObject:
    return {
        "kind": "Job",
        "namespace": find_str(job, "metadata", "namespace"),
        "name": name_of(job),
        "uid": uid_of(job),
        "apiVersion": "batch/v1",
        "resourceVersion": find_str(job, "metadata", "resourceVersion"),
    }
