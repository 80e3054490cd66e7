"""The state of one queue at one moment: plain records, which `queue.machine` changes.

A lane is the task whose turn it is, in one of five phases, and the tasks that wait behind it, as they were enqueued. A lane
without tasks does not exist, so the state of an idle queue is an empty mapping.
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
        """Refuse lanes that could hold nothing."""
        if self.max_tasks < 1:
            raise ValueError(f"queues: max_tasks must be at least 1, is {self.max_tasks}")


@record
class History:
    """A head's runs so far: ``attempt`` counts the attempts that began, ``failures`` the failed ones since the last
    progress.
    """

    attempt: int = 1
    failures: int = 0
    error: str = ""


FIRST: Final = History()
"""The history of a task in its first run."""


@record
class Running:
    """Being executed; ``input_changed`` says that inputs changed after it began."""

    entry: Enqueued
    run: int
    history: History = FIRST
    input_changed: bool = False


@record
class Completing:
    """The run succeeded; the caller is being told."""

    entry: Enqueued
    run: int
    history: History = FIRST


@record
class Ending:
    """Cancelled while running; still winding down."""

    entry: Enqueued
    run: int
    cause: str
    history: History = FIRST


@record
class BackingOff:
    """Failed; runs again at ``until``."""

    entry: Enqueued
    until: float
    history: History = FIRST


@record
class Parked:
    """Failed permanently; runs again when an input changed."""

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
        """All its tasks, head first."""
        yield self.head.entry
        yield from self.waiting


@record
class QueueState:
    """One queue. ``closing`` is why nothing new is taken (None: open)."""

    rules: Rules = field(default_factory=Rules)
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    closing: str | None = None
    next_run: int = 1

    @property
    def length(self) -> int:
        """Tasks in all lanes."""
        return sum(len(lane) for lane in self.lanes.values())


def next_wake(state: QueueState) -> float | None:
    """Return when the next RetryDue is due; None if nothing waits for time to pass."""
    return min((lane.head.until for lane in state.lanes.values() if isinstance(lane.head, BackingOff)), default=None)


def is_backing_off(state: QueueState, name: str) -> bool:
    """Return whether this lane waits for time to pass."""
    lane = state.lanes.get(name)
    return lane is not None and isinstance(lane.head, BackingOff)


def is_idle(state: QueueState) -> bool:
    """Return whether nothing will happen without an event: every lane is empty, or its head is parked."""
    return all(isinstance(lane.head, Parked) for lane in state.lanes.values())
