"""The Pods of Jobs, which run to completion as many times as requested, and the status of the Jobs.

A Pod has a finalizer until its end is counted, so each Pod is counted exactly once. Failed Pods are replaced immediately, while
kube-controller-manager waits longer after each failure. The Pods of a Job that is finished or deleted lose the finalizer. A Job
that another controller manages is ignored.

``podFailurePolicy``, ``successPolicy`` and ``backoffLimitPerIndex`` have no effect. The messages and conditions are those of
kube-controller-manager's job controller.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from wharfinger.control_plane.controllers.framework.conditions import Condition, conditions
from wharfinger.control_plane.controllers.framework.controller import Controller, itself
from wharfinger.control_plane.controllers.framework.objects import (
    JOBS,
    PODS,
    is_deleted,
    is_over,
    is_true,
    key_of,
    labels_of,
    name_of,
    uid_of,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.workloads.job_pods import (
    FINALIZER,
    completed_indexes,
    format_indexes,
    index_of,
    job_pod,
    wanted_indexes,
)
from wharfinger.control_plane.controllers.workloads.replica_sets import MOST_PODS
from wharfinger.control_plane.storage.interface import Change, Key
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find, find_int, find_list, find_object, find_str
from wharfinger.kube.times import parse_time

OWN_MANAGER: Final = "kubernetes.io/job-controller"
"""The value of ``spec.managedBy`` for Jobs of this controller."""
_COMPONENT: Final = "job-controller"
_IDLE: Final[JsonObject] = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
_LONG_AGO_S: Final = 1e9
_SHORTEST_LIFE_S: Final = 2
"""The minimum of ``ttlSecondsAfterFinished``, so that clients can observe the end of a Job.

