"""The events and the effects of a queue's machine: two closed unions of records (theory in `queue.machine`).

Tasks, runs and operations are numbers here. The *shell*, which is the code around the machine (`queue.worker`), knows the
coroutines, cancel scopes and callbacks behind these numbers.
"""

from typing import Final, TypeAlias

from wharfinger.queue.record import record

MAIN_LANE: Final = "main"

DUPLICATE: Final = "the same task is already waiting"


# --- events ----------------------------------------------------------------------------------------------------------------


@record
class Enqueued:
    """A task is to be added to a lane. ``task`` is its number, which was never used before in this queue. ``scope`` is the
    number of its operation.

    If ``unique`` is set and the same work is waiting already, the task is dropped. If ``notifies`` is set, the caller is
    notified when the task has succeeded (CallDone). A lane stores each task that it accepted in the form of this event.
    """

    task: int
    name: str
    scope: int
    at: float
    lane: str = MAIN_LANE
    unique: bool = False
    notifies: bool = True


@record
class Finished:
    """The run succeeded."""

    run: int


@record
class Completed:
    """The caller has been notified that the run succeeded."""

    run: int


@record
class Failed:
    """The run failed, or the callback that reports its success failed; ``draw`` in [0, 1) is for the jitter."""

    run: int
    error: str
    permanent: bool
    at: float
    draw: float


@record
class Interrupted:
    """The run of a task has ended, because the effect CancelRun has cancelled it."""

    run: int


@record
class RetryDue:
    """A backoff has ended. All tasks whose backoff is over at the time ``now`` run again."""

    now: float


@record
class InputChanged:
    """An input of the package changed. Parked tasks run again, because the old input may have caused their failures."""


@record
class ScopeCancelled:
    """An operation was cancelled."""

    scope: int
    cause: str


@record
class Draining:
    """Accept no more tasks, and drop waiting ones. If ``interrupt`` is set, running tasks are
    interrupted; otherwise they finish.
    """

    cause: str
    interrupt: bool


Report: TypeAlias = Finished | Completed | Failed | Interrupted
"""The events that report the result of a run."""

Event: TypeAlias = Enqueued | Report | RetryDue | InputChanged | ScopeCancelled | Draining


# --- effects ---------------------------------------------------------------------------------------------------------------


@record
class StartTask:
    """Execute the task as run ``run``. The event Finished, Failed or Interrupted with this number reports the end of the
    run.
    """

    task: int
    run: int


@record
class CancelRun:
    """Interrupt the run; the end of the run still has to be reported."""

    run: int
    cause: str


@record
class CallDone:
    """Notify the task's caller that the task has succeeded, before any other event is posted. The shell then posts Completed or
    Failed with the number of this run.
    """

    task: int
    run: int


@record
class Retired:
    """The task has left the queue after success."""

    task: int


@record
class Dropped:
    """The task has left the queue without success, or was not accepted."""

    task: int
    cause: str


Effect: TypeAlias = StartTask | CancelRun | CallDone | Retired | Dropped
