"""Series of equal Events: the time at which an Event is created, and the times at which its count is written."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.cluster_events.series import (
    BURST,
    FORGET_S,
    REFILL_S,
    UPDATE_S,
    Allowance,
    Create,
    Due,
    Effect,
    Lost,
    Observed,
    Series,
    SeriesEvent,
    Update,
    Wait,
    Written,
    begun,
    is_over,
    step,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
NEW = begun(0.0, T0)
ONCE = replace(NEW, written=1, written_s=10.0)
TWICE = replace(ONCE, count=2)


@pytest.mark.parametrize(
    ("series", "event", "after", "effect"),
    [
        (NEW, Due(0.0), NEW, Create()),
        (NEW, Observed(1.0, T0), replace(NEW, count=2, seen_s=1.0), Wait(0.0)),
        (NEW, Written(10.0, 1), replace(NEW, written=1, written_s=10.0), None),
        (replace(NEW, count=3), Written(10.0, 1), replace(NEW, count=3, written=1, written_s=10.0), Wait(UPDATE_S)),
        (ONCE, Due(20.0), ONCE, None),
        (ONCE, Observed(15.0, T0), replace(TWICE, seen_s=15.0), Wait(25.0)),
        (ONCE, Observed(99.0, T0), replace(TWICE, seen_s=99.0), Wait(0.0)),
        (TWICE, Due(15.0), TWICE, Wait(25.0)),
        (TWICE, Due(40.0), TWICE, Update()),
        (TWICE, Lost(), replace(TWICE, count=1, written=0), Create()),
    ],
)
def test_each_event_has_its_transition(
    series: Series, event: SeriesEvent, after: Series, effect: Effect | None
) -> None:
    assert step(series, event) == (after, effect)


def test_a_written_series_expires_without_repetitions() -> None:
    assert not is_over(replace(ONCE, seen_s=0.0), FORGET_S - 1)
    assert is_over(replace(ONCE, seen_s=0.0), FORGET_S)
    assert not is_over(replace(TWICE, seen_s=0.0), FORGET_S)


@given(st.lists(st.floats(0.0, 20.0), max_size=60))
def test_the_count_is_finally_written_and_rate_limited(pauses: list[float]) -> None:
    now_s, series, due_s, writes = 0.0, NEW, 0.0, list[tuple[float, int]]()

    def write_due(until_s: float) -> None:
        nonlocal series, due_s
        while due_s <= until_s:
            at_s, due_s = due_s, math.inf
            series, effect = step(series, Due(at_s))
            if isinstance(effect, Wait):
                due_s = at_s + effect.delay_s
            elif effect is not None:
                writes.append((at_s, series.count))
                series, after = step(series, Written(at_s, series.count))
                assert after is None

    for pause_s in pauses:
        write_due(now_s + pause_s)
        now_s += pause_s
        series, effect = step(series, Observed(now_s, T0 + timedelta(seconds=now_s)))
        assert isinstance(effect, Wait)
        due_s = min(due_s, now_s + effect.delay_s)
    write_due(now_s + 2 * UPDATE_S)
    assert writes[-1][1] == series.count == len(pauses) + 1
    assert all(later[0] - earlier[0] >= UPDATE_S - 1e-6 for earlier, later in pairwise(writes))


@given(st.lists(st.floats(0.0, 300.0), max_size=200))
def test_an_allowance_limits_every_time_span(pauses: list[float]) -> None:
    now_s, left, used = 0.0, Allowance(), list[float]()
    for pause_s in pauses:
        now_s += pause_s
        after = left.use(now_s)
        if after is not None:
            left = after
            used.append(now_s)
    for index, since_s in enumerate(used):
        for number, until_s in enumerate(used[index:], 1):
            assert number <= BURST + (until_s - since_s) / REFILL_S + 1e-6
    assert left.is_full(now_s + BURST * REFILL_S)
