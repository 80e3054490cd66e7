"""The readiness of an object: Current, InProgress (with a reason), or Failed (with a reason).

Pure. The rules per kind are those of kstatus and ``kubectl rollout status``. Unknown kinds follow the conventions of
kstatus: ``status.observedGeneration``, the conditions ``Ready``, ``Reconciling`` and ``Stalled``; an object without any of
them is Current as soon as it exists. Unlike in kstatus, a Job is Current when it is complete, and not when it runs; a Pod
that failed is Failed, and a Pod whose containers crash is InProgress, because the cause, such as a missing dependency, may
pass. docs/health.md lists the rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)
from wharfinger.formats.listing import counted
from wharfinger.kube.resource import kind_of, split_api_version


@dataclass(frozen=True, slots=True)
class Current:
    """The object is in its wanted state."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """The object is not ready yet. ``at_work``: the object's own controller reports progress and, if a deadline passes, a
    failure.

    ``overdue``: the object takes longer than it should, and the message contains a remedy. ``absent``: the object does not exist.
    """

    message: str
    at_work: bool = False
    overdue: bool = False
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The object will not become ready on its own; usually only a change helps."""

    message: str


Readiness = Current | InProgress | Failed


def readiness(obj: JsonObject) -> Readiness:
    """Return the readiness of one object. An object with an unexpected shape is InProgress, with a message about its shape."""
    try:
        if find_str(obj, "metadata", "deletionTimestamp"):
            return InProgress("being deleted")
        return _RULES.get(_group_kind(obj), _generic)(obj)
    except ShapeError as error:
        return InProgress(f"its status cannot be read: {error}")


def unsettled(obj: JsonObject) -> InProgress | None:
    """Return why the status of an object does not count: the object is being deleted, or was changed after its status was
    written. Return None if the status counts.
    """
    try:
        return InProgress("being deleted") if find_str(obj, "metadata", "deletionTimestamp") else _unobserved(obj)
    except ShapeError as error:
        return InProgress(f"its status cannot be read: {error}")


def condition_words(obj: JsonObject) -> str:
    """Return the reason and the message of the condition ``Ready``; "" if it is missing or True."""
    try:
        ready = _condition(obj, "Ready")
        return "" if find_str(ready, "status") == "True" else _words(ready, "")
    except ShapeError:
        return ""


def lacks_status(obj: JsonObject) -> bool:
    """Return whether the object is of a custom kind and has no status: its controller may not have seen it."""
    try:
        return _group_kind(obj)[0] not in _BUILT_IN_GROUPS and not find(obj, "status")
    except ShapeError:
        return False


def _group_kind(obj: JsonObject) -> tuple[str, str]:
    api_version, kind = kind_of(obj)
    return split_api_version(api_version)[0], kind


_ROLLING: Final = frozenset({"FoundNewReplicaSet", "NewReplicaSetCreated", "ReplicaSetUpdated"})
"""The reasons that a Deployment's condition Progressing has during a rollout. The progress deadline limits such a rollout."""


def _deployment(obj: JsonObject) -> Readiness:
    if (waiting := _unobserved(obj)) is not None:
        return waiting
    progressing = _condition(obj, "Progressing")
    if find_str(progressing, "reason") == "ProgressDeadlineExceeded":
        return Failed(find_str(progressing, "message") or "its progress deadline passed")
    failure = _condition(obj, "ReplicaFailure")
    why = f": {find_str(failure, 'message')}" if find_str(failure, "status") == "True" else ""
    if find(obj, "spec", "paused") is True:
        return InProgress("paused")
    at_work = find_str(progressing, "status") == "True" and find_str(progressing, "reason") in _ROLLING
    wanted = find_int(obj, "spec", "replicas", default=1)
    updated, total, available = (_count(obj, name) for name in ("updatedReplicas", "replicas", "availableReplicas"))
    if updated < wanted:
        return InProgress(f"{updated} of {wanted} replicas updated{why}", at_work)
    if total > updated:
        return InProgress(f"{total - updated} old replicas still exist", at_work)
    if available < wanted:
        return InProgress(f"{available} of {wanted} replicas available{why}", at_work)
    return Current()


