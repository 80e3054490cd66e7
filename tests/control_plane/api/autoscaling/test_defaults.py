"""Defaults of HorizontalPodAutoscalers."""

from wharfinger.control_plane.api.autoscaling.defaults import ROUND_TRIP, default_autoscaler
from wharfinger.formats.json.value import JsonObject, find


def test_annotations_of_the_other_version_are_dropped() -> None:
    obj: JsonObject = {"apiVersion": "autoscaling/v2", "metadata": {"annotations": {ROUND_TRIP[0]: "[]", "a": "b"}}}
    default_autoscaler(obj)
    assert find(obj, "metadata", "annotations") == {"a": "b"}
    only: JsonObject = {"apiVersion": "autoscaling/v2", "metadata": {"annotations": {ROUND_TRIP[0]: "[]"}}}
    default_autoscaler(only)
    assert find(only, "metadata") == {}


def test_an_autoscaler_of_v1_defaults_to_one_replica() -> None:
    obj: JsonObject = {"apiVersion": "autoscaling/v1"}
    default_autoscaler(obj)
    assert obj["spec"] == {"minReplicas": 1}
