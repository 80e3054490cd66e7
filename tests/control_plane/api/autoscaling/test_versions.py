"""Conversions of HorizontalPodAutoscalers between ``v1`` and ``v2``."""

from wharfinger.control_plane.api.autoscaling.versions import BEHAVIOR, METRICS, autoscaler_v1, autoscaler_v2
from wharfinger.formats.json.value import JsonObject, find


def _metric(kind: str, name: str, target: JsonObject, **more: JsonObject) -> JsonObject:
    return {"type": kind, name: {"metric": {"name": "m"}, "target": target, **more}}


def test_an_autoscaler_survives_conversion_to_v1_and_back() -> None:
    obj: JsonObject = {
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3,
            "metrics": [
                _metric("Pods", "pods", {"type": "AverageValue", "averageValue": "1"}),
                _metric("External", "external", {"type": "Value", "value": "1"}),
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
                },
            ],
            "behavior": {
                "scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}
            },
        },
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }
    one = autoscaler_v1(obj)
    assert find(one, "spec", "targetCPUUtilizationPercentage") == 5
    back = autoscaler_v2(one)
    assert back["spec"] == obj["spec"]
    assert back["status"] == obj["status"]


def test_invalid_annotations_are_dropped() -> None:
    annotations: JsonObject = {METRICS: "{", BEHAVIOR: "[]"}
    found = autoscaler_v2({"metadata": {"annotations": annotations}, "spec": {}})
    assert find(found, "metadata", "annotations") is None
    assert find(found, "spec", "behavior") is None
    assert find(found, "spec", "metrics", 0, "resource", "name") == "cpu"
