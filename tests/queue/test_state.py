import pytest

from wharfinger.queue.events import Enqueued
from wharfinger.queue.fifo import Fifo
from wharfinger.queue.state import (
    FIRST,
    BackingOff,
    Completing,
    Ending,
    Head,
    Lane,
    Parked,
    QueueState,
    Rules,
    Running,
    is_backing_off,
    is_idle,
    next_wake,
)

A, B = Enqueued(1, "a", 1, 0.0), Enqueued(2, "b", 1, 0.0)


def state(*heads: Head) -> QueueState:
    """Return a queue state with one lane for each of ``heads``. A lane consists of its head and one task that waits
    behind it.
    """
    return QueueState(lanes={f"lane {index}": Lane(head, Fifo.of([B])) for index, head in enumerate(heads)})


def test_length_counts_all_lanes() -> None:
    assert QueueState().length == 0
    assert state(Running(A, 1), Parked(A)).length == 4


def test_a_lane_consists_of_its_head_and_the_waiting_tasks() -> None:
    lane = Lane(Running(A, 1), Fifo.of([B]))
    assert (len(lane), list(lane)) == (2, [A, B])


def test_a_task_that_runs_for_the_first_time_has_not_failed() -> None:
    assert Running(A, 1).history is FIRST
    assert (FIRST.attempt, FIRST.failures, FIRST.error) == (1, 0, "")


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ((), None),
        ((Running(A, 1), Parked(A), Ending(A, 2, "x"), Completing(A, 3)), None),
        ((BackingOff(A, 7.0),), 7.0),
        ((BackingOff(A, 7.0), Running(A, 1), BackingOff(A, 3.0)), 3.0),
    ],
)
def test_next_wake_is_the_earliest_retry(heads: tuple[Head, ...], expected: float | None) -> None:
    assert next_wake(state(*heads)) == expected


def test_lanes_back_off_independently() -> None:
    found = state(BackingOff(A, 7.0), Running(A, 1))
    assert [is_backing_off(found, f"lane {index}") for index in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ((), True),
        ((Parked(A), Parked(A)), True),
        ((Parked(A), Running(A, 1)), False),
        ((BackingOff(A, 1.0),), False),
        ((Ending(A, 1, "x"),), False),
        ((Completing(A, 1),), False),
    ],
)
def test_a_queue_is_idle_if_nothing_happens_without_an_event(heads: tuple[Head, ...], expected: bool) -> None:
    assert is_idle(state(*heads)) is expected


@pytest.mark.parametrize("max_tasks", [0, -1])
def test_a_limit_of_zero_tasks_is_refused(max_tasks: int) -> None:
    with pytest.raises(ValueError, match="expected max_tasks of at least 1"):
        Rules(max_tasks=max_tasks)
