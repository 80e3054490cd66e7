"""The defaults of HorizontalPodAutoscalers: ``minReplicas``, metrics, and the scaling behavior if a part of it is specified."""

from typing import Final

from wharfinger.control_plane.api.common.filling import inner
from wharfinger.formats.json.value import JsonObject, JsonValue

ROUND_TRIP: Final = (
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)
"""The annotations in which autoscaling/v1 holds fields that only autoscaling/v2 has; autoscaling/v2 drops them."""
_PERIOD: Final = 15
_UTILIZATION: Final = 80


def default_autoscaler(obj: JsonObject) -> None:
    """Set the defaults of an autoscaler.

    The other defaults of an object of autoscaling/v1 are set when it is converted to autoscaling/v2.
    """
    spec = inner(obj, "spec")
    spec.setdefault("minReplicas", 1)
    if obj.get("apiVersion") != "autoscaling/v2":
        return
    _drop_annotations(inner(obj, "metadata"))
    if not spec.get("metrics"):
        spec["metrics"] = default_metrics()
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        behavior["scaleUp"] = {
            **_rules(_policy("Pods", 4), _policy("Percent", 100), window=0),
            **_given(behavior, "scaleUp"),
        }
        behavior["scaleDown"] = {**_rules(_policy("Percent", 100), window=None), **_given(behavior, "scaleDown")}


def _drop_annotations(metadata: JsonObject) -> None:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or not any(name in annotations for name in ROUND_TRIP):
        return
    kept: JsonObject = {name: value for name, value in annotations.items() if name not in ROUND_TRIP}
    metadata["annotations"] = kept
    if not kept:
        del metadata["annotations"]


def default_metrics() -> list[JsonValue]:
    """Return the metrics of an autoscaler that specifies none."""
    target: JsonObject = {"type": "Utilization", "averageUtilization": _UTILIZATION}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _rules(*policies: JsonValue, window: int | None) -> JsonObject:
    rules: JsonObject = {"selectPolicy": "Max", "policies": list(policies)}
    return rules if window is None else {"stabilizationWindowSeconds": window, **rules}


def _policy(kind: str, value: int) -> JsonObject:
    return {"type": kind, "value": value, "periodSeconds": _PERIOD}


def _given(behavior: JsonObject, name: str) -> JsonObject:
    found = behavior.get(name)
    return {key: value for key, value in found.items() if value is not None} if isinstance(found, dict) else {}
