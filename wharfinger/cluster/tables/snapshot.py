"""A table as it was at one revision. No rows are copied when a snapshot is made.

Rows by key are in an immutable map. Rows by revision and rows by index value are in logs that all snapshots share
(:mod:`wharfinger.cluster.tables.version_log`); the revision of a snapshot determines which of these rows the snapshot
contains.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Generic, TypeAlias

from rpds import HashTrieMap

from wharfinger.cluster.tables.entry import Entry, K, R, Version
from wharfinger.cluster.tables.version_log import VersionLog


@dataclass(frozen=True)  # no slots: `Index[Row](…)` sets an attribute on it
class Index(Generic[R]):
    """An index, by which rows are found without their key. ``unique``: no two rows may have the same value.

    ``of`` returns the index values of a row, and must always return the same values for the same row.
    """

    of: Callable[[R], Iterable[Hashable]]
    unique: bool = False


Buckets: TypeAlias = "HashTrieMap[Hashable, VersionLog[K, R]]"
"""An index: for each value, the rows that have this value, in all versions that are kept."""


class Snapshot(Generic[K, R]):
    """An immutable view of a table at one revision. Made by tables only."""

    __slots__ = ("_buckets", "_length", "_log", "_pending", "_revision", "_rows")

    def __init__(
        self,
        revision: int,
        rows: "HashTrieMap[K, Version[K, R]]",
        buckets: "Mapping[str, Buckets[K, R]]",
        log: VersionLog[K, R],
        pending: frozenset[str],
    ) -> None:
        self._revision = revision
        self._rows = rows
        self._buckets = buckets
        self._log = log
        self._length = len(log.versions)
        self._pending = pending

    @property
    def revision(self) -> int:
        """Return the revision, which is the number of inserts and deletions up to this snapshot."""
        return self._revision

    @property
    def initialized(self) -> bool:
        """Return whether all initializers are done. Until then, a row may be missing because it has not been inserted yet."""
        return not self._pending

    @property
    def pending_initializers(self) -> tuple[str, ...]:
        """Return the names of the initializers that are not done, sorted."""
        return tuple(sorted(self._pending))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __contains__(self, key: K) -> bool:
        """Return whether there is a row with this key."""
        return key in self._rows

    def get(self, key: K) -> Entry[R] | None:
        """Return the row with this key; None if there is none."""
        return self._rows.get(key)

    def entries(self) -> Iterator[Entry[R]]:
        """Return all rows, sorted by revision."""
        return self._log.seen(self._revision, self._length)

    def since(self, revision: int) -> Iterator[Entry[R]]:
        """Return the rows that were inserted after this revision, sorted by revision."""
        return self._log.seen(self._revision, self._length, revision)

    def find(self, index: str, value: Hashable) -> tuple[Entry[R], ...]:
        """Return the rows with this value of an index, sorted by revision. Raises KeyError if there is no such index."""
        return tuple(self.versions(index, value))

    def version(self, key: K) -> Version[K, R] | None:
        """Return the same row as :meth:`get`, as a Version; for transactions."""
        return self._rows.get(key)

    def versions(self, index: str, value: Hashable) -> Iterator[Version[K, R]]:
        """Return the same rows as :meth:`find`, as Versions; for transactions."""
        log = self._buckets[index].get(value)
        if log is None:
            return iter(())
        mine = self._revision
        return (
            version for version in takewhile(lambda one: one.revision <= mine, log.versions) if version.ended > mine
        )

    def all_versions(self) -> Iterator[Version[K, R]]:
        """Return the same rows as :meth:`entries`, as Versions; for transactions."""
        return self._log.seen(self._revision, self._length)

    @property
    def rows(self) -> "HashTrieMap[K, Version[K, R]]":
        """Return the map of the rows by key. A commit makes the map of the next snapshot from it."""
        return self._rows

    @property
    def buckets(self) -> "Mapping[str, Buckets[K, R]]":
        """Return the rows by index, for a commit."""
        return self._buckets

    def with_pending(self, pending: frozenset[str]) -> "Snapshot[K, R]":
        """Return a copy of the snapshot in which exactly these initializers are pending."""
        return Snapshot(self._revision, self._rows, self._buckets, self._log, pending)
