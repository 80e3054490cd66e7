"""The conversion of HorizontalPodAutoscalers between autoscaling/v1 and autoscaling/v2; they are stored as autoscaling/v2.

Version 1 has fields for one metric only, the CPU utilization. Version 1 shows all other metrics, the behavior and most of the
status as JSON in annotations, and reads them from there. The JSON differs from that of autoscaling/v2: for example, the
behavior has the form of kube-apiserver's internal types. An annotation that does not hold such JSON is ignored.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from wharfinger.control_plane.api.autoscaling.defaults import ROUND_TRIP, default_metrics
from wharfinger.control_plane.api.common.filling import objects
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, decode_json, encode_json, find, find_object

_Source: TypeAlias = Callable[[JsonObject], JsonObject]
_Sources: TypeAlias = Mapping[str, _Source]
METRICS, STATUSES, CONDITIONS, BEHAVIOR = ROUND_TRIP[:4]
_MAX_ANNOTATION: Final = 256 * 1024
_SHARED_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SHARED_STATUS: Final = ("observedGeneration", "lastScaleTime")
_SOURCES: Final = ("object", "pods", "resource", "containerResource", "external")
_CONDITION: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY: Final = ("type", "value", "periodSeconds")


def autoscaler_v1(obj: JsonObject) -> JsonObject:
    """Return a stored autoscaler as autoscaling/v1 shows it."""
    spec, status = find_object(obj, "spec"), find_object(obj, "status")
    shared: JsonObject = {name: spec[name] for name in _SHARED_SPEC if name in spec}
    metrics = objects(spec.get("metrics"))
    share = next(
        (find(item, "resource", "target", "averageUtilization") for item in metrics if _is_cpu_share(item)), None
    )
    if share is not None:
        shared["targetCPUUtilizationPercentage"] = share
    annotations = _own_annotations(obj)
    others: list[JsonValue] = [_metric(item, _V1_SOURCES) for item in metrics if not _is_cpu_share(item)]
    if others:
        annotations[METRICS] = _text(others)
    current = objects(status.get("currentMetrics"))
    if current:
        annotations[STATUSES] = _text([_metric(item, _V1_CURRENT) for item in current])
    if isinstance(spec.get("behavior"), dict):
        annotations[BEHAVIOR] = _text(internal_form("autoscaling.HorizontalPodAutoscalerBehavior", spec["behavior"]))
    if conditions := objects(status.get("conditions")):
        annotations[CONDITIONS] = _text([_condition(item) for item in conditions])
    shown: JsonObject = {name: status[name] for name in _SHARED_STATUS if name in status}
    shown |= {name: status.get(name) or 0 for name in ("currentReplicas", "desiredReplicas")}
    for item in current:
        used = find(item, "resource", "current", "averageUtilization")
        if item.get("type") == "Resource" and find(item, "resource", "name") == "cpu" and used is not None:
            shown["currentCPUUtilizationPercentage"] = used
    changed: JsonObject = {"apiVersion": "autoscaling/v1", "spec": shared, "status": shown}
    return _annotated({**obj, **changed}, annotations)


def autoscaler_v2(obj: JsonObject) -> JsonObject:
    """Return an autoscaler of autoscaling/v1 in the stored form."""
    spec, status = find_object(obj, "spec"), find_object(obj, "status")
    shared: JsonObject = {name: spec[name] for name in _SHARED_SPEC if name in spec}
    metrics = [_metric(item, _V2_SOURCES) for item in objects(_read(obj, METRICS))]
    share = spec.get("targetCPUUtilizationPercentage")
    if share is not None:
        target: JsonObject = {"type": "Utilization", "averageUtilization": share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    shared["metrics"] = list[JsonValue](metrics) or default_metrics()
    if behavior := _behavior(_read(obj, BEHAVIOR)):
        shared["behavior"] = behavior
    stored: JsonObject = {name: status[name] for name in _SHARED_STATUS if name in status}
    if status.get("currentReplicas"):
        stored["currentReplicas"] = status["currentReplicas"]
    stored["desiredReplicas"] = status.get("desiredReplicas") or 0
    stored["currentMetrics"] = _current_metrics(obj, status.get("currentCPUUtilizationPercentage"))
    if conditions := objects(_read(obj, CONDITIONS)):
        stored["conditions"] = [_condition(item) for item in conditions]
    changed: JsonObject = {"apiVersion": "autoscaling/v2", "spec": shared, "status": stored}
    return _annotated({**obj, **changed}, _own_annotations(obj))


def _current_metrics(obj: JsonObject, used: JsonValue) -> JsonValue:
    told = objects(_read(obj, STATUSES))
    if told:
        return [_metric(item, _V2_CURRENT) for item in told]
    if used is None:
        return None
    return [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]


def _annotated(obj: JsonObject, annotations: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name != "annotations"}
    return {**obj, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


def _own_annotations(obj: JsonObject) -> JsonObject:
    """Return the annotations other than those in which autoscaling/v1 holds fields of autoscaling/v2."""
    return {
        name: value for name, value in find_object(obj, "metadata", "annotations").items() if name not in ROUND_TRIP
    }


def _is_cpu_share(metric: JsonObject) -> bool:
    return (
        metric.get("type") == "Resource"
        and find(metric, "resource", "name") == "cpu"
        and find(metric, "resource", "target", "averageUtilization") is not None
    )


def _metric(metric: JsonObject, sources: _Sources) -> JsonObject:
    found: JsonObject = {"type": metric.get("type") or ""}
    for name in _SOURCES:
        source = metric.get(name)
        if isinstance(source, dict):
            found[name] = _filled(sources[name](source))
    return found


def _filled(source: JsonObject) -> JsonObject:
    return {
        name: _filled(value) if isinstance(value, dict) else value
        for name, value in source.items()
        if value is not None
    }


def _v1_source(name: str, *, current: bool) -> _Source:
    """Return a function that converts a metric's source to version 1: its target, or its present value if ``current`` is true."""
    held, prefix = ("current", "current") if current else ("target", "target")
    average, value = f"{prefix}AverageValue", f"{prefix}Value"
    zero: JsonValue = "0"

    def measured(source: JsonObject) -> JsonObject:
        amounts = find_object(source, held)
        metric, selector = find(source, "metric", "name") or "", find(source, "metric", "selector")
        if name == "object":
            return {
                "target": _in_order(source.get("describedObject")), "metricName": metric, value: amounts.get("value") or zero,
                "selector": selector, "averageValue": amounts.get("averageValue"),
            }  # fmt: skip
        if name == "pods":
            return {"metricName": metric, average: amounts.get("averageValue") or zero, "selector": selector}
        exact = amounts.get("value") or (zero if current else None)
        return {"metricName": metric, "metricSelector": selector, value: exact, average: amounts.get("averageValue")}

    def resource(source: JsonObject) -> JsonObject:
        amounts = find_object(source, held)
        return {
            "name": source.get("name") or "",
            f"{prefix}AverageUtilization": amounts.get("averageUtilization"),
            average: amounts.get("averageValue") or (zero if current else None),
            "container": source.get("container"),
        }

    return resource if name in {"resource", "containerResource"} else measured