In a real cluster a Job runs for seconds; here it ends within milliseconds, before the client that created it can watch it.
"""


class JobController:
    """The controller of Jobs."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("Job", self.reconcile, {JOBS: itself, PODS: self._of_pod})

    def _of_pod(self, change: Change) -> Iterable[Key]:
        key = self._state.controller_key(change.obj)
        if key is not None and key.collection == JOBS:
            yield key

    def reconcile(self, key: Key) -> float | None:
        """Take one step in the execution of one Job. Return the seconds until the next step is due, None if only a change
        requires one.
        """
        job = self._state.get(key)
        if job is None or is_deleted(job):
            self._release_all(key)
            return None
        if find_str(job, "spec", "managedBy", default=OWN_MANAGER) != OWN_MANAGER:
            return None
        pods = list(self._state.owned(PODS, job))
        if is_finished(job):
            self._release(pods, everything=True)
            return self._expire(key, job)
        return self._run(key, job, pods)

    # -- running Jobs

    def _run(self, key: Key, job: JsonObject, pods: Sequence[JsonObject]) -> float | None:
        status = self._counted(job, pods)
        active = [pod for pod in pods if not is_over(pod) and not is_deleted(pod)]
        terminating = sum(is_deleted(pod) and not is_over(pod) for pod in pods)
        if find(job, "spec", "suspend") is True:
            self._stop(job, active)
            if not is_true(job, "Suspended"):
                self._state.record_event(job, _COMPONENT, "Suspended", "Job suspended")
            changed = [Condition("Suspended", "True", "JobSuspended", "Job suspended")]
            self._write(key, job, status, [], changed, "", terminating + len(active))
            self._release(pods)
            return None
        start = find_str(status, "startTime") or self._state.time()
        left = self._time_left(job, start)
        verdict = self._verdict(job, status, active, left)
        if verdict is not None:
            self._stop(job, active)
            if verdict[0].type == "FailureTarget":
                status["failed"] = find_int(status, "failed") + len(active)
            else:
                status["completionTime"] = self._state.time()
            stored = self._write(key, job, status, [], verdict, start, terminating)
            self._release(pods)
            self._record_end(stored, verdict)
            return None
        changed = []
        if is_true(job, "Suspended"):
            self._state.record_event(job, _COMPONENT, "Resumed", "Job resumed")
            changed = [Condition("Suspended", "False", "JobResumed", "Job resumed")]
        active, failure = self._fill(job, status, active)
        self._write(key, job, status, active, changed, start, terminating)
        self._release(pods)
        if failure is not None:
            raise failure
        return left

    def _write(
        self,
        key: Key,
        job: JsonObject,
        status: JsonObject,
        active: Sequence[JsonObject],
        changed: Sequence[Condition],
        start: str,
        terminating: int,
    ) -> JsonObject:
        status = status | _IDLE
        status |= {"ready": sum(is_true(pod, "Ready") for pod in active), "terminating": terminating}
        made = conditions(job, changed, self._state.now(), probed=True)
        for name, value in (("active", len(active)), ("startTime", start), ("conditions", made)):
            status.pop(name, None)
            if value:
                status[name] = value
        return self._state.set_status(key, job, status)

    def _counted(self, job: JsonObject, pods: Sequence[JsonObject]) -> JsonObject:
        """Return the status with new counts: add each Pod that has ended or is being deleted, and is not counted yet."""
        status = dict(find_object(job, "status"))
        for phase, name in (("Succeeded", "succeeded"), ("Failed", "failed")):
            ended = [pod for pod in pods if find(pod, "status", "phase") == phase and _is_tracked(pod)]
            lost = [pod for pod in pods if is_deleted(pod) and not is_over(pod) and _is_tracked(pod)]
            count = len(ended) + (len(lost) if name == "failed" and not is_true(job, "Suspended") else 0)
            if count:
                status[name] = find_int(status, name) + count
        if find_str(job, "spec", "completionMode") == "Indexed":
            done = completed_indexes(job) | {
                index_of(pod) for pod in pods if find(pod, "status", "phase") == "Succeeded"
            }
            status["completedIndexes"] = format_indexes(done)
            status["succeeded"] = len(done)
            if not done:
                del status["completedIndexes"], status["succeeded"]
        return status

    def _verdict(
        self, job: JsonObject, status: JsonObject, active: Sequence[JsonObject], left: float | None
    ) -> list[Condition] | None:
        """Return the conditions to set if the Job is finished now; None if it is not finished."""
        limit = find_int(job, "spec", "backoffLimit", default=6)
        restarts = sum(find_int(pod, "status", "containerStatuses", 0, "restartCount") for pod in active)
        if find_int(status, "failed") > limit or restarts > limit:
            return _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if left is not None and left <= 0:
            return _failure("DeadlineExceeded", "Job was active longer than specified deadline")
        succeeded, completions = find_int(status, "succeeded"), find(job, "spec", "completions")
        done = succeeded >= completions if isinstance(completions, int) else succeeded > 0 and not active
        if not done:
            return None
        message = "Reached expected number of succeeded pods"
        return [Condition(kind, "True", "CompletionsReached", message) for kind in ("SuccessCriteriaMet", "Complete")]

    def _fill(
        self, job: JsonObject, status: JsonObject, active: list[JsonObject]
    ) -> tuple[list[JsonObject], StatusError | None]:
        """Create missing Pods and delete surplus ones. Return the running Pods, and the error if the creation of a Pod was
        refused (otherwise None).
        """
        parallel = min(find_int(job, "spec", "parallelism", default=1), MOST_PODS)
        completions, succeeded = find(job, "spec", "completions"), find_int(status, "succeeded")
        if isinstance(completions, int):
            wanted = min(parallel, completions - succeeded)
        else:
            wanted = len(active) if succeeded else parallel
        for pod in active[max(wanted, 0) :]:
            self._delete(job, pod)
        active = active[: max(wanted, 0)]
        indexes = wanted_indexes(job, status, active) if find_str(job, "spec", "completionMode") == "Indexed" else None
        for _ in range(wanted - len(active)):
            index = None if indexes is None else next(indexes, None)
            if indexes is not None and index is None:
                break
            try:
                made = self._state.create(job_pod(job, index))
            except StatusError as error:
                message = f"Error creating: {error.message}"
                self._state.record_event(job, _COMPONENT, "FailedCreate", message, warning=True)
                return active, error
            if made is not None:
                self._state.record_event(job, _COMPONENT, "SuccessfulCreate", f"Created pod: {name_of(made)}")
                active = [*active, made]
        return active, None

    def _time_left(self, job: JsonObject, start: str) -> float | None:
        deadline, since = find(job, "spec", "activeDeadlineSeconds"), parse_time(start)
        if not isinstance(deadline, int) or since is None:
            return None
        return deadline - (self._state.now() - since).total_seconds()

    def _stop(self, job: JsonObject, active: Sequence[JsonObject]) -> None:
        for pod in active:
            self._delete(job, pod)

    def _delete(self, job: JsonObject, pod: JsonObject) -> None:
        self._state.delete(key_of(PODS, pod), pod)
        self._release([pod], everything=True)
        self._state.record_event(job, _COMPONENT, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _record_end(self, job: JsonObject, verdict: Sequence[Condition]) -> None:
        if verdict[0].type == "FailureTarget":
            self._state.record_event(job, _COMPONENT, verdict[0].reason, verdict[0].message, warning=True)
        else:
            self._state.record_event(job, _COMPONENT, "Completed", "Job completed")

    # -- finished Jobs

    def _release(self, pods: Sequence[JsonObject], *, everything: bool = False) -> None:
        """Remove the finalizer from Pods that have ended or are being deleted; if ``everything`` is true, from all ``pods``."""
        for pod in pods:
            key = key_of(PODS, pod)
            found = self._state.get(key)
            if found is None or uid_of(found) != uid_of(pod) or not _is_tracked(found):
                continue
            if everything or is_over(found) or is_deleted(found):
                self._state.remove_finalizer(key, found, FINALIZER)

    def _release_all(self, key: Key) -> None:
        """Remove the finalizer from the Pods of a Job that no longer exists or is being deleted."""
        for pod in self._state.objects(PODS, key.namespace):
            if labels_of(pod).get("batch.kubernetes.io/job-name") == key.name and _is_tracked(pod):
                self._release([pod], everything=True)

    def _expire(self, key: Key, job: JsonObject) -> float | None:
        ttl = find(job, "spec", "ttlSecondsAfterFinished")
        if not isinstance(ttl, int):
            return None
        since = finished_at(job)
        age_s = _LONG_AGO_S if since is None else (self._state.now() - since).total_seconds()
        life_s = max(ttl, _SHORTEST_LIFE_S)
        if age_s < life_s:
            return life_s - age_s
        self._state.delete(key, job)
        return None


def finished_at(job: JsonObject) -> datetime | None:
    """Return the time at which a Job ended, or None if the Job has not ended, or its condition has no time."""
    for entry in find_list(job, "status", "conditions"):
        if find(entry, "type") in {"Complete", "Failed"} and find(entry, "status") == "True":
            return parse_time(find_str(entry, "lastTransitionTime"))
    return None


def is_finished(job: JsonObject) -> bool:
    """Return whether a Job is complete or has failed."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def _is_tracked(pod: JsonObject) -> bool:
    return FINALIZER in find_list(pod, "metadata", "finalizers")


def _failure(reason: str, message: str) -> list[Condition]:
    return [Condition(kind, "True", reason, message) for kind in ("FailureTarget", "Failed")]
