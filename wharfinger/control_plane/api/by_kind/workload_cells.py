"""Table cells of workloads: jobs, cron jobs, autoscalers, controller revisions."""

from datetime import datetime

from wharfinger.control_plane.api.autoscaling.versions import autoscaler_v2
from wharfinger.control_plane.api.common.cells import NONE, deleted, holds, integer, said, since
from wharfinger.control_plane.api.common.filling import objects
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object
from wharfinger.kube.times import human_duration, parse_time

_UNKNOWN = "<unknown>"
_METRICS_SHOWN = 2


def job_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return ``Complete``, ``Failed``, ``Suspended``, ``Running`` or another state of a Job."""
    if holds(obj, "Complete") or holds(obj, "Failed"):
        return "Complete" if holds(obj, "Complete") else "Failed"
    if deleted(obj):
        return "Terminating"
    states = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((state for state in states if holds(obj, state)), "Running")


def job_completions(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the succeeded and the wanted completions of a Job: ``1/1``."""
    done, wanted = integer(obj, "status", "succeeded"), find(obj, "spec", "completions")
    if isinstance(wanted, int):
        return f"{done}/{wanted}"
    parallelism = integer(obj, "spec", "parallelism")
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def job_duration(obj: JsonObject, now: datetime) -> JsonValue:
    """Return the time from a Job's start to its completion, or to now if it is not complete."""
    started, done = said(obj, "status", "startTime"), said(obj, "status", "completionTime")
    start, end = parse_time(started) if started else None, parse_time(done) if done else now
    return human_duration(end - start) if start is not None and end is not None else ""


def cron_suspended(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return whether a CronJob is suspended: ``True``, ``False`` or ``<unset>``."""
    found = find(obj, "spec", "suspend")
    return str(found) if isinstance(found, bool) else "<unset>"


def cron_last(obj: JsonObject, now: datetime) -> JsonValue:
    """Return the age of a CronJob's last scheduled time, ``<none>`` if there was none."""
    return since(("status", "lastScheduleTime"))(obj, now) if said(obj, "status", "lastScheduleTime") else NONE


def controller(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the owner that controls the object: ``statefulset.apps/web``."""
    owner = next((item for item in objects(obj, "metadata", "ownerReferences") if item.get("controller") is True), None)
    if owner is None:
        return NONE
    group, _, _ = said(owner, "apiVersion").rpartition("/")
    kind = said(owner, "kind").lower()
    return f"{kind}.{group}/{said(owner, 'name')}" if group else f"{kind}/{said(owner, 'name')}"


def scale_target(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the target of an autoscaler: ``Deployment/web``."""
    return f"{said(obj, 'spec', 'scaleTargetRef', 'kind')}/{said(obj, 'spec', 'scaleTargetRef', 'name')}"


def metrics(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return each metric of an autoscaler with its present and its target value: ``cpu: 40%/80%, 3/5``."""
    if obj.get("apiVersion") == "autoscaling/v1":  # v1 has most metrics in annotations
        obj = autoscaler_v2(obj)
        wanted, statuses = (
            sorted(objects(obj, *path), key=lambda metric: not _is_processor(metric))
            for path in (("spec", "metrics"), ("status", "currentMetrics"))
        )
    else:
        wanted, statuses = objects(obj, "spec", "metrics"), objects(obj, "status", "currentMetrics")
    shown = [_metric(spec, statuses[index] if index < len(statuses) else {}) for index, spec in enumerate(wanted)]
    first = ", ".join(shown[:_METRICS_SHOWN]) or NONE
    return f"{first} + {len(shown) - _METRICS_SHOWN} more..." if len(shown) > _METRICS_SHOWN else first


def _is_processor(metric: JsonObject) -> bool:
    """Return whether a metric is the CPU utilization, for which autoscaling/v1 has a field."""
    return said(metric, "resource", "name") == "cpu"


def _metric(spec: JsonObject, status: JsonObject) -> str:
    source = {
        "External": "external",
        "Pods": "pods",
        "Object": "object",
        "Resource": "resource",
        "ContainerResource": "containerResource",
    }.get(said(spec, "type"))
    if source is None:
        return "<unknown type>"
    target, current = find_object(spec, source, "target"), find_object(status, source, "current")
    if source in {"resource", "containerResource"}:
        name = said(spec, source, "name")
        if "averageValue" in target:
            return f"{name}: {said(current, 'averageValue', default=_UNKNOWN)}/{said(target, 'averageValue')}"
        wanted = _percent(target.get("averageUtilization"), "<auto>")
        return f"{name}: {_percent(current.get('averageUtilization'), _UNKNOWN)}/{wanted}"
    if source == "pods":
        return f"{said(current, 'averageValue', default=_UNKNOWN)}/{said(target, 'averageValue')}"
    if "averageValue" in target:
        return f"{said(current, 'averageValue', default=_UNKNOWN)}/{said(target, 'averageValue')} (avg)"
    return f"{said(current, 'value', default=_UNKNOWN)}/{said(target, 'value')}"


def _percent(value: JsonValue, default: str) -> str:
    return f"{value}%" if isinstance(value, int) else default
