"""The statistics of a reconciler: numbers for metrics, and a sentence for users."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.records import Counts
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.formats.listing import counted

K = TypeVar("K", bound=Hashable)

NAMED: Final = 10
"""The largest number of errors that :func:`health` names; further errors are only counted."""


@dataclass(frozen=True, slots=True)
class Performed:
    """The operations of one kind so far: their number, the number that failed, and their total duration in seconds."""

    count: int = 0
    errors: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """A counter of the operations of one kind."""

    count: int = 0
    errors: int = 0
    seconds: float = 0.0

    def add(self, took_s: float, *, failed: bool) -> None:
        """Count one more operation."""
        self.count += 1
        self.seconds += took_s
        if failed:
            self.errors += 1

    def snapshot(self) -> Performed:
        """Return a copy of the present numbers."""
        return Performed(self.count, self.errors, self.seconds)


@dataclass(frozen=True, slots=True)
class ReconcilerStatistics:
    """The statistics of one reconciler.

    ``rows`` is the number of rows in the table. The table was read up to ``revision``, and is at ``table_revision`` now.
    ``keys`` counts the present keys by their state. ``rounds`` is the number of times that changes were read. ``dropped`` is
    the number of outcomes that did not count, because the row had changed meanwhile. ``updates``, ``deletions`` and ``prunes``
    are counted since the start. ``prune_error`` is the error of the last prune.
    """

    name: str
    rows: int
    revision: int
    table_revision: int
    keys: Counts
    rounds: int
    dropped: int
    updates: Performed
    deletions: Performed
    prunes: Performed
    prune_error: str


def health(rows: int, failures: Iterable[Failure[K]], prune_error: ClusterError | None) -> str:
    """Return ``OK, 3 objects``, or ``Degraded, 2 errors: …`` with the errors that have lasted longest."""
    errors = [f"{failure.key}: {failure.error}" for failure in failures]
    if prune_error is not None:
        errors.insert(0, f"prune: {prune_error}")
    if not errors:
        return f"OK, {counted(rows, 'object')}"
    omitted = len(errors) - NAMED
    more = f"; {counted(omitted, 'further error')} omitted" if omitted > 0 else ""
    return f"Degraded, {counted(len(errors), 'error')}: {'; '.join(errors[:NAMED])}{more}"
