"""Jobs that complete, or fail where an annotation says so.

A Job starts when it is first seen and ends after ``wharfinger.dev/ready-after`` seconds (at once without it): complete, or
with ``wharfinger.dev/fail: "true"`` failed. ``wharfinger.dev/never-ready: "true"`` keeps it running until its
``activeDeadlineSeconds``, if it has any. A suspended Job waits; one that another controller manages is left alone; one
that is over is deleted ``ttlSecondsAfterFinished`` later.
"""

from datetime import datetime
from typing import Final

from wharfinger.cluster.control_plane.controllers.conditions import Condition, conditions
from wharfinger.cluster.control_plane.controllers.workloads import is_set, seconds_left
from wharfinger.cluster.control_plane.controllers.writes import NOTHING, Delete, Plan, status_write
from wharfinger.cluster.control_plane.timestamps import format_time, parse_time
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, find, find_int, find_list, find_str

FAIL: Final = "wharfinger.dev/fail"
OURSELVES: Final = "kubernetes.io/job-controller"
_OVER: Final = frozenset({"Complete", "Failed"})


def reconcile_job(key: ObjectKey, obj: JsonObject, age_s: float, now: datetime) -> Plan:
    """The status of a Job of that age (since it was first seen running)."""
    if find_str(obj, "spec", "managedBy", default=OURSELVES) != OURSELVES:
        return NOTHING
    if _is_over(obj):
        return _cleanup(key, obj, now)
    if find(obj, "spec", "suspend") is True:
        suspended = conditions(obj, [Condition("Suspended", "True", "JobSuspended", "Job suspended")], now, probed=True)
        return Plan(tuple(status_write(key, obj, _idle() | {"conditions": suspended})))
    start = find_str(obj, "status", "startTime") or format_time(now)
    left = seconds_left(obj, age_s)
    deadline = find(obj, "spec", "activeDeadlineSeconds")
    time_left = deadline - age_s if isinstance(deadline, int) else None
    if time_left is not None and time_left <= 0 and left != 0:
        message = "Job was active longer than specified deadline"
        return _end(key, obj, start, now, _failure("DeadlineExceeded", message), {"failed": _parallelism(obj)})
    if left != 0:
        running: JsonObject = {"active": _parallelism(obj), "ready": _parallelism(obj), "startTime": start}
        waits = [seconds for seconds in (left, time_left) if seconds is not None]
        return Plan(tuple(status_write(key, obj, _idle() | running)), min(waits, default=None))
    if is_set(obj, FAIL):
        failed = find_int(obj, "spec", "backoffLimit", default=6) + 1
        said = _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        return _end(key, obj, start, now, said, {"failed": failed})
    message = "Reached expected number of succeeded pods"
    said = [Condition(kind, "True", "CompletionsReached", message) for kind in ("SuccessCriteriaMet", "Complete")]
    succeeded = find_int(obj, "spec", "completions", default=_parallelism(obj))
    return _end(key, obj, start, now, said, {"succeeded": succeeded, "completionTime": format_time(now)})


def _end(key: ObjectKey, obj: JsonObject, start: str, now: datetime, said: list[Condition], extra: JsonObject) -> Plan:
    status = _idle() | {"startTime": start, "conditions": conditions(obj, said, now, probed=True)} | extra
    return Plan(tuple(status_write(key, obj, status)))


def _cleanup(key: ObjectKey, obj: JsonObject, now: datetime) -> Plan:
    ttl = find(obj, "spec", "ttlSecondsAfterFinished")
    if not isinstance(ttl, int):
        return NOTHING
    since = next(
        (
            parse_time(find_str(entry, "lastTransitionTime"))
            for entry in find_list(obj, "status", "conditions")
            if find(entry, "type") in _OVER and find(entry, "status") == "True"
        ),
        None,
    )
    left = ttl - (now - since).total_seconds() if since is not None else 0.0
    return Plan((Delete(key, find_str(obj, "metadata", "uid")),)) if left <= 0 else Plan(again_s=left)


def _is_over(obj: JsonObject) -> bool:
    entries = find_list(obj, "status", "conditions")
    return any(find(entry, "type") in _OVER and find(entry, "status") == "True" for entry in entries)


def _failure(reason: str, message: str) -> list[Condition]:
    return [Condition(kind, "True", reason, message) for kind in ("FailureTarget", "Failed")]


def _parallelism(obj: JsonObject) -> int:
    return find_int(obj, "spec", "parallelism", default=1)


def _idle() -> JsonObject:
    """What is in the status of every Job."""
    return {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
