import pytest

from wharfinger.queue.state import (
    BackingOff,
    Completing,
    Ending,
    Entry,
    Parked,
    Phase,
    QueueState,
    Running,
    Waiting,
    is_completing,
    is_idle,
    is_over,
    next_wake,
)


def state(*heads: Phase, closing: str | None = None) -> QueueState:
    """One lane per head phase, each with a task waiting behind it."""
    lanes = {
        f"lane {index}": (Entry(2 * index, "a", 1, 0.0, phase), Entry(2 * index + 1, "b", 1, 0.0, Waiting()))
        for index, phase in enumerate(heads)
    }
    return QueueState(lanes=lanes, closing=closing)


def test_length_counts_all_lanes() -> None:
    assert QueueState().length == 0
    assert state(Running(1), Parked()).length == 4


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ((), None),
        ((Running(1), Parked(), Ending(2, "x"), Completing(3)), None),
        ((BackingOff(7.0),), 7.0),
        ((BackingOff(7.0), Running(1), BackingOff(3.0)), 3.0),
    ],
)
def test_next_wake_is_the_earliest_retry(heads: tuple[Phase, ...], expected: float | None) -> None:
    assert next_wake(state(*heads)) == expected


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ((), True),
        ((Parked(), Parked()), True),
        ((Parked(), Running(1)), False),
        ((BackingOff(1.0),), False),
        ((Ending(1, "x"),), False),
        ((Completing(1),), False),
    ],
)
def test_idle_means_nothing_happens_by_itself(heads: tuple[Phase, ...], expected: bool) -> None:
    assert is_idle(state(*heads)) is expected


def test_over_means_closed_and_empty() -> None:
    assert not is_over(state())
    assert not is_over(state(Running(1), closing="stopping"))
    assert is_over(state(closing="stopping"))


def test_completing_is_asked_by_run() -> None:
    found = state(Running(1), Completing(2))
    assert is_completing(found, 2)
    assert not is_completing(found, 1)
    assert not is_completing(found, 3)
