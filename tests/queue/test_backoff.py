import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.queue.backoff import BackoffPolicy

MIDDLE = 0.5  # This random number leaves a delay unchanged.


@pytest.mark.parametrize(
    ("failures", "expected"), [(1, 15.0), (2, 22.5), (3, 33.75), (4, 40.0), (5, 40.0), (10**9, 40.0)]
)
def test_the_delay_grows_up_to_a_ceiling_that_leaves_room_for_the_jitter(failures: int, expected: float) -> None:
    assert BackoffPolicy().delay(failures, MIDDLE) == pytest.approx(expected)


@pytest.mark.parametrize(("draw", "expected"), [(0.0, 7.5), (0.5, 15.0), (1 - 2**-53, 22.5)])
def test_the_draw_spreads_the_delay(draw: float, expected: float) -> None:
    assert BackoffPolicy().delay(1, draw) == pytest.approx(expected)


def test_without_jitter_the_ceiling_is_the_cap() -> None:
    policy = BackoffPolicy(initial_s=1, factor=2, max_s=10, jitter=0)
    assert [policy.delay(n, 0.9) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]


policies = st.builds(
    lambda initial, factor, room, jitter: BackoffPolicy(initial, factor, initial * room, jitter),
    st.floats(1e-3, 1e6),
    st.floats(1, 1e6),
    st.floats(1, 1e6),
    st.floats(0, 0.99),
)


@given(policies, st.integers(1, 10**12), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_positive_and_never_above_the_cap(policy: BackoffPolicy, failures: int, draw: float) -> None:
    assert 0 < policy.delay(failures, draw) <= policy.max_s * (1 + 1e-12)


@given(policies, st.integers(1, 1000))
def test_a_delay_never_shrinks_with_more_failures(policy: BackoffPolicy, failures: int) -> None:
    assert policy.delay(failures, MIDDLE) <= policy.delay(failures + 1, MIDDLE)


@pytest.mark.parametrize(
    ("initial_s", "factor", "max_s", "jitter"),
    [
        (0, 2, 10, 0.5),
        (-1, 2, 10, 0.5),
        (11, 2, 10, 0.5),
        (1, 0.5, 10, 0.5),
        (1, math.inf, 10, 0.5),
        (1, 2, math.inf, 0.5),
        (math.nan, 2, 10, 0.5),
        (1, math.nan, 10, 0.5),
        (1, 2, 10, 1),
        (1, 2, 10, -0.1),
    ],
)
def test_a_policy_with_zero_or_infinite_delays_is_refused(
    initial_s: float, factor: float, max_s: float, jitter: float
) -> None:
    with pytest.raises(ValueError, match="backoff"):
        BackoffPolicy(initial_s, factor, max_s, jitter)


@pytest.mark.parametrize(("failures", "draw"), [(0, 0.5), (-1, 0.5), (1, 1.0), (1, -0.1)])
def test_delay_refuses_invalid_arguments(failures: int, draw: float) -> None:
    with pytest.raises(ValueError, match="expected failures"):
        BackoffPolicy().delay(failures, draw)