def _v2_source(name: str, *, current: bool) -> _Source:
    """Return a function that converts a metric's source of version 1 to version 2."""
    held, prefix = ("current", "current") if current else ("target", "target")

    def measured(source: JsonObject) -> JsonObject:
        value = source.get(f"{prefix}Value")
        average = source.get("averageValue" if name == "object" else f"{prefix}AverageValue")
        if not current and name == "object" and average is not None and value in {"0", 0}:
            value = None
        kind = "AverageValue" if name == "pods" or (average if name == "object" else value is None) else "Value"
        amounts: JsonObject = {"type": None if current else kind, "value": value, "averageValue": average}
        selector = source.get("metricSelector" if name == "external" else "selector")
        metric: JsonObject = {"name": source.get("metricName") or "", "selector": selector}
        found: JsonObject = {"metric": metric, held: amounts}
        return {"describedObject": source.get("target"), **found} if name == "object" else found

    def resource(source: JsonObject) -> JsonObject:
        share, average = source.get(f"{prefix}AverageUtilization"), source.get(f"{prefix}AverageValue")
        kind = None if current else "AverageValue" if share is None else "Utilization"
        amounts: JsonObject = {"type": kind, "averageValue": average, "averageUtilization": share}
        return {"name": source.get("name") or "", "container": source.get("container"), held: amounts}

    return resource if name in {"resource", "containerResource"} else measured


_V1_SOURCES: Final = {name: _v1_source(name, current=False) for name in _SOURCES}
_V1_CURRENT: Final = {name: _v1_source(name, current=True) for name in _SOURCES}
_V2_SOURCES: Final = {name: _v2_source(name, current=False) for name in _SOURCES}
_V2_CURRENT: Final = {name: _v2_source(name, current=True) for name in _SOURCES}


def _in_order(reference: JsonValue) -> JsonValue:
    return {name: found for name in ("kind", "name", "apiVersion") if (found := find(reference, name))}


def _condition(condition: JsonObject) -> JsonObject:
    found: JsonObject = {"type": "", "status": "", "lastTransitionTime": None}
    return found | {name: condition[name] for name in _CONDITION if condition.get(name)}


def _behavior(value: JsonValue) -> JsonObject:
    """Return a behavior in the form of the API. ``value`` has the form of kube-apiserver's internal types; its member
    names may be in any case, as Go reads them.
    """
    found: JsonObject = {}
    for name in ("scaleUp", "scaleDown"):
        rules = _named(_member(value, name), _RULES)
        if "policies" in rules:
            rules["policies"] = [_named(item, _POLICY) for item in objects(rules["policies"])]
        if rules:
            found[name] = rules
    return found


def _named(value: JsonValue, names: tuple[str, ...]) -> JsonObject:
    return {name: item for name in names if (item := _member(value, name)) is not None}


def _member(value: JsonValue, name: str) -> JsonValue:
    if not isinstance(value, dict):
        return None
    return next((item for key, item in value.items() if key.lower() == name.lower()), None)


def _read(obj: JsonObject, annotation: str) -> JsonValue:
    text = find(obj, "metadata", "annotations", annotation)
    if not isinstance(text, str):
        return None
    try:
        return decode_json(text, max_bytes=_MAX_ANNOTATION, what=annotation)
    except FormatError:
        return None


def _text(value: JsonValue) -> str:
    return encode_json(value).decode()
