"""The status of a Deployment: counts over its ReplicaSets, and its conditions. Pure.

Source of reasons, messages and the order of conditions: kube-controller-manager's deployment controller.
"""

from collections.abc import Sequence
from datetime import datetime

from wharfinger.control_plane.controllers.framework.objects import condition_of, generation_of, name_of, replicas_of
from wharfinger.control_plane.controllers.workloads import rolling
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_object, find_str
from wharfinger.kube.times import format_time, parse_time

_NO_DEADLINE = 2147483647


def progressing_condition(status: str, reason: str, message: str, time: str) -> JsonObject:
    """Return a new condition ``Progressing``."""
    return _condition("Progressing", status, reason, message, time)


def paused_condition(deployment: JsonObject, time: str) -> list[JsonValue] | None:
    """Return the new conditions if the Deployment was paused or resumed since the old ones were written, else None."""
    if not _has_deadline(deployment):
        return None
    reason = find_str(condition_of(deployment, "Progressing"), "reason")
    paused = find(deployment, "spec", "paused") is True
    if reason == "ProgressDeadlineExceeded" or paused == (reason == "DeploymentPaused"):
        return None
    why = ("DeploymentPaused", "Deployment is paused") if paused else ("DeploymentResumed", "Deployment is resumed")
    return _with_condition(find_list(deployment, "status", "conditions"), progressing_condition("Unknown", *why, time))


def complete(deployment: JsonValue, status: JsonValue = None) -> bool:
    """Return whether all replicas have the current template and are available, and the status shows the current generation."""
    status = find(deployment, "status") if status is None else status
    wanted = replicas_of(deployment)
    counts = {find_int(status, name) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    return counts == {wanted} and find_int(status, "observedGeneration") >= generation_of(deployment)


def status_of(
    deployment: JsonObject,
    new: JsonObject | None,
    sets: Sequence[JsonObject],
    now: datetime,
    *,
    rolls: bool = True,
) -> tuple[JsonObject, float | None]:
    """Return the whole status, and the seconds until the progress deadline must be checked (None if no check is due).

    If ``rolls`` is false, the Deployment is paused, is being scaled, or is being deleted; its progress is then not reported.
    """
    time = format_time(now)
    counts = {
        "replicas": _sum(sets, "replicas"),
        "updatedReplicas": find_int(new, "status", "replicas"),
        "readyReplicas": _sum(sets, "readyReplicas"),
        "availableReplicas": _sum(sets, "availableReplicas"),
    }
    counts["unavailableReplicas"] = max(rolling.total(sets) - counts["availableReplicas"], 0)
    status: JsonObject = {
        "observedGeneration": generation_of(deployment),
        "terminatingReplicas": _sum(sets, "terminatingReplicas"),
        **{name: count for name, count in counts.items() if count},
    }
    collisions = find(deployment, "status", "collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    conditions = _with_availability(deployment, counts["availableReplicas"], time)
    if not rolls:
        return status | {"conditions": conditions}, None
    conditions, again_s = _with_progress(deployment, new, status, conditions, now)
    failures = [found for found in (condition_of(one, "ReplicaFailure") for one in sets) if found is not None]
    conditions = [one for one in conditions if find(one, "type") != "ReplicaFailure" or failures]
    if failures:
        why = find_str(failures[0], "reason"), find_str(failures[0], "message")
        conditions = _with_condition(conditions, _condition("ReplicaFailure", "True", *why, time))
    status["conditions"] = conditions
    return status, again_s


def _with_availability(deployment: JsonObject, available: int, time: str) -> list[JsonValue]:
    conditions = find_list(deployment, "status", "conditions")
    if available >= replicas_of(deployment) - rolling.bounds(deployment)[1]:
        message = "Deployment has minimum availability."
        condition = _condition("Available", "True", "MinimumReplicasAvailable", message, time)
    else:
        message = "Deployment does not have minimum availability."
        condition = _condition("Available", "False", "MinimumReplicasUnavailable", message, time)
    return _with_condition(conditions, condition)


def _with_progress(
    deployment: JsonObject, new: JsonObject | None, status: JsonObject, conditions: list[JsonValue], now: datetime
) -> tuple[list[JsonValue], float | None]:
    if not _has_deadline(deployment):
        return [one for one in conditions if find(one, "type") != "Progressing"], None
    if find(deployment, "spec", "paused") is True:
        return conditions, None  # the condition Progressing states the pause, and is kept
    current = condition_of(deployment, "Progressing")
    settled = find_int(status, "replicas") == find_int(status, "updatedReplicas")
    if settled and find(current, "reason") == "NewReplicaSetAvailable":
        return conditions, None
    time = format_time(now)
    what = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if complete(deployment, status):
        condition = progressing_condition(
            "True", "NewReplicaSetAvailable", f"{what} has successfully progressed.", time
        )
        return _with_condition(conditions, condition), None
    if _has_progressed(find_object(deployment, "status"), status):
        condition = progressing_condition("True", "ReplicaSetUpdated", f"{what} is progressing.", time)
        if find(current, "status") == "True":
            condition["lastTransitionTime"] = find(current, "lastTransitionTime")
        others = [one for one in conditions if find(one, "type") != "Progressing"]
        return [*others, condition], _seconds_left(deployment, condition, now)
    left = _seconds_left(deployment, current, now)
    if current is None or find(current, "reason") in {"ProgressDeadlineExceeded", "DeploymentPaused"}:
        return conditions, None
    if left is not None and left <= 0:
        condition = progressing_condition(
            "False", "ProgressDeadlineExceeded", f"{what} has timed out progressing.", time
        )
        return _with_condition(conditions, condition), None
    return conditions, left


def _has_progressed(old: JsonObject, new: JsonObject) -> bool:
    """Return whether more replicas are updated, ready or available than before, or fewer old replicas are left."""
    before, after = (find_int(one, "replicas") - find_int(one, "updatedReplicas") for one in (old, new))
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return after < before or any(find_int(new, name) > find_int(old, name) for name in grown)


def _seconds_left(deployment: JsonObject, condition: JsonValue, now: datetime) -> float | None:
    """Return the seconds until the progress deadline, or None if no deadline applies."""
    since = parse_time(find_str(condition, "lastUpdateTime"))
    if since is None or find(deployment, "spec", "paused") is True:
        return None
    return find_int(deployment, "spec", "progressDeadlineSeconds", default=600) - (now - since).total_seconds()


def _has_deadline(deployment: JsonObject) -> bool:
    deadline = find(deployment, "spec", "progressDeadlineSeconds")
    return isinstance(deadline, int) and deadline != _NO_DEADLINE


def _sum(sets: Sequence[JsonObject], name: str) -> int:
    return sum(find_int(one, "status", name) for one in sets)


def _condition(kind: str, status: str, reason: str, message: str, time: str) -> JsonObject:
    condition: JsonObject = {"type": kind, "status": status, "lastUpdateTime": time, "lastTransitionTime": time}
    return condition | {"reason": reason, "message": message}


def _with_condition(conditions: list[JsonValue], new: JsonObject) -> list[JsonValue]:
    """Return the conditions with ``new`` at the end, in place of the old condition of its type. If the old condition has the
    same status and reason, the conditions are returned unchanged.
    """
    old = next((one for one in conditions if find(one, "type") == new["type"]), None)
    if find(old, "status") == new["status"] and find(old, "reason") == new["reason"]:
        return conditions
    if old is not None and find(old, "status") == new["status"]:
        new = {**new, "lastTransitionTime": find(old, "lastTransitionTime")}
    return [*(one for one in conditions if find(one, "type") != new["type"]), new]
