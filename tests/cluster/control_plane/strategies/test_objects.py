from tests.cluster.control_plane.samples import builtin
from tests.cluster.control_plane.views import FakeView
from wharfinger.cluster.control_plane.strategies.objects import STRATEGIES, strategy_of
from wharfinger.formats.json_value import JsonObject


def test_kinds_have_their_own_strategy_or_none() -> None:
    lease, config_map = builtin("coordination.k8s.io", "v1", "leases").kind, builtin("", "v1", "configmaps").kind
    obj: JsonObject = {"data": {"a": "b"}}

    assert strategy_of(lease) is STRATEGIES["Lease.coordination.k8s.io"]
    assert strategy_of(config_map).create(obj, FakeView()) is obj
    assert strategy_of(config_map).update(obj, {}, FakeView()) is obj
