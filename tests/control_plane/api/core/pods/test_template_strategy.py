"""Fields of disabled features, which the API server drops from Pod templates."""

import pytest

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.by_kind.workload_strategies import WORKLOAD_STRATEGIES
from wharfinger.control_plane.api.core.pods.template_strategy import TEMPLATES
from wharfinger.formats.json.value import JsonObject, find

SPEC: JsonObject = {
    "schedulingGroup": {"podGroupName": "x"},
    "containers": [
        {"name": "c", "lifecycle": {"stopSignal": ""}},
        {"name": "d", "lifecycle": {"stopSignal": "SIGTERM", "preStop": {}}},
    ],
    "volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {}, "secret": {}}]}}],
}
KEPT: JsonObject = {
    "containers": [{"name": "c"}, {"name": "d", "lifecycle": {"preStop": {}}}],
    "volumes": [{"name": "v", "projected": {"sources": [{"secret": {}}]}}],
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_disabled_fields_are_dropped(kind: str) -> None:
    obj: JsonObject = SPEC
    for name in reversed(TEMPLATES[kind]):
        obj = {name: obj}
    obj = {"metadata": {"name": "x", "uid": "u"}, **obj}
    strategy = WORKLOAD_STRATEGIES[kind]
    assert find(strategy.create(obj, FakeView()), *TEMPLATES[kind]) == KEPT
    assert find(strategy.update(obj, obj, FakeView()), *TEMPLATES[kind]) == KEPT


def test_templates_without_disabled_fields_are_unchanged() -> None:
    plain: JsonObject = {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}
    strategy = WORKLOAD_STRATEGIES["Deployment.apps"]
    assert strategy.create(plain, FakeView()) is plain
    odd: JsonObject = {"spec": {"template": None}}
    assert strategy.create(odd, FakeView()) is odd
