"""The interface between a reconciler and its target: the operations on the object that a row describes.

Operations must be idempotent: an operation may run again although it succeeded (the process died, or the row changed
meanwhile). Two operations never run at the same time for the same key. A failure is a ClusterError, whose ``transient`` says
whether a retry can help, or a FormatError, after which only a change of the row can help. Any other exception counts as a
failure of the row, too, and the operation is retried. Its traceback is logged, unless the last error of the row had the same
text. Cancellation, KeyboardInterrupt and SystemExit pass through.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.tables.snapshot import Snapshot

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@dataclass(slots=True)
class Attempt(Generic[K, R]):
    """One attempt to apply or delete the object of one row. Treat an attempt as immutable. (The class is not frozen, because an
    instance is made for each operation, and an instance that is not frozen is made three times faster.)

    ``row``: the row at ``revision``; if ``deleting``, the row that was deleted at ``revision``. ``number`` counts the
    attempts at a row from 1, and starts again when the row has changed or was Done. ``refreshing``: the attempt belongs to a
    refresh, so the row has not changed since an earlier attempt. ``replaces``: the row was removed and inserted anew since it was
    last Done, and no delete was completed in between. Then a target that identifies objects by more than their key has to replace
    the object.
    """

    key: K
    row: R
    revision: int
    number: int
    refreshing: bool = False
    deleting: bool = False
    replaces: bool = False


class Operations(Protocol[K, R]):
    """The operations of a reconciler, which change one object at a time. Each operation is cancelled after the time limit in
    `ReconcilerOptions`.
    """

    async def update(self, attempt: Attempt[K, R]) -> None:
        """Change the object to match its row. Raises a ClusterError, whose ``transient`` says whether a retry can help."""
        ...

    async def delete(self, attempt: Attempt[K, R]) -> None:
        """Delete the object, because the row is gone; do nothing if the object is gone already."""
        ...

    async def prune(self, snapshot: Snapshot[K, R]) -> None:
        """Delete all of our objects that have no row in this snapshot. Meanwhile, the reconciler begins no update of a row that
        is not in the snapshot.
        """
        ...


class BatchOperations(Protocol[K, R]):
    """Operations on many objects at a time. All attempts of one call have the same owner. Failures are returned by key. A key
    that is missing in the result counts as failed.
    """

    async def update_batch(self, attempts: Sequence[Attempt[K, R]]) -> Mapping[K, ClusterError | None]:
        """Change objects to match their rows. The value for a key is None if its update succeeded."""
        ...

    async def delete_batch(self, attempts: Sequence[Attempt[K, R]]) -> Mapping[K, ClusterError | None]:
        """Delete objects whose rows are gone. The value for a key is None if its deletion succeeded."""
        ...


class OperationTimeoutError(ClusterError):
    """An operation was cut off because it took too long."""


class UnexpectedError(ClusterError):
    """An operation raised something that is neither a ClusterError nor a FormatError; the exception is its ``__cause__``."""


class BadRowError(ClusterError):
    """A row, or the answer to an operation on it, has an invalid format. Permanent, because only a change of the row helps."""

    transient = False


class NoOutcomeError(ClusterError):
    """A batch operation returned no outcome for one of its objects."""
