"""Atomic transactions on tables: either all changes are committed or none, and no reader sees only some of them.

::

    with write(wanted, owners) as tx:
        tx.insert(wanted, row)

The block must not wait, so that no other task runs during the transaction. The transaction commits at the end of the block, and
aborts if the block raises. Reads through the transaction see its writes; snapshots that are taken meanwhile do not.
"""

from collections.abc import Callable, Hashable, Iterator
from types import TracebackType
from typing import Protocol, Self

from wharfinger.cluster.tables.draft import Draft
from wharfinger.cluster.tables.entry import Entry, K, R, Version
from wharfinger.cluster.tables.errors import (
    KeyChangedError,
    RevisionChangedError,
    RowNotFoundError,
    TransactionOverError,
)
from wharfinger.cluster.tables.table import Table


class Writable(Protocol):
    """A table with rows of any type."""

    def lock(self, writer: object) -> None:
        """Lock the table; see `Table.lock`."""

    def commit(self) -> None:
        """Commit the draft; see `Table.commit`."""

    def notify(self) -> None:
        """Wake the watchers; see `Table.notify`."""

    def release(self) -> None:
        """Release the lock; see `Table.release`."""


class Transaction:
    """A write transaction, made by :func:`write`.

    All methods except ``abort`` raise TransactionOverError after the end of the transaction, and TableNotLockedError for a table
    that the transaction does not include.
    """

    __slots__ = ("_over", "_tables")

    def __init__(self, tables: tuple[Writable, ...]) -> None:
        self._tables = tables
        self._over = True

    def __enter__(self) -> Self:
        """Lock the tables. Raises TableLockedError if one of them is being written to."""
        locked: list[Writable] = []
        try:
            for table in self._tables:
                table.lock(self)
                locked.append(table)
        except BaseException:
            for table in locked:
                table.release()
            raise
        self._over = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over:
            return
        self._over = True
        try:
            if kind is None:
                for table in self._tables:
                    table.commit()
                for table in self._tables:
                    table.notify()
        finally:
            self._release()

    def abort(self) -> None:
        """End the transaction without any of its changes. Does nothing if the transaction is over already."""
        if not self._over:
            self._over = True
            self._release()

    def _release(self) -> None:
        for table in self._tables:
            table.release()

    def _draft(self, table: Table[K, R]) -> Draft[K, R]:
        if self._over:
            raise TransactionOverError(f"{table.name}: the transaction was committed or aborted before")
        return table.draft(self)

    # -- reading, uncommitted writes included

    def revision(self, table: Table[K, R]) -> int:
        """Return the revision that the table would have if the transaction were committed now."""
        return self._draft(table).revision

    def get(self, table: Table[K, R], key: K) -> Entry[R] | None:
        """Return the row with this key as the transaction sees it; None if there is no such row."""
        return self._draft(table).get(key)

    def find(self, table: Table[K, R], index: str, value: Hashable) -> tuple[Entry[R], ...]:
        """Return the rows with this value of an index, sorted by revision. Raises KeyError if there is no such index."""
        return self._draft(table).find(index, value)

    def entries(self, table: Table[K, R]) -> Iterator[Entry[R]]:
        """Return all rows, sorted by revision."""
        return self._draft(table).entries()

    # -- writing; each method except `delete_all` returns the previous row

    def insert(self, table: Table[K, R], row: R) -> Entry[R] | None:
        """Insert the row. Return the row with the same key that it replaces; None if there is none. Raises SameRowError,
        DuplicateKeyError.
        """
        return self._draft(table).put(row)

    def modify(self, table: Table[K, R], row: R, merge: Callable[[R, R], R]) -> Entry[R] | None:
        """Insert the row, or the result of ``merge(old, row)`` if there is already a row with this key. Return the old row.

        Raises KeyChangedError, SameRowError, DuplicateKeyError.
        """
        draft = self._draft(table)
        key = draft.key(row)
        old = draft.get(key)
        if old is None:
            return draft.put(row)
        merged = merge(old.row, row)
        if draft.key(merged) != key:
            raise KeyChangedError(f"{table.name}: merging the row {key!r} gave it another key, {draft.key(merged)!r}")
        return draft.put(merged)

    def compare_and_swap(self, table: Table[K, R], revision: int, row: R) -> Entry[R]:
        """Replace the row that has the key of ``row``, if its revision is ``revision``. Return the replaced row.

        Raises RowNotFoundError, RevisionChangedError, SameRowError, DuplicateKeyError.
        """
        draft = self._draft(table)
        key = draft.key(row)
        old = draft.get(key)
        if old is None:
            raise RowNotFoundError(f"{table.name}: there is no row {key!r} any more")
        _check_revision(table.name, old, revision)
        draft.put(row)
        return old

    def delete(self, table: Table[K, R], key: K) -> Entry[R] | None:
        """Delete the row with this key, if there is one, and return it."""
        draft = self._draft(table)
        old = draft.get(key)
        if old is not None:
            draft.remove(old)
        return old

    def compare_and_delete(self, table: Table[K, R], revision: int, key: K) -> Entry[R] | None:
        """Delete the row with this key, if there is one, and return it. Raises RevisionChangedError if its revision differs."""
        draft = self._draft(table)
        old = draft.get(key)
        if old is not None:
            _check_revision(table.name, old, revision)
            draft.remove(old)
        return old

    def delete_all(self, table: Table[K, R]) -> int:
        """Delete all rows, in the order of their revisions; return their number."""
        draft = self._draft(table)
        rows = tuple(draft.entries())
        for row in rows:
            draft.remove(row)
        return len(rows)


def write(*tables: Writable) -> Transaction:
    """Return a transaction on these tables, for a `with` block; a table may be named twice."""
    return Transaction(tuple(dict.fromkeys(tables)))


def _check_revision(table: str, old: Version[K, R], revision: int) -> None:
    if old.revision != revision:
        raise RevisionChangedError(
            f"{table}: the row {old.key!r} is of revision {old.revision}, not {revision}: it was changed meanwhile", old
        )
