"""The dump of a queue: frozen snapshots, made in one step from the state of the queue's machine (`queue.machine`).

Times are relative to the moment of the dump, in seconds, so a dump can be understood later without a clock.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.queue.events import Enqueued
from wharfinger.queue.state import BackingOff, Completing, Ending, Head, Parked, QueueState, Running

PARKED_CAUSE: Final = "permanent failure: waits until an input changes"


@dataclass(frozen=True, slots=True)
class TaskDump:
    """One task. ``index`` counts from 1 over all lanes; ``retry_in_s`` is set only while the task backs off.

    ``attempt`` is the number of runs that began, ``error`` the error of the last run, and ``cause`` the reason why the task
    is ending or parked.
    """

    index: int
    name: str
    lane: str
    enqueued_s_ago: float
    attempt: int
    running: bool
    retry_in_s: float | None
    error: str
    cause: str
    parked: bool


@dataclass(frozen=True, slots=True)
class QueueDump:
    """The tasks of one queue, lane after lane, the head of each lane first."""

    name: str
    tasks: tuple[TaskDump, ...]


@dataclass(frozen=True, slots=True)
class QueuesStatistics:
    """The statistics of all queues together, at present and since the start.

    At present: ``queues``, ``tasks``, and the numbers of tasks that run, back off or are parked. Since the start: tasks
    ``retired`` (after success) and ``dropped`` (without success), ``failures`` of runs, and ``bugs`` among these failures
    (unexpected exceptions).
    """

    queues: int
    tasks: int
    running: int
    backing_off: int
    parked: int
    retired: int
    dropped: int
    failures: int
    bugs: int


def dump_queue(name: str, state: QueueState, now: float, executing: AbstractSet[int]) -> QueueDump:
    """Return the dump of a queue at ``now``; ``executing`` are the runs whose tasks are being executed."""
    tasks: list[TaskDump] = []
    for lane in state.lanes.values():
        tasks.append(_dump_head(len(tasks) + 1, lane.head, now, executing))
        tasks += [_dump_waiting(index, entry, now) for index, entry in enumerate(lane.waiting, len(tasks) + 1)]
    return QueueDump(name, tuple(tasks))


def merge(name: str, dumps: tuple[QueueDump, ...]) -> QueueDump:
    """Merge the dumps of all queues of one name into one dump; these queues run one after the other."""
    tasks = (task for dump in dumps for task in dump.tasks)
    return QueueDump(name, tuple(replace(task, index=index) for index, task in enumerate(tasks, 1)))


def _dump_head(index: int, head: Head, now: float, executing: AbstractSet[int]) -> TaskDump:
    return replace(
        _dump_waiting(index, head.entry, now),
        attempt=head.history.attempt,
        running=isinstance(head, Running | Completing | Ending) and head.run in executing,
        retry_in_s=max(0.0, head.until - now) if isinstance(head, BackingOff) else None,
        error=head.history.error,
        cause=head.cause if isinstance(head, Ending) else PARKED_CAUSE if isinstance(head, Parked) else "",
        parked=isinstance(head, Parked),
    )


def _dump_waiting(index: int, entry: Enqueued, now: float) -> TaskDump:
    return TaskDump(
        index=index,
        name=entry.name,
        lane=entry.lane,
        enqueued_s_ago=max(0.0, now - entry.at),
        attempt=0,
        running=False,
        retry_in_s=None,
        error="",
        cause="",
        parked=False,
    )
