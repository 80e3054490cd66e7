"""The times of prunes: as soon as the table is initialized and then at an interval (neither if the interval is 0), on demand,
and again soon after a failure.

A prune deletes objects that have no row; :mod:`wharfinger.cluster.apply.removal` decides which of them are kept.

* No prune begins before the table is initialized, because an object that has no row yet could be mistaken for an unwanted object.
* A prune that was requested before the table is initialized, or while another prune runs, is done as soon as possible.
* A prune that failed is retried after a pause, which doubles with each failure, up to a limit.
"""

from dataclasses import dataclass, replace

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.retries import NEVER, pause_s


@dataclass(frozen=True, slots=True)
class Pruning:
    """The schedule of prunes. ``asked``: a prune was requested; ``due_at``: when the next prune is due (trio's clock).

    ``error`` is the error of the last prune, ``failures`` the number of failed prunes in a row.
    """

    asked: bool = False
    due_at: float = NEVER
    running: bool = False
    error: ClusterError | None = None
    failures: int = 0
    count: int = 0
    errors_total: int = 0
    seconds: float = 0.0

    @property
    def next_at(self) -> float:
        """Return the time at which the next prune is due, provided that the table is initialized by then. Minus infinity means
        now, and infinity means that no prune is due.
        """
        if self.running:
            return NEVER
        return -NEVER if self.asked else self.due_at


def begun(options: ReconcilerOptions) -> Pruning:
    """Return the state at the start: the first prune is due as soon as the table is initialized, or never if ``prune_s`` is 0."""
    return Pruning(due_at=-NEVER if options.prune_s else NEVER)


def asked(pruning: Pruning) -> Pruning:
    """Return the state after a caller has requested a prune."""
    return replace(pruning, asked=True)


def started(pruning: Pruning) -> Pruning:
    """Record that a prune has begun. A request that arrives from now on needs another prune."""
    return replace(pruning, asked=False, running=True, count=pruning.count + 1)


def ended(
    pruning: Pruning, options: ReconcilerOptions, error: ClusterError | None, *, now: float, took_s: float, draw: float
) -> Pruning:
    """Record the end of a prune, and plan the next one. ``error`` is None if the prune succeeded."""
    failures = pruning.failures + 1 if error else 0
    pause = options.prune_s or NEVER
    if error is not None:
        pause = pause_s(failures, first_s=options.first_retry_s, most_s=options.max_retry_s, draw=draw)
    return replace(
        pruning,
        running=False,
        due_at=now + pause,
        error=error.with_traceback(None) if error else None,
        failures=failures,
        errors_total=pruning.errors_total + (1 if error else 0),
        seconds=pruning.seconds + took_s,
    )
