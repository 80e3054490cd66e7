"""The rows of a table, and the commit, in which a draft becomes the next snapshot.

The cost of a commit depends on the rows and index values that it changes, not on the size of the table.

Invariants, after each commit:

* the log is ordered by revision, and has one version that has not ended for each row of the snapshot and for each remembered
  deletion (*grave*);
* the bucket of an index value has all rows with this value, and no bucket is empty;
* older snapshots are unchanged.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic

from rpds import HashTrieMap

from wharfinger.cluster.tables.draft import Draft
from wharfinger.cluster.tables.entry import PRESENT, K, R, Version
from wharfinger.cluster.tables.graveyard import Graveyard, Tracker
from wharfinger.cluster.tables.snapshot import Buckets, Snapshot
from wharfinger.cluster.tables.version_log import VersionLog


class Contents(Generic[K, R]):
    """The content of a table; ``snapshot`` is its newest snapshot."""

    def __init__(self, indexes: Iterable[str], graves: int) -> None:
        self._indexes = tuple(indexes)
        self._log: VersionLog[K, R] = VersionLog()
        self.graveyard: Graveyard[K, R] = Graveyard(graves)
        self.snapshot: Snapshot[K, R] = Snapshot(
            0, HashTrieMap(), {index: HashTrieMap() for index in self._indexes}, self._log, frozenset()
        )

    @property
    def kept(self) -> int:
        """Return the number of versions in the log, including those that are no longer current."""
        return len(self._log.versions)

    def commit(self, draft: Draft[K, R]) -> None:
        """Make the draft the newest snapshot. Cannot fail."""
        rows, log = draft.base.rows, self._log
        for version, _ in draft.ended:
            version.ended = draft.revision
        log.live -= len(draft.ended)
        for key, version in draft.own.items():
            log.live -= self.graveyard.revive(key)
            if version.ended == PRESENT:
                rows = rows.insert(key, version)
                log.append(version)
            else:
                rows = rows.discard(key)
                if self.graveyard.bury(version):
                    log.append(version)
        buckets = self._index(draft) if self._indexes else draft.base.buckets
        log.live -= self.graveyard.collect()
        self._log = log.tidied(len(draft.own))
        pending = frozenset(self.snapshot.pending_initializers)
        self.snapshot = Snapshot(draft.revision, rows, buckets, self._log, pending)

    def _index(self, draft: Draft[K, R]) -> "dict[str, Buckets[K, R]]":
        buckets = dict(draft.base.buckets)
        touched: dict[tuple[str, Hashable], int] = {}
        for key, values in draft.values.items():
            for index, value in _places(self._indexes, values):
                log = buckets[index].get(value)
                if log is None:
                    log = VersionLog()
                    buckets[index] = buckets[index].insert(value, log)
                log.append(draft.own[key])
                touched[index, value] = touched.get((index, value), 0) + 1
        for _, values in draft.ended:
            for index, value in _places(self._indexes, values):
                buckets[index][value].live -= 1
                touched[index, value] = touched.get((index, value), 0) + 1
        for (index, value), count in touched.items():
            log = buckets[index][value]
            after = log.tidied(count)
            if not log.live:
                buckets[index] = buckets[index].remove(value)
            elif after is not log:
                buckets[index] = buckets[index].insert(value, after)
        return buckets

    def set_pending(self, pending: frozenset[str]) -> None:
        """Set the names of the initializers that have not finished filling the table."""
        self.snapshot = self.snapshot.with_pending(pending)

    # -- trackers

    def join(self, name: str) -> Tracker:
        """Add a reader of the table's changes, and return its tracker."""
        return self.graveyard.join(name, self.snapshot.revision)

    def leave(self, tracker: Tracker) -> None:
        """Remove a reader."""
        self._log.live -= self.graveyard.leave(tracker)

    def changes_since(self, after: int) -> Iterator[Version[K, R]]:
        """Return the rows and deletions after this revision, sorted by revision."""
        return self._log.changes_since(after)

    def advance(self, tracker: Tracker, mark: int) -> None:
        """Record that the reader has taken all changes up to this revision."""
        tracker.mark = mark
        self._log.live -= self.graveyard.collect()


def _places(indexes: tuple[str, ...], values: tuple[tuple[Hashable, ...], ...]) -> Iterator[tuple[str, Hashable]]:
    return ((index, value) for index, mine in zip(indexes, values, strict=True) for value in mine)
