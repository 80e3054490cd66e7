"""Performing operations: within their time, as somebody's work, and with every failure turned into a ClusterError."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import trio

from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.reconciler.operations import (
    Attempt,
    BadRowError,
    BatchOperations,
    NoOutcomeError,
    Operations,
    OperationTimeoutError,
)
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.statistics import Tally
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.formats.errors import FormatError

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

Outcomes = Mapping[K, ClusterError | None]
"""By key; None: it is done."""


class Performer(Generic[K, R]):
    """``updates`` and ``deletions`` count what was performed."""

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
        self.updates = Tally()
        self.deletions = Tally()

    @property
    def in_batches(self) -> bool:
        """Whether changes are performed by the batch."""
        return self._batch is not None

    async def perform(self, attempt: Attempt[K, R]) -> ClusterError | None:
        """One attempt; why it failed, or None."""
        operation, tally = (
            (self._operations.delete, self.deletions) if attempt.deleting else (self._operations.update, self.updates)
        )
        error: ClusterError | None = None
        began = trio.current_time()
        with trio.move_on_after(self._options.operation_s) as scope, self._during(attempt.row):
            try:
                await operation(attempt)
            except ClusterError as failure:
                error = failure
            except FormatError as failure:
                error = bad_row(failure)
        if scope.cancelled_caught:
            error = OperationTimeoutError(f"{_doing(attempt)} took longer than {self._options.operation_s:g} s")
        tally.add(trio.current_time() - began, failed=error is not None)
        return error

    async def perform_batch(self, attempts: Sequence[Attempt[K, R]]) -> Outcomes[K]:
        """Attempts of one owner, either all of them deletions or none; what came of each."""
        if self._batch is None or not attempts:
            return {}
        deleting = attempts[0].deleting
        operation = self._batch.delete_batch if deleting else self._batch.update_batch
        outcomes: Outcomes[K] = {}
        error: ClusterError | None = None
        began = trio.current_time()
        with trio.move_on_after(self._options.operation_s) as scope, self._during(attempts[0].row):
            try:
                outcomes = await operation(attempts)
            except ClusterError as failure:
                error = failure
            except FormatError as failure:
                error = bad_row(failure)
        if scope.cancelled_caught:
            error = OperationTimeoutError(
                f"{_doing(attempts[0])} and {len(attempts) - 1} others took longer than {self._options.operation_s:g} s"
            )
        whole: dict[K, ClusterError | None] = {
            attempt.key: error if error is not None else _outcome(outcomes, attempt) for attempt in attempts
        }
        each_s = (trio.current_time() - began) / len(attempts)
        tally = self.deletions if deleting else self.updates
        for one in whole.values():
            tally.add(each_s, failed=one is not None)
        return whole

    async def prune(self, snapshot: Snapshot[K, R]) -> ClusterError | None:
        """Prune once; why it failed, or None."""
        error: ClusterError | None = None
        with trio.move_on_after(self._options.prune_limit_s) as scope:
            try:
                await self._operations.prune(snapshot)
            except ClusterError as failure:
                error = failure
            except FormatError as failure:
                error = bad_row(failure)
        if scope.cancelled_caught:
            return OperationTimeoutError(f"pruning took longer than {self._options.prune_limit_s:g} s")
        return error


def bad_row(failure: FormatError) -> ClusterError:
    """A FormatError as what operations may raise."""
    error = BadRowError(str(failure))
    error.__cause__ = failure.with_traceback(None)
    return error


def _outcome(outcomes: Outcomes[K], attempt: Attempt[K, R]) -> ClusterError | None:
    if attempt.key not in outcomes:
        return NoOutcomeError(f"{_doing(attempt)} was part of a batch that did not say what came of it")
    return outcomes[attempt.key]


def _doing(attempt: Attempt[K, R]) -> str:
    return f"{'deleting' if attempt.deleting else 'updating'} {attempt.key}"
