from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.objects.strategy import Strategy


def test_the_default_strategy_changes_nothing() -> None:
    strategy = Strategy()

    assert strategy.create({"a": 1}, FakeView()) == {"a": 1}
    assert strategy.update({"a": 1}, {"a": 2}, FakeView()) == {"a": 1}
    assert strategy.status({"a": 1}, {"a": 2}, FakeView()) == {"a": 1}
