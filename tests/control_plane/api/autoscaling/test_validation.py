"""Validation of changes to HorizontalPodAutoscalers."""

from wharfinger.control_plane.api.autoscaling.validation import autoscaler_update_errors
from wharfinger.formats.json.value import JsonObject


def test_old_violations_are_tolerated() -> None:
    metric: JsonObject = {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "K", "name": "n", "apiVersion": "a/b/c"},
            "metric": {"name": "m"},
            "target": {"type": "Value", "value": "1"},
        },
    }
    obj: JsonObject = {
        "spec": {
            "minReplicas": 0,
            "maxReplicas": 1,
            "metrics": [metric],
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "v1"},
        }
    }
    assert not autoscaler_update_errors(obj, obj)
