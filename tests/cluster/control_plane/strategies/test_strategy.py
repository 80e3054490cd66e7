from tests.cluster.control_plane.views import FakeView
from wharfinger.cluster.control_plane.strategies.strategy import Strategy


def test_a_strategy_does_nothing_by_default() -> None:
    strategy = Strategy()

    assert strategy.create({"a": 1}, FakeView()) == {"a": 1}
    assert strategy.update({"a": 1}, {"a": 2}, FakeView()) == {"a": 1}
    assert strategy.status({"a": 1}, {"a": 2}, FakeView()) == {"a": 1}