def _stateful_set(obj: JsonObject) -> Readiness:
    if (waiting := _unobserved(obj)) is not None:
        return waiting
    wanted = find_int(obj, "spec", "replicas", default=1)
    ready, updated, current = (_count(obj, name) for name in ("readyReplicas", "updatedReplicas", "currentReplicas"))
    if ready < wanted:
        return InProgress(f"{ready} of {wanted} replicas ready")
    if (extra := _count(obj, "replicas") - wanted) > 0:
        return InProgress(f"{counted(extra, 'replica')} more than wanted")
    if find_str(obj, "spec", "updateStrategy", "type") == "OnDelete":
        return Current()
    partition = find_int(obj, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition:
        goal = max(0, wanted - partition)
        return Current() if updated >= goal else InProgress(f"{updated} of {goal} replicas updated (partitioned)")
    revision = find_str(obj, "status", "updateRevision")
    if revision and revision != find_str(obj, "status", "currentRevision"):
        return InProgress(f"{updated} of {wanted} replicas updated, {current} old")
    return Current()


def _daemon_set(obj: JsonObject) -> Readiness:
    if (waiting := _unobserved(obj)) is not None:
        return waiting
    if find(obj, "status", "desiredNumberScheduled") is None:
        return InProgress("not scheduled yet")
    wanted = _count(obj, "desiredNumberScheduled")
    updated, available = _count(obj, "updatedNumberScheduled"), _count(obj, "numberAvailable")
    if find_str(obj, "spec", "updateStrategy", "type") != "OnDelete" and updated < wanted:
        return InProgress(f"{updated} of {wanted} pods updated")
    if available < wanted:
        return InProgress(f"{available} of {wanted} pods available")
    return Current()


def _replica_set(obj: JsonObject) -> Readiness:
    if (waiting := _unobserved(obj)) is not None:
        return waiting
    wanted, available = find_int(obj, "spec", "replicas", default=1), _count(obj, "availableReplicas")
    if available < wanted:
        failure = _condition(obj, "ReplicaFailure")
        why = f": {find_str(failure, 'message')}" if find_str(failure, "status") == "True" else ""
        return InProgress(f"{available} of {wanted} replicas available{why}")
    if (extra := _count(obj, "replicas") - wanted) > 0:
        return InProgress(f"{counted(extra, 'replica')} more than wanted")
    return Current()


def _job(obj: JsonObject) -> Readiness:
    failed = _condition(obj, "Failed")
    if find_str(failed, "status") == "True":
        return Failed(find_str(failed, "message") or find_str(failed, "reason") or "the job failed")
    if find_str(_condition(obj, "Complete"), "status") == "True":
        return Current()
    if find_str(_condition(obj, "Suspended"), "status") == "True" or find(obj, "spec", "suspend") is True:
        return InProgress("suspended")
    done, wanted = _count(obj, "succeeded"), find_int(obj, "spec", "completions", default=1)
    return InProgress(f"{done} of {wanted} completions, {_count(obj, 'active')} active, {_count(obj, 'failed')} failed")


def _pod(obj: JsonObject) -> Readiness:
    phase = find_str(obj, "status", "phase")
    if phase == "Succeeded":
        return Current()
    if phase == "Failed":
        return Failed(find_str(obj, "status", "message") or find_str(obj, "status", "reason") or "the pod failed")
    ready = _condition(obj, "Ready")
    if phase == "Running" and find_str(ready, "status") == "True":
        return Current()
    if (stuck := _stuck_container(obj)) is not None:
        return InProgress(stuck)
    scheduled = _condition(obj, "PodScheduled")
    if find_str(scheduled, "status") == "False":
        return InProgress(find_str(scheduled, "message") or "not scheduled yet")
    return InProgress(find_str(ready, "message") or f"{phase or 'not started'}, not ready yet")


def _stuck_container(obj: JsonObject) -> str | None:
    for container in [
        *find_list(obj, "status", "initContainerStatuses"),
        *find_list(obj, "status", "containerStatuses"),
    ]:
        reason = find_str(container, "state", "waiting", "reason")
        if reason and reason not in {"ContainerCreating", "PodInitializing"}:
            message = find_str(container, "state", "waiting", "message")
            return f"container {find_str(container, 'name')}: {reason}" + (f": {message}" if message else "")
    return None


def _claim(obj: JsonObject) -> Readiness:
    phase = find_str(obj, "status", "phase")
    if phase == "Bound":
        return Current()
    if phase == "Lost":
        return Failed("its volume is lost")
    return InProgress("not bound yet")


def _volume(obj: JsonObject) -> Readiness:
    phase = find_str(obj, "status", "phase")
    if phase == "Failed":
        return Failed(find_str(obj, "status", "message") or "it could not be reclaimed")
    return Current() if phase in {"Available", "Bound", "Released"} else InProgress("not available yet")


def _autoscaler(obj: JsonObject) -> Readiness:
    """Return InProgress if the object cannot scale at all, else Current. Missing metrics are ignored, because the release is
    not their cause.
    """
    if (waiting := _unobserved(obj)) is not None:
        return waiting
    able = _condition(obj, "AbleToScale")
    return InProgress(_words(able, "cannot scale")) if find_str(able, "status") == "False" else Current()


def _service(obj: JsonObject) -> Readiness:
    if find_str(obj, "spec", "type") == "LoadBalancer" and not find_list(obj, "status", "loadBalancer", "ingress"):
        return InProgress("no address from the load balancer yet")
    return Current()


def _crd(obj: JsonObject) -> Readiness:
    names = _condition(obj, "NamesAccepted")
    if find_str(names, "status") == "False":
        return Failed(find_str(names, "message") or "its names are taken")
    established = _condition(obj, "Established")
    if find_str(established, "status") == "True":
        return Current()
    return InProgress(find_str(established, "message") or "not established yet")


def _api_service(obj: JsonObject) -> Readiness:
    available = _condition(obj, "Available")
    if find_str(available, "status") == "True":
        return Current()
    return InProgress(find_str(available, "message") or "not available yet")


def _namespace(obj: JsonObject) -> Readiness:
    phase = find_str(obj, "status", "phase")
    return Current() if phase in {"", "Active"} else InProgress(phase.lower())


def _budget(obj: JsonObject) -> Readiness:
    return _unobserved(obj) or Current()


def _present(obj: JsonObject) -> Readiness:  # noqa: ARG001 - the shape of a rule
    """Return Current, because there is nothing to wait for."""
    return Current()


def _generic(obj: JsonObject) -> Readiness:
    if (waiting := _unobserved(obj)) is not None:
        return waiting
    stalled = _condition(obj, "Stalled")
    if find_str(stalled, "status") == "True":
        return Failed(_words(stalled, "stalled"))
    reconciling = _condition(obj, "Reconciling")
    if find_str(reconciling, "status") == "True":
        return InProgress(_words(reconciling, "reconciling"))
    ready = _condition(obj, "Ready")
    if ready and find_str(ready, "status") != "True":
        return InProgress(_words(ready, "not ready"))
    return Current()


_RULES: Final[dict[tuple[str, str], Callable[[JsonObject], Readiness]]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _present,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "Service"): _service,
    ("", "Namespace"): _namespace,
    ("", "ReplicationController"): _replica_set,
    ("", "ConfigMap"): _present,
    ("", "Secret"): _present,
    ("networking.k8s.io", "Ingress"): _present,
    ("policy", "PodDisruptionBudget"): _budget,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
    ("apiregistration.k8s.io", "APIService"): _api_service,
}


