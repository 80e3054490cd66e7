"""The dump of a queue: frozen snapshots, made in one step from the machine's state.

Times are relative to the moment of the dump, in seconds, so that they still mean the same when they are read later.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.queue.events import Enqueued
from wharfinger.queue.state import BackingOff, Completing, Ending, Head, Parked, QueueState, Running

PARKED_CAUSE: Final = "permanent failure: waits until an input changes"


@dataclass(frozen=True, slots=True)
class TaskDump:
    """One task. ``index`` counts from 1 over all lanes; ``retry_in_s`` is set only while it backs off.

    ``attempt`` counts runs begun; ``error`` is the last run's; ``cause`` says why it is ending or parked.
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
    """One queue, lane after lane, each head first."""

    name: str
    tasks: tuple[TaskDump, ...]


@dataclass(frozen=True, slots=True)
class QueuesStatistics:
    """All queues together: the present numbers, and those since the start.

    Now: ``queues``, ``tasks`` and those of them that run, back off or are parked. Since the start: tasks ``retired`` after
    success, ``dropped`` without, ``failures`` of runs, and those of them that were ``bugs`` (an unexpected exception).
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
    """Return the queue at ``now``; ``executing`` are the runs that have really begun."""
    tasks: list[TaskDump] = []
    for lane in state.lanes.values():
        tasks.append(_dump_head(len(tasks) + 1, lane.head, now, executing))
        tasks += [_dump_waiting(index, entry, now) for index, entry in enumerate(lane.waiting, len(tasks) + 1)]
    return QueueDump(name, tuple(tasks))


def merge(name: str, dumps: tuple[QueueDump, ...]) -> QueueDump:
    """Queues that follow each other under one name, as one."""
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
