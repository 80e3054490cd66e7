"""The state of one queue: lanes of entries, each in a phase; frozen, and changed by :func:`wharfinger.queue.machine.step` alone.

What the phases mean and how one becomes another is told at the top of :mod:`wharfinger.queue.machine`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from wharfinger.queue.backoff import BackoffPolicy

MAIN_LANE: Final = "main"


@dataclass(frozen=True, slots=True)
class Rules:
    """What does not change in a queue's life: at most ``max_tasks`` tasks in a lane, and the backoff."""

    max_tasks: int = 1000
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not its turn yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """Being executed; ``input_changed`` says that inputs changed after it began."""

    run: int
    input_changed: bool = False


@dataclass(frozen=True, slots=True)
class Completing:
    """Succeeded; the asker is being told."""

    run: int


@dataclass(frozen=True, slots=True)
class Ending:
    """Cancelled while running; still winding down."""

    run: int
    cause: str


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Failed; runs again at ``until``."""

    until: float


@dataclass(frozen=True, slots=True)
class Parked:
    """Failed permanently; runs again when an input changed."""


Phase: TypeAlias = Waiting | Running | Completing | Ending | BackingOff | Parked


@dataclass(frozen=True, slots=True)
class Entry:
    """One task in its lane. ``attempt`` counts its runs, ``failures`` those since it last had reason for hope."""

    task: int
    name: str
    scope: int
    enqueued_at: float
    phase: Phase = Waiting()
    attempt: int = 0
    failures: int = 0
    error: str = ""


Lane: TypeAlias = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue. ``lanes`` has no empty lane; ``closing`` is why nothing new is taken (None: open)."""

    rules: Rules = field(default_factory=Rules)
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    closing: str | None = None
    next_run: int = 1

    @property
    def length(self) -> int:
        """Tasks in all lanes."""
        return sum(len(lane) for lane in self.lanes.values())


def next_wake(state: QueueState) -> float | None:
    """When the next RetryDue is due; None if nothing waits for time to pass."""
    return min(
        (lane[0].phase.until for lane in state.lanes.values() if isinstance(lane[0].phase, BackingOff)), default=None
    )


def is_over(state: QueueState) -> bool:
    """Whether the queue was closed and everything has left it."""
    return state.closing is not None and not state.lanes


def is_idle(state: QueueState) -> bool:
    """Whether nothing will happen by itself: every lane is empty, or its head is parked."""
    return all(isinstance(lane[0].phase, Parked) for lane in state.lanes.values())


def is_completing(state: QueueState, run: int) -> bool:
    """Whether this run succeeded and its asker is still to be told."""
    return any(lane[0].phase == Completing(run) for lane in state.lanes.values())
