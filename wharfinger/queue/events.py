"""The events and the effects of a queue's machine: two closed unions of records (theory in `queue.machine`).

Tasks, runs and operations are numbers here. The shell knows the coroutines, cancel scopes and callbacks behind them.
"""

from typing import Final, TypeAlias

from wharfinger.queue.record import record

MAIN_LANE: Final = "main"

DUPLICATE: Final = "the same task is already waiting"


# --- events ----------------------------------------------------------------------------------------------------------------


@record
class Enqueued:
    """A task is offered. ``task`` is a number never used before in this queue, ``scope`` that of its operation.

    ``unique`` leaves it out if the same work waits already; ``tells`` says that its asker wants to hear of its success. An
    accepted task waits in its lane as this very value.
    """

    task: int
    name: str
    scope: int
    at: float
    lane: str = MAIN_LANE
    unique: bool = False
    tells: bool = True


@record
class Finished:
    """The run succeeded."""

    run: int


@record
class Completed:
    """The caller has been told that the run succeeded."""

    run: int


@record
class Failed:
    """The run, or telling its asker, failed; ``draw`` in [0, 1) is for the jitter."""

    run: int
    error: str
    permanent: bool
    at: float
    draw: float


@record
class Interrupted:
    """The run ended because of CancelRun."""

    run: int


@record
class RetryDue:
    """Time has passed."""

    now: float


@record
class InputChanged:
    """An input changed, to which a permanent failure may have been due."""


@record
class ScopeCancelled:
    """An operation was cancelled."""

    scope: int
    cause: str


@record
class Draining:
    """Accept no more tasks and drop those that wait; ``interrupt`` what runs as well, or let it finish."""

    cause: str
    interrupt: bool


Report: TypeAlias = Finished | Completed | Failed | Interrupted
"""The report on a run."""

Event: TypeAlias = Enqueued | Report | RetryDue | InputChanged | ScopeCancelled | Draining


# --- effects ---------------------------------------------------------------------------------------------------------------


@record
class StartTask:
    """Execute the task; report Finished, Failed or Interrupted with this run."""

    task: int
    run: int


@record
class CancelRun:
    """Interrupt the run; it still has to report that it ended."""

    run: int
    cause: str


@record
class CallDone:
    """Tell the task's caller that it succeeded, before anything else; report Completed or Failed with this run."""

    task: int
    run: int


@record
class Retired:
    """The task left after success."""

    task: int


@record
class Dropped:
    """The task left, or was never taken, without success."""

    task: int
    cause: str


Effect: TypeAlias = StartTask | CancelRun | CallDone | Retired | Dropped
