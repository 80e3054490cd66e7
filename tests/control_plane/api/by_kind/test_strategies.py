from tests.control_plane.support.backend_views import FakeView
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.api.by_kind.strategies import STRATEGIES, strategy_of
from wharfinger.formats.json.value import JsonObject


def test_each_kind_has_its_own_strategy_or_the_default() -> None:
    lease, config_map = builtin("coordination.k8s.io", "v1", "leases").kind, builtin("", "v1", "configmaps").kind
    obj: JsonObject = {"data": {"a": "b"}}

    assert strategy_of(lease) is STRATEGIES["Lease.coordination.k8s.io"]
    assert strategy_of(config_map).create(obj, FakeView()) is obj
    assert strategy_of(config_map).update(obj, {}, FakeView()) is obj
