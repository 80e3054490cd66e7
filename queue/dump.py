"""What a queue looks like from outside: frozen snapshots, made in one step from the machine's state.

Times are relative to the moment of the dump, in seconds, so that they mean the same to whoever reads them later.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.queue.state import BackingOff, Completing, Ending, Entry, Parked, QueueState, Running

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
    """All queues together: what is there now, and what happened since the start.

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
    """The queue at ``now``; ``executing`` are the runs that have really begun."""
    entries = [(lane, entry) for lane, entries in state.lanes.items() for entry in entries]
    return QueueDump(
        name, tuple(_dump_task(index, lane, entry, now, executing) for index, (lane, entry) in enumerate(entries, 1))
    )


def merge(name: str, dumps: tuple[QueueDump, ...]) -> QueueDump:
    """Queues that follow each other under one name, as one."""
    tasks = (task for dump in dumps for task in dump.tasks)
    return QueueDump(name, tuple(replace(task, index=index) for index, task in enumerate(tasks, 1)))


def _dump_task(index: int, lane: str, entry: Entry, now: float, executing: AbstractSet[int]) -> TaskDump:
    phase = entry.phase
    cause = phase.cause if isinstance(phase, Ending) else PARKED_CAUSE if isinstance(phase, Parked) else ""
    return TaskDump(
        index=index,
        name=entry.name,
        lane=lane,
        enqueued_s_ago=max(0.0, now - entry.enqueued_at),
        attempt=entry.attempt,
        running=isinstance(phase, Running | Completing | Ending) and phase.run in executing,
        retry_in_s=max(0.0, phase.until - now) if isinstance(phase, BackingOff) else None,
        error=entry.error,
        cause=cause,
        parked=isinstance(phase, Parked),
    )
