"""The state machine that limits concurrent requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.traffic.pace_machine import CALM_S, SLOW_S, Answered, Event, Pace, Refused, start, step


def test_pace_starts_at_its_ceiling_and_stays_there_without_refusals() -> None:
    pace = start(32, 4)
    for number in range(1000):
        pace = step(pace, Answered(float(number), 0.02, busy=True))
    assert pace.at_once == 32


def test_refusals_lower_the_pace_once_a_second_down_to_its_floor() -> None:
    pace = start(32, 4)
    seen = []
    for number in range(100):
        pace = step(pace, Refused(number * CALM_S / 4))
        seen.append(pace.at_once)
    assert seen[:9] == [22, 22, 22, 22, 15, 15, 15, 15, 10]
    assert seen[-1] == 4


def test_answers_raise_the_pace_only_while_it_is_used_up() -> None:
    pace = step(start(32, 4), Refused(0.0))
    idle = pace
    for number in range(1000):
        idle = step(idle, Answered(float(number), 0.02, busy=False))
        pace = step(pace, Answered(float(number), 0.02, busy=True))
    assert (idle.at_once, pace.at_once) == (22, 32)


def test_a_server_that_becomes_slow_lowers_the_pace() -> None:
    pace = start(32, 4)
    for number in range(50):
        pace = step(pace, Answered(float(number), 0.05, busy=True))
    for number in range(50, 80):
        pace = step(pace, Answered(float(number), 5.0, busy=True))
    assert pace.at_once < 10
    slow = pace
    for number in range(80, 1000):
        slow = step(slow, Answered(float(number), 0.05, busy=True))
    assert slow.at_once == 32


def test_a_server_that_was_always_slow_does_not_lower_the_pace() -> None:
    pace = start(32, 4)
    for number in range(500):
        pace = step(pace, Answered(float(number), 3 * SLOW_S, busy=True))
    assert pace.at_once == 32


def test_untimed_answers_raise_the_pace_without_timing() -> None:
    pace = step(step(start(8, 2), Refused(0.0)), Answered(1.0, None, busy=True))
    assert (pace.average_s, pace.usual_s) == (0.0, 0.0)
    assert pace.limit > 8 * 0.7


@pytest.mark.parametrize(("ceiling", "floor"), [(4, 5), (4, 0)])
def test_a_floor_above_the_ceiling_is_refused(ceiling: int, floor: int) -> None:
    with pytest.raises(ValueError, match="expected 1 <= floor <= ceiling"):
        start(ceiling, floor)


EVENTS = st.lists(
    st.one_of(
        st.builds(Refused, now=st.floats(0, 100)),
        st.builds(
            Answered, now=st.floats(0, 100), took_s=st.none() | st.floats(0, 60, allow_nan=False), busy=st.booleans()
        ),
    ),
    max_size=100,
)


@given(EVENTS)
def test_the_pace_stays_between_floor_and_ceiling(events: list[Event]) -> None:
    pace: Pace = start(16, 3)
    for event in events:
        pace = step(pace, event)
        assert 3 <= pace.at_once <= 16
