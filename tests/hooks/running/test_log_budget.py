"""The log budget of a hook: it limits the number of logged lines, and counts the lines that are left out."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.hooks.running.log_budget import (
    BURST_CHARS,
    BURST_LINES,
    CHARS_PER_S,
    LINES_PER_S,
    OPEN_AGAIN,
    LogBudget,
)

BURSTS = st.lists(st.tuples(st.floats(0, 600), st.integers(1, 900), st.integers(0, 10_000)), max_size=12)


def flood(budget: LogBudget, lines: int, now: float, chars: int = 10) -> tuple[LogBudget, int]:
    """Charge this number of lines, each with ``chars`` characters, to the budget at the time ``now``. Return the new budget and
    the number of lines that may be logged.
    """
    logged = 0
    for _ in range(lines):
        budget, admitted = budget.admit(chars, now)
        logged += admitted
    return budget, logged


@given(BURSTS)
def test_logged_lines_are_limited_and_the_rest_are_counted(bursts: list[tuple[float, int, int]]) -> None:
    budget, now, printed, logged, chars = LogBudget(), 0.0, 0, 0, 0
    for pause, lines, size in bursts:
        now += pause
        budget, more = flood(budget, lines, now, size)
        printed, logged, chars = printed + lines, logged + more, chars + more * size
        assert logged <= BURST_LINES + LINES_PER_S * now
        assert chars <= BURST_CHARS + CHARS_PER_S * now
        assert logged + budget.left_out == printed


@given(st.lists(st.floats(1, 1000), max_size=60))
def test_output_within_the_rate_is_logged_completely(pauses: list[float]) -> None:
    budget, now = LogBudget(), 0.0
    for pause in pauses:
        now += pause
        budget, logged = flood(budget, 2, now)
        assert logged == 2


def test_after_a_flood_lines_are_logged_in_bursts() -> None:
    budget, logged = flood(LogBudget(), 5000, 0.0)
    assert (logged, budget.left_out) == (BURST_LINES, 4000)
    full_again = OPEN_AGAIN * BURST_LINES / LINES_PER_S
    budget, logged = flood(budget, 10, full_again - 1)
    assert logged == 0
    budget, logged = flood(budget, 1000, full_again)
    assert logged == OPEN_AGAIN * BURST_LINES
    budget, left_out = budget.report()
    assert (left_out, budget.left_out) == (4000 + 10 + 900, 0)


def test_long_lines_count_by_their_characters() -> None:
    budget, logged = flood(LogBudget(), 200, 0.0, 10_000)
    assert logged == BURST_CHARS // 10_000
    assert flood(budget, 1, 1.0, 10)[1] == 0
    assert flood(budget, 1, OPEN_AGAIN * BURST_CHARS / CHARS_PER_S, 10)[1] == 1


def test_stopped_clock_does_not_refill_the_budget() -> None:
    budget, _ = flood(LogBudget(), 2000, 5.0)
    assert flood(budget, 1, 5.0)[1] == flood(budget, 1, 0.0)[1] == 0
