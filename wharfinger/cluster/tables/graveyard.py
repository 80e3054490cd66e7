"""The deletions that are still to be reported to readers, and the trackers, which record the progress of these readers.

A deletion is kept until the trackers of all readers have reached it. At most ``limit`` deletions are kept: if there are more,
the tracker that is furthest behind is *expired*, and the deletions that only this tracker needed are discarded. So the memory
that a hanging reader can take is limited. The statistics contain the names of expired trackers. When a row with the key of a
deleted row is inserted, the deletion is discarded.

Invariants after each commit: deletions are in the order of their revisions; each is still needed by a tracker; there are at
most ``limit``.
"""

from collections import OrderedDict, deque
from typing import Final, Generic

from wharfinger.cluster.tables.entry import FORGOTTEN, K, R, Version

GRAVES: Final = 200_000
"""The default limit on the number of deletions that a table remembers."""
NAMED: Final = 16
"""The largest number of names of expired trackers that are kept for the statistics."""


class Tracker:
    """The progress of one reader. ``begun`` is the revision at which the reader began; it only gets later deletions."""

    __slots__ = ("begun", "expired", "mark", "name")

    def __init__(self, name: str, begun: int) -> None:
        self.name = name
        self.begun = begun
        self.mark = 0
        """The revision up to which all changes were reported to the reader."""
        self.expired = False

    @property
    def needs(self) -> int:
        """Return the last revision whose deletions the reader does not need any more. Later deletions must be kept for it."""
        return max(self.begun, self.mark)


class Graveyard(Generic[K, R]):
    """The deletions of one table that are still to be reported, and the trackers of its readers."""

    def __init__(self, limit: int = GRAVES) -> None:
        self._limit = limit
        self._graves: OrderedDict[K, Version[K, R]] = OrderedDict()
        self._trackers: list[Tracker] = []
        self._expired: deque[str] = deque(maxlen=NAMED)

    def __len__(self) -> int:
        """Return the number of remembered deletions."""
        return len(self._graves)

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """Return the trackers of all readers."""
        return tuple(self._trackers)

    @property
    def expired(self) -> tuple[str, ...]:
        """Return the names of the trackers that were marked as expired most recently, because their readers fell behind."""
        return tuple(self._expired)

    def join(self, name: str, revision: int) -> Tracker:
        """Add a reader that begins at this revision."""
        tracker = Tracker(name, revision)
        self._trackers.append(tracker)
        return tracker

    def leave(self, tracker: Tracker) -> int:
        """Remove a reader; return the number of deletions that were discarded."""
        if tracker in self._trackers:
            self._trackers.remove(tracker)
        return self.collect()

    def bury(self, version: Version[K, R]) -> bool:
        """Record a deletion that is later than all recorded ones; return False if it is not kept, because no reader needs it."""
        if not self._trackers:
            version.ended = FORGOTTEN
            return False
        self._graves[version.key] = version
        return True

    def revive(self, key: K) -> int:
        """Discard the deletion of this key, because it has a row again. Return the number of discarded deletions."""
        grave = self._graves.pop(key, None)
        if grave is None:
            return 0
        grave.ended = FORGOTTEN
        return 1

    def collect(self) -> int:
        """Discard the deletions that all readers have read. While more deletions remain than the limit allows, expire the
        tracker of the slowest reader.

        Return the number of discarded deletions.
        """
        before = len(self._graves)
        while self._graves:
            slowest = min(self._trackers, key=lambda tracker: tracker.needs, default=None)
            self._forget(slowest)
            if slowest is None or len(self._graves) <= self._limit:
                break
            slowest.expired = True
            self._trackers.remove(slowest)
            self._expired.append(slowest.name)
        return before - len(self._graves)

    def _forget(self, slowest: Tracker | None) -> None:
        """Discard the deletions that even the slowest reader has read."""
        graves = self._graves
        while graves:
            key = next(iter(graves))
            grave = graves[key]
            if slowest is not None and grave.revision > slowest.needs:
                return
            grave.ended = FORGOTTEN
            del graves[key]
