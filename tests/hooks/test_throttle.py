"""How often a hook may run."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.hooks.throttle import Throttle


def test_a_burst_then_one_each_interval() -> None:
    throttle = Throttle(timedelta(seconds=5), 2)
    for _ in range(2):
        assert throttle.wait_s(100.0) == 0.0
        throttle.take(100.0)
    assert throttle.wait_s(100.0) == 5.0
    assert throttle.wait_s(103.0) == 2.0
    assert throttle.wait_s(105.0) == 0.0
    throttle.take(105.0)
    assert throttle.wait_s(105.0) == 5.0


def test_no_interval_is_no_bound_and_a_burst_of_nothing_is_one() -> None:
    free = Throttle(timedelta(), 0)
    for _ in range(100):
        free.take(1.0)
    assert free.wait_s(1.0) == 0.0
    once = Throttle(timedelta(seconds=1), 0)
    assert once.wait_s(0.0) == 0.0
    once.take(0.0)
    assert once.wait_s(0.0) == 1.0


@given(
    st.integers(1, 5),
    st.lists(st.floats(0, 20, allow_nan=False), max_size=30),
)
def test_in_no_stretch_of_time_are_there_more_runs_than_allowed(burst: int, pauses: list[float]) -> None:
    throttle, now, runs = Throttle(timedelta(seconds=2), burst), 0.0, list[float]()
    for pause in pauses:
        now += pause
        now += throttle.wait_s(now)
        throttle.take(now)
        runs.append(now)
    for at, first in enumerate(runs):
        for count, last in enumerate(runs[at:], 1):
            assert count <= burst + (last - first) / 2 + 1e-6
