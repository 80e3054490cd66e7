"""The counters of reconcilers: the interface for a system of metrics, and an implementation that keeps the numbers in
memory.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from wharfinger.cluster.reconciler.statistics import Performed, Tally


class Operation(StrEnum):
    """The kind of an operation of a reconciler."""

    UPDATE = "update"
    DELETE = "delete"
    PRUNE = "prune"


class ReconcilerMetrics(Protocol):
    """A receiver of metrics. Each call gets the name of the reconciler that makes it. The methods must not block or raise."""

    def performed(self, name: str, operation: Operation, took_s: float, *, failed: bool) -> None:
        """Record the end of an operation."""
        ...

    def failing(self, name: str, operation: Operation, count: int) -> None:
        """Record the current number of failures. For UPDATE, ``count`` is the number of objects whose update or deletion fails.
        For PRUNE, it is 1 if the last prune failed, else 0.
        """
        ...


class MemoryMetrics:
    """The metrics of several reconcilers, kept in memory."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, Operation], Tally] = {}
        self._failing: dict[tuple[str, Operation], int] = {}

    def performed(self, name: str, operation: Operation, took_s: float, *, failed: bool) -> None:
        """Count the operation."""
        self._tallies.setdefault((name, operation), Tally()).add(took_s, failed=failed)

    def failing(self, name: str, operation: Operation, count: int) -> None:
        """Replace the number of present failures of this reconciler and operation."""
        self._failing[name, operation] = count

    def of(self, name: str) -> Mapping[Operation, Performed]:
        """Return the totals of one reconciler by operation, without operations that it never performed."""
        return {operation: tally.snapshot() for (one, operation), tally in self._tallies.items() if one == name}

    def current_errors(self, name: str, operation: Operation = Operation.UPDATE) -> int:
        """Return the number that :meth:`failing` received last for this reconciler and operation; 0 if it received none."""
        return self._failing.get((name, operation), 0)
