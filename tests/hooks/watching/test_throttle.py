"""Limits on the frequency of hook runs."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.hooks.watching.throttle import Throttle


def test_burst_is_followed_by_one_run_per_interval() -> None:
    throttle = Throttle(timedelta(seconds=10), 3)
    for _ in range(3):
        assert throttle.wait_s(100.0) == 0
        throttle.take(100.0)
    assert throttle.wait_s(100.0) == 10
    assert throttle.wait_s(104.0) == 6
    assert throttle.wait_s(110.0) == 0
    throttle.take(110.0)
    assert throttle.wait_s(110.0) == 10


def test_unused_runs_accumulate_only_up_to_the_burst() -> None:
    throttle = Throttle(timedelta(seconds=1), 2)
    for _ in range(2):
        assert throttle.wait_s(1e6) == 0
        throttle.take(1e6)
    assert throttle.wait_s(1e6) == pytest.approx(1)


def test_run_that_did_not_wait_lengthens_the_next_wait() -> None:
    throttle = Throttle(timedelta(seconds=5), 1)
    throttle.take(0.0)
    throttle.take(0.0)
    assert throttle.wait_s(0.0) == 10


def test_a_run_that_did_not_begin_is_not_counted() -> None:
    throttle = Throttle(timedelta(seconds=5), 2)
    throttle.take(0.0)
    throttle.take(0.0)
    throttle.take(0.0)
    throttle.give_back()
    assert throttle.wait_s(0.0) == 5


@given(st.integers(1, 20), st.integers(1, 5), st.lists(st.integers(0, 60), max_size=60))
def test_runs_never_exceed_burst_plus_elapsed_intervals(interval: int, burst: int, pauses: list[int]) -> None:
    throttle = Throttle(timedelta(seconds=interval), burst)
    now, taken = 0.0, list[float]()
    for pause in pauses:
        now += pause
        now += throttle.wait_s(now)
        assert throttle.wait_s(now) == 0
        throttle.take(now)
        taken.append(now)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - taken[first]) // interval
