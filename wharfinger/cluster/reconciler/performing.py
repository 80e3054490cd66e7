"""The execution of operations. Each operation has a time limit and runs on behalf of an owner, and every failure is converted
into a ClusterError."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.operations import (
    Attempt,
    BadRowError,
    BatchOperations,
    NoOutcomeError,
    Operations,
    OperationTimeoutError,
    UnexpectedError,
)
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.statistics import Tally
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.formats.errors import FormatError

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

Outcomes = Mapping[K, ClusterError | None]
"""The outcome of the operation for each key: its error, or None if it succeeded."""


class Performer(Generic[K, R]):
    """The performer of operations; ``updates`` and ``deletions`` count the operations that it performed."""

    def __init__(
        self,
        operations: Operations[K, R],
        batch: BatchOperations[K, R] | None,
        during: Callable[[R], AbstractContextManager[None]],
        options: ReconcilerOptions,
    ) -> None:
        self._operations = operations
        self._batch = batch
        self._during = during
        self._options = options
        self._running: dict[K, trio.CancelScope] = {}
        self.updates = Tally()
        self.deletions = Tally()

    @property
    def in_batches(self) -> bool:
        """Return whether changes are performed in batches."""
        return self._batch is not None

    async def perform(self, attempt: Attempt[K, R]) -> ClusterError | None:
        """Perform one attempt; return why it failed, or None if it succeeded."""
        operation, tally = (
            (self._operations.delete, self.deletions) if attempt.deleting else (self._operations.update, self.updates)
        )
        error: ClusterError | None = None
        began = trio.current_time()
        scope = trio.CancelScope(deadline=began + self._options.operation_s)
        try:
            with scope, self._during(attempt.row):
                self._running[attempt.key] = scope
                await operation(attempt)
        except Exception as failure:  # noqa: BLE001 - every exception is an outcome of this row
            error = as_outcome(failure)
        finally:
            self._running.pop(attempt.key, None)
        if scope.cancelled_caught:
            error = self._cut_off(_doing(attempt), scope)
        tally.add(trio.current_time() - began, failed=error is not None)
        return error

    async def perform_batch(self, attempts: Sequence[Attempt[K, R]]) -> Outcomes[K]:
        """Perform attempts of one owner, which are either all deletions or all updates; return the outcome of each."""
        if self._batch is None or not attempts:
            return {}
        deleting = attempts[0].deleting
        operation = self._batch.delete_batch if deleting else self._batch.update_batch
        outcomes: Outcomes[K] = {}
        error: ClusterError | None = None
        began = trio.current_time()
        scope = trio.CancelScope(deadline=began + self._options.operation_s)
        try:
            with scope, self._during(attempts[0].row):
                self._running[attempts[0].key] = scope
                outcomes = await operation(attempts)
        except Exception as failure:  # noqa: BLE001 - every exception is an outcome of these rows
            error = as_outcome(failure)
        finally:
            self._running.pop(attempts[0].key, None)
        if scope.cancelled_caught:
            error = self._cut_off(f"{_doing(attempts[0])} and {len(attempts) - 1} others", scope)
        whole: dict[K, ClusterError | None] = {
            attempt.key: error if error is not None else _outcome(outcomes, attempt) for attempt in attempts
        }
        each_s = (trio.current_time() - began) / len(attempts)
        tally = self.deletions if deleting else self.updates
        for one in whole.values():
            tally.add(each_s, failed=one is not None)
        return whole

    def cut_off(self, keys: Iterable[K]) -> None:
        """Cancel the running operations of these keys. The caller passes operations that are late, and calls this only when too
        many operations are late at the same time.
        """
        for key in keys:
            if (scope := self._running.get(key)) is not None:
                scope.cancel(reason="the operation is late, and too many others are late as well")

    def _cut_off(self, doing: str, scope: trio.CancelScope) -> ClusterError:
        limit = f"{doing} took longer than {self._options.operation_s:g} s"
        if trio.current_time() >= scope.deadline:
            return OperationTimeoutError(limit)
        patience = f"{doing} took longer than {self._options.patience_s:g} s"
        return OperationTimeoutError(f"{patience} and was cut off, because too many other operations hang")

    async def prune(self, snapshot: Snapshot[K, R]) -> ClusterError | None:
        """Prune once; return why the prune failed, or None if it succeeded."""
        error: ClusterError | None = None
        scope = trio.CancelScope(deadline=trio.current_time() + self._options.prune_limit_s)
        try:
            with scope:
                await self._operations.prune(snapshot)
        except Exception as failure:  # noqa: BLE001 - it is tried again, like any other prune that fails
            error = as_outcome(failure)
        if scope.cancelled_caught:
            return OperationTimeoutError(f"pruning took longer than {self._options.prune_limit_s:g} s")
        return error


def as_outcome(failure: Exception) -> ClusterError:
    """Convert an exception of an operation into the error of its row; an unexpected exception keeps its traceback for the log."""
    if isinstance(failure, ClusterError):
        return failure
    if isinstance(failure, FormatError):
        return bad_row(failure)
    error = UnexpectedError(f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__)
    error.__cause__ = failure
    return error


def bad_row(failure: FormatError) -> ClusterError:
    """Turn a FormatError into a permanent ClusterError with the same text."""
    error = BadRowError(str(failure))
    error.__cause__ = failure.with_traceback(None)
    return error


def _outcome(outcomes: Outcomes[K], attempt: Attempt[K, R]) -> ClusterError | None:
    if attempt.key not in outcomes:
        return NoOutcomeError(f"{_doing(attempt)} was part of a batch that returned no outcome for it")
    return outcomes[attempt.key]


def _doing(attempt: Attempt[K, R]) -> str:
    return f"{'deleting' if attempt.deleting else 'updating'} {attempt.key}"
