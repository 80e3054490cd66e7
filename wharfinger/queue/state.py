"""The state of one queue at one moment: plain records, from which `queue.machine` computes the next state.

A lane is its head (the task whose turn it is, in one of five phases) and the tasks that wait behind it. A lane without tasks
does not exist, so the state of an idle queue is an empty mapping.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.events import Enqueued
from wharfinger.queue.fifo import Fifo
from wharfinger.queue.record import record


@dataclass(frozen=True, slots=True)
class Rules:
    """The constants of a queue: at most ``max_tasks`` tasks in a lane (at least 1), and the backoff."""

    max_tasks: int = 1000
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)

    def __post_init__(self) -> None:
        """Refuse a limit under which a lane could hold no task."""
        if self.max_tasks < 1:
            raise ValueError(f"queues: expected max_tasks of at least 1, found {self.max_tasks}")


@record
class History:
    """The runs of the task at the head of a lane: ``attempt`` runs have begun so far, and ``failures`` runs have failed since a
    change of the task's inputs last restarted the task.
    """

    attempt: int = 1
    failures: int = 0
    error: str = ""


FIRST: Final = History()
"""The history of a task in its first run."""


@record
class Running:
    """The task is being executed; ``input_changed`` is True if an input changed after the run began."""

    entry: Enqueued
    run: int
    history: History = FIRST
    input_changed: bool = False


@record
class Completing:
    """The run succeeded, and the callback that reports this is being called."""

    entry: Enqueued
    run: int
    history: History = FIRST


@record
class Ending:
    """The run was cancelled, and has not ended yet."""

    entry: Enqueued
    run: int
    cause: str
    history: History = FIRST


@record
class BackingOff:
    """The last run failed; the task runs again at ``until``."""

    entry: Enqueued
    until: float
    history: History = FIRST


@record
class Parked:
    """The last run failed permanently. The task runs again when an event unparks it, for example after an input has changed."""

    entry: Enqueued
    history: History = FIRST


Head: TypeAlias = Running | Completing | Ending | BackingOff | Parked


@record
class Lane:
    """The task whose turn it is, and the tasks behind it."""

    head: Head
    waiting: Fifo[Enqueued]

    def __len__(self) -> int:
        return 1 + len(self.waiting)

    def __iter__(self) -> Iterator[Enqueued]:
        """Iterate over all tasks, the head first."""
        yield self.head.entry
        yield from self.waiting


@record
class QueueState:
    """The state of one queue. ``closing`` is the reason why no more tasks are accepted; None if the queue is open."""

    rules: Rules = field(default_factory=Rules)
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    closing: str | None = None
    next_run: int = 1

    @property
    def length(self) -> int:
        """The number of tasks in all lanes."""
        return sum(len(lane) for lane in self.lanes.values())


def next_wake(state: QueueState) -> float | None:
    """Return the time at which the next backoff ends; None if no task is backing off."""
    return min((lane.head.until for lane in state.lanes.values() if isinstance(lane.head, BackingOff)), default=None)


def is_backing_off(state: QueueState, name: str) -> bool:
    """Return whether the head of this lane is backing off."""
    lane = state.lanes.get(name)
    return lane is not None and isinstance(lane.head, BackingOff)


def is_idle(state: QueueState) -> bool:
    """Return whether the queue is idle: it holds no task, or the head of each lane is parked."""
    return all(isinstance(lane.head, Parked) for lane in state.lanes.values())
