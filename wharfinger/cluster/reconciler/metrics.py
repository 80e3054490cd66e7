"""Report what reconcilers do to a system of metrics, and the one that keeps the numbers in memory."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from wharfinger.cluster.reconciler.statistics import Performed, Tally


class Operation(StrEnum):
    """The kinds of operations."""

    UPDATE = "update"
    DELETE = "delete"
    PRUNE = "prune"


class ReconcilerMetrics(Protocol):
    """Told of every operation of the reconcilers that it is given to, by the reconciler's name. Must not block or raise."""

    def performed(self, name: str, operation: Operation, took_s: float, *, failed: bool) -> None:
        """An operation is over."""
        ...

    def failing(self, name: str, operation: Operation, count: int) -> None:
        """So many objects fail to be updated or deleted now (UPDATE), or so many of the last prunes failed (PRUNE: 0 or 1)."""
        ...


class MemoryMetrics:
    """Keep the numbers of any number of reconcilers, for whoever wants to read them."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, Operation], Tally] = {}
        self._failing: dict[tuple[str, Operation], int] = {}

    def performed(self, name: str, operation: Operation, took_s: float, *, failed: bool) -> None:
        """Count it."""
        self._tallies.setdefault((name, operation), Tally()).add(took_s, failed=failed)

    def failing(self, name: str, operation: Operation, count: int) -> None:
        """Keep the number."""
        self._failing[name, operation] = count

    def of(self, name: str) -> Mapping[Operation, Performed]:
        """The totals of one reconciler by operation; those that it never performed are not in it."""
        return {operation: tally.told() for (one, operation), tally in self._tallies.items() if one == name}

    def current_errors(self, name: str, operation: Operation = Operation.UPDATE) -> int:
        """How much fails now."""
        return self._failing.get((name, operation), 0)
