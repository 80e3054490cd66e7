import pytest

from tests.cluster.control_plane.views import FakeView
from wharfinger.cluster.control_plane.strategies.groups import GROUP_STRATEGIES
from wharfinger.formats.json_value import JsonObject

LEASE = GROUP_STRATEGIES["Lease.coordination.k8s.io"]
COORDINATED: JsonObject = {"spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "a"}}


def test_leases_have_no_strategy_unless_they_had_one() -> None:
    plain: JsonObject = {"spec": {"holderIdentity": "a"}}

    assert LEASE.create(COORDINATED, FakeView()) == plain
    assert LEASE.update(COORDINATED, plain, FakeView()) == plain
    assert LEASE.update(COORDINATED, COORDINATED, FakeView()) == COORDINATED


@pytest.mark.parametrize("kind", sorted(GROUP_STRATEGIES))
def test_nothing_given_is_altered(kind: str) -> None:
    strategy = GROUP_STRATEGIES[kind]
    for given in ({}, {"spec": {}, "status": {"a": 1}}):
        obj: JsonObject = {"metadata": {"name": "a"}, **given}
        before = repr(obj)
        strategy.create(obj, FakeView())
        strategy.update(obj, {}, FakeView())
        strategy.status(obj, {}, FakeView())
        assert repr(obj) == before
