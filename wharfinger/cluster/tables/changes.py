"""The stream of changes of a table.

A stream begins with all rows that exist, reports no deletion from before it began, and from then on reports the *present* state
of each key that changed: several changes of a row between two reads count as one. The stream is ordered by revision, so one
number records how far it was read, and a reader may take any number of changes at a time.

* A row that was created and deleted before it was read: only the deletion is reported.
* A row that was deleted and created again: only the row is reported. Its :attr:`Change.created` is later than before, so a
  consumer with external state for a row recognizes a new row.
* A row that changes again before it was taken moves to the end, and is reported once, with its latest content.
"""

from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple

from wharfinger.cluster.tables.contents import Contents
from wharfinger.cluster.tables.entry import GRAVE, K, R, Version
from wharfinger.cluster.tables.errors import StreamClosedError, TrackerExpiredError
from wharfinger.cluster.tables.watch import Watch


class Change(NamedTuple, Generic[K, R]):
    """The present state of a key. ``row`` is the present row, or the last row if the key was deleted."""

    key: K
    row: R
    revision: int
    deleted: bool
    created: int
    """The revision at which this key was inserted for the first time since it was last deleted."""


class ChangeStream(Generic[K, R]):
    """A reader's stream of changes, made by :meth:`Table.changes`."""

    def __init__(self, name: str, tracker: str, contents: Contents[K, R], watch: Callable[[], Watch]) -> None:
        self._name = name
        self._contents = contents
        self._watch = watch
        self._tracker = contents.join(tracker)
        self._closed = False

    @property
    def revision(self) -> int:
        """Return the revision up to which the changes of the table were taken from this stream."""
        return self._tracker.mark

    @property
    def behind(self) -> bool:
        """Return whether there may be changes that were not taken from this stream yet."""
        return self._tracker.mark < self._contents.snapshot.revision

    def next(self) -> tuple[Change[K, R], ...]:
        """Return all changes; empty if nothing changed. Raises TrackerExpiredError."""
        return self.take(None)

    def take(self, limit: int | None) -> tuple[Change[K, R], ...]:
        """Return the first ``limit`` changes, or fewer if there are no more. Raises TrackerExpiredError."""
        self._check()
        if not self.behind or limit == 0:
            return ()
        begun = self._tracker.begun
        unread = (
            version
            for version in self._contents.changes_since(self._tracker.mark)
            if version.ended != GRAVE or version.revision > begun
        )
        changes = tuple(_change(version) for version in islice(unread, limit))
        whole = limit is None or len(changes) < limit
        self._contents.advance(self._tracker, self._contents.snapshot.revision if whole else changes[-1].revision)
        return changes

    async def changed(self) -> None:
        """Wait until the table may have changes that the reader of this stream has not taken. Raises TrackerExpiredError."""
        self._check()
        watch = self._watch()
        while not self.behind:
            await watch.wait()
            self._check()
            watch = self._watch()

    def close(self) -> None:
        """Close the stream, so that deletions are no longer kept for it."""
        if not self._closed:
            self._closed = True
            self._contents.leave(self._tracker)

    def _check(self) -> None:
        if self._closed:
            raise StreamClosedError(
                f"{self._name}: the changes for {self._tracker.name} were read after the `with` block of the stream had ended"
            )
        if self._tracker.expired:
            raise TrackerExpiredError(
                f"{self._name}: {self._tracker.name} has read up to revision {self._tracker.mark} of"
                f" {self._contents.snapshot.revision}, and deletions since then are forgotten;"
                " open another stream, and compare with the rows it begins with"
            )


def _change(version: Version[K, R]) -> Change[K, R]:
    return Change(version.key, version.row, version.revision, version.ended == GRAVE, version.created)
