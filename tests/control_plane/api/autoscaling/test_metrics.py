"""Validation of the scale targets and the metrics of HorizontalPodAutoscalers."""

from wharfinger.control_plane.api.autoscaling.metrics import api_version_problem, has_api_version_problem, metric_errors
from wharfinger.formats.json.value import JsonObject


def test_invalid_api_versions_of_targets_are_refused() -> None:
    assert api_version_problem("a/b/c", core=True) == "unexpected GroupVersion string: a/b/c"
    assert api_version_problem("v1", core=False) == "apiVersion must specify API group"
    assert api_version_problem("apps/v1", core=False) == ""
    assert has_api_version_problem({"apiVersion": "a/b/c"})
    assert not has_api_version_problem(None)


def test_a_metric_with_two_sources_is_refused() -> None:
    metric: JsonObject = {"type": "Pods", "object": {}, "pods": {}}
    fields = [error.field for error in metric_errors(metric, "m", check_version=True)]
    assert fields[-1] == "m.object"