_BUILT_IN_GROUPS: Final = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "extensions", "policy"),
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io"),
        *("authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io"),
        *("resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io"),
    }
)
"""The API groups of built-in kinds, which no CustomResourceDefinition defines. Not all objects of these groups get a status."""


def _unobserved(obj: JsonObject) -> InProgress | None:
    """Return InProgress if the controller has not observed the newest spec yet, else None."""
    generation, observed = find_int(obj, "metadata", "generation"), find(obj, "status", "observedGeneration")
    if isinstance(observed, int) and not isinstance(observed, bool) and observed < generation:
        return InProgress(f"generation {generation} is not observed yet")
    if observed is None and split_api_version(kind_of(obj)[0])[0] == "apps" and generation:
        return InProgress("not observed by its controller yet")
    return None


def _condition(obj: JsonObject, name: str) -> JsonValue:
    """Return a condition of ``status.conditions``; an empty object if it is missing."""
    for condition in find_list(obj, "status", "conditions"):
        if find_str(condition, "type") == name:
            return condition
    return {}


def _count(obj: JsonObject, name: str) -> int:
    return find_int(find_object(obj, "status"), name)


def _words(condition: JsonValue, otherwise: str) -> str:
    reason, message = find_str(condition, "reason"), find_str(condition, "message")
    return ": ".join(part for part in (reason, message) if part) or otherwise
