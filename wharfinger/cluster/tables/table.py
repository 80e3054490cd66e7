"""Tables of rows by key, with revisions: they hold desired or known state, and notify readers when it changes.

A table is written in transactions (:mod:`wharfinger.cluster.tables.transaction`). All transactions run in one thread, and a
transaction never waits. Each insert and each deletion increases the revision by one. Readers take snapshots; no later write is
visible in a snapshot. Rows must be immutable. A reader that needs all changes of a table uses a change stream; a reader that
waits for a change of a certain row or index value uses a watch.

In a commit, all tables of the transaction get their new snapshot, *then* watches fire, *then* the tables are released. So a
task that a watch wakes reads the new rows.

Invariants, which tests/cluster/tables/test_model.py checks against a model that copies everything:

* revisions only increase; an aborted transaction leaves no trace, and neither does a transaction without changes;
* the changes of a stream, applied in order, give the rows of the newest snapshot;
* every stream that has reported a row also reports the deletion of this row, unless the stream has expired.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Generic

from wharfinger.cluster.tables.changes import ChangeStream
from wharfinger.cluster.tables.contents import Contents
from wharfinger.cluster.tables.draft import Draft
from wharfinger.cluster.tables.entry import K, R
from wharfinger.cluster.tables.errors import TableLockedError, TableNameError, TableNotLockedError
from wharfinger.cluster.tables.graveyard import GRAVES
from wharfinger.cluster.tables.snapshot import Index, Snapshot
from wharfinger.cluster.tables.statistics import TableStatistics, TrackerStatistics
from wharfinger.cluster.tables.watch import Watch, Watches

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,30}")


class Initializer:
    """A writer that has yet to fill the table; made by :meth:`Table.initializer`."""

    def __init__(self, name: str, finish: Callable[[str], None]) -> None:
        self.name = name
        self._finish: Callable[[str], None] | None = finish

    def done(self) -> None:
        """Record that all rows of this writer are committed. A second call does nothing."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish(self.name)


class Table(Generic[K, R]):
    """A table of immutable rows. ``key`` returns a row's key; ``graves`` is the largest number of deletions that
    are remembered for change streams.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[R], K],
        *,
        indexes: Mapping[str, Index[R]] | None = None,
        graves: int = GRAVES,
    ) -> None:
        """Make an empty table. Raises TableNameError."""
        self.name = name
        self._indexes = dict(indexes or {})
        for one in (name, *self._indexes):
            if NAME.fullmatch(one) is None:
                raise TableNameError(
                    f"{one!r} is not a name of a table or an index: expected a lower-case letter, "
                    "then up to 30 of a-z, 0-9, _ and -"
                )
        self._key = key
        self._contents: Contents[K, R] = Contents(self._indexes, graves)
        self._watches = Watches()
        self._draft: Draft[K, R] | None = None
        self._writer: object = None

    # -- reading

    def snapshot(self) -> Snapshot[K, R]:
        """Return the last committed snapshot."""
        return self._contents.snapshot

    @contextmanager
    def changes(self, tracker: str) -> Iterator[ChangeStream[K, R]]:
        """Yield a change stream, which begins with all rows. ``tracker`` is the reader's name in the statistics."""
        stream = ChangeStream(self.name, tracker, self._contents, self.watch)
        try:
            yield stream
        finally:
            stream.close()

    def watch(self) -> Watch:
        """Return a watch of any change of rows or of pending initializers. Get the watch before you read, so that you miss no
        change.
        """
        return self._watches.table()

    def watch_key(self, key: K) -> Watch:
        """Return a watch of the row with this key, even if there is no such row yet. Get the watch before you read the row, so
        that you miss no change.
        """
        return self._watches.key(key)

    def watch_index(self, index: str, value: Hashable) -> Watch:
        """Return a watch of the rows that have this value of an index. Get the watch before you read the rows, so that you miss
        no change. Raises KeyError.
        """
        if index not in self._indexes:
            raise KeyError(index)
        return self._watches.value(index, value)

    async def wait_for(self, revision: int) -> Snapshot[K, R]:
        """Wait until the table has this revision or a later one."""
        return await self._wait_until(lambda snapshot: snapshot.revision >= revision)

    async def wait_initialized(self) -> Snapshot[K, R]:
        """Wait until all initializers of the table are done, and return the snapshot at that moment."""
        return await self._wait_until(lambda snapshot: snapshot.initialized)

    async def _wait_until(self, condition: Callable[[Snapshot[K, R]], bool]) -> Snapshot[K, R]:
        while not condition(self.snapshot()):
            await self.watch().wait()
        return self.snapshot()

    def statistics(self) -> TableStatistics:
        """Return the statistics, for metrics and dumps."""
        snapshot, graveyard = self.snapshot(), self._contents.graveyard
        return TableStatistics(
            self.name,
            snapshot.revision,
            len(snapshot),
            len(graveyard),
            self._contents.kept,
            tuple(TrackerStatistics(one.name, one.mark, snapshot.revision - one.mark) for one in graveyard.trackers),
            graveyard.expired,
            snapshot.pending_initializers,
            self._watches.keyed,
        )

    # -- being filled

    def initializer(self, name: str) -> Initializer:
        """Register a writer that has yet to fill the table. Raises TableNameError if the name is empty, or if an initializer
        with this name is pending already.
        """
        pending = self.snapshot().pending_initializers
        if not name or name in pending:
            raise TableNameError(f"{self.name}: the initializer {name!r} is pending already, or has no name")
        self._set_pending(frozenset({*pending, name}))
        return Initializer(name, self._finish)

    def _finish(self, name: str) -> None:
        self._set_pending(frozenset(self.snapshot().pending_initializers) - {name})

    def _set_pending(self, pending: frozenset[str]) -> None:
        self._contents.set_pending(pending)
        self._watches.fire_table()

    # -- being written, by a transaction only

    def lock(self, writer: object) -> None:
        """Begin a transaction. Raises TableLockedError if another transaction is writing to the table."""
        if self._draft is not None:
            raise TableLockedError(
                f"{self.name}: another transaction is writing to it; do not nest writes, and do not await inside a write"
            )
        self._writer = writer
        self._draft = Draft(self.name, self.snapshot(), self._key, self._indexes)

    def draft(self, writer: object) -> Draft[K, R]:
        """Return the draft of the transaction ``writer``. Raises TableNotLockedError if this transaction has not locked the
        table.
        """
        if self._draft is None or self._writer is not writer:
            raise TableNotLockedError(
                f"{self.name}: the transaction was not opened for this table; name it in `write(...)`"
            )
        return self._draft

    def commit(self) -> None:
        """Make the draft the content of the table."""
        draft = self._draft
        if draft is not None and draft.own:
            self._contents.commit(draft)

    def notify(self) -> None:
        """Wake the watchers of the table, and of all rows and index values that the draft changed."""
        draft = self._draft
        if draft is None or not draft.own:
            return
        values: set[tuple[str, Hashable]] = set()
        if self._watches.values_watched:
            for row_values in (*draft.values.values(), *(values for _, values in draft.ended)):
                values.update(
                    (index, one) for index, mine in zip(self._indexes, row_values, strict=True) for one in mine
                )
        self._watches.fire(draft.own, values)

    def release(self) -> None:
        """End the transaction."""
        self._draft = self._writer = None
