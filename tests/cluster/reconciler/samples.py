"""Rows, tables, and a target that records its operations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import write


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table. Updates of a ``faulty`` row fail."""

    key: int
    owner: str = "a"
    text: str = ""
    faulty: bool = False


RowTable = Table[int, Row]
RowAttempt = Attempt[int, Row]
OPTIONS: Final = ReconcilerOptions(first_retry_s=0.05, prune_s=0)
"""The options of the test scripts of statedb's reconciler (see docs/reconciler.md). Prunes run only on demand."""


class RefusedError(ClusterError):
    """A permanent error."""

    transient = False


def key_of(row: Row) -> int:
    return row.key


def owner_of(row: Row) -> str:
    return row.owner


def a_table(graves: int = 1000) -> RowTable:
    return Table("rows", key_of, graves=graves)


def put(table: RowTable, *rows: Row | int) -> int:
    """Insert rows in one transaction, and return the table's revision."""
    with write(table) as tx:
        for row in rows:
            tx.insert(table, Row(row) if isinstance(row, int) else row)
    return table.snapshot().revision


def drop(table: RowTable, *keys: int) -> int:
    """Delete rows in one transaction, and return the table's revision."""
    with write(table) as tx:
        for key in keys:
            tx.delete(table, key)
    return table.snapshot().revision


@dataclass
class Target:
    """A target that records its operations as ``update(1)``, ``update-refresh(1) fail``, ``delete(1)`` or ``prune(n=2)``.

    All operations of a ``faulty`` target fail. ``errors`` and ``gates`` are indexed by keys: an operation first waits for the
    gate of its key, if there is one, and then raises the error of its key, if there is one.
    """

    faulty: bool = False
    errors: dict[int, ClusterError] = field(default_factory=dict)
    gates: dict[int, trio.Event] = field(default_factory=dict)
    prune_gate: trio.Event | None = None
    rows: dict[int, Row] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    attempts: list[RowAttempt] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    pruned: list[Snapshot[int, Row]] = field(default_factory=list)
    busy: set[int] = field(default_factory=set)
    most: int = 0
    _changed: trio.Event = field(default_factory=trio.Event)

    async def update(self, attempt: RowAttempt) -> None:
        await self._perform("update-refresh" if attempt.refreshing else "update", attempt, fails=attempt.row.faulty)
        self.rows[attempt.key] = attempt.row

    async def delete(self, attempt: RowAttempt) -> None:
        await self._perform("delete", attempt, fails=False)
        self.rows.pop(attempt.key, None)

    async def prune(self, snapshot: Snapshot[int, Row]) -> None:
        self.pruned.append(snapshot)
        if self.prune_gate is not None:
            await self.prune_gate.wait()
        if self.faulty:
            self._note(f"prune(n={len(snapshot)}) fail")
            raise ClusterError("prune fail")
        for key in [key for key in self.rows if key not in snapshot]:
            del self.rows[key]
        self._note(f"prune(n={len(snapshot)})")

    async def _perform(self, what: str, attempt: RowAttempt, *, fails: bool) -> None:
        assert attempt.key not in self.busy, f"two operations at once for {attempt.key}"
        self.busy.add(attempt.key)
        self.most = max(self.most, len(self.busy))
        self.attempts.append(attempt)
        self.times.append(trio.current_time())
        try:
            if attempt.key in self.gates:
                await self.gates[attempt.key].wait()
        finally:
            self.busy.discard(attempt.key)
        error = self.errors.get(attempt.key)
        if self.faulty or fails or error is not None:
            self._note(f"{what}({attempt.key}) fail")
            raise error or ClusterError(f"{what.partition('-')[0]} fail")
        self._note(f"{what}({attempt.key})")

    def _note(self, what: str) -> None:
        self.history.append(what)
        self._changed.set()
        self._changed = trio.Event()

    async def expect(self, *operations: str) -> None:
        """Wait until the most recent operations are these, in any order."""
        while Counter(self.history[-len(operations) :]) != Counter(operations):
            await self._changed.wait()


@dataclass
class BatchTarget(Target):
    """A target that performs batches, and records their ``sizes``."""

    sizes: list[int] = field(default_factory=list)

    async def update_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        self.sizes.append(len(attempts))
        return {attempt.key: await _outcome(self, attempt) for attempt in attempts}

    async def delete_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        return await self.update_batch(attempts)


async def _outcome(target: Target, attempt: RowAttempt) -> ClusterError | None:
    try:
        await (target.delete(attempt) if attempt.deleting else target.update(attempt))
    except ClusterError as error:
        return error
    return None
