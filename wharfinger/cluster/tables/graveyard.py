"""Deletions that somebody has yet to be told of, and who that is.

A deletion is kept while a tracker is behind it, and at most ``limit`` of them are: then whoever is furthest behind is *expired*,
so that a consumer that hangs costs a bounded number of rows, and is named. A row that comes again takes its grave away.

Invariants: graves are in the order of their revisions; each is later than what some tracker needs; there are at most ``limit``.
"""

from collections import OrderedDict, deque
from typing import Final, Generic

from wharfinger.cluster.tables.entry import FORGOTTEN, K, R, Version

GRAVES: Final = 200_000
"""How many deletions a table remembers, unless told otherwise."""
NAMED: Final = 16
"""How many names of expired trackers are kept for the statistics."""


class Tracker:
    """How far somebody has read. ``begun``: the revision at which he came, no deletion before which is his business."""

    __slots__ = ("begun", "expired", "mark", "name")

    def __init__(self, name: str, begun: int) -> None:
        self.name = name
        self.begun = begun
        self.mark = 0
        """All changes up to this revision were told."""
        self.expired = False

    @property
    def needs(self) -> int:
        """Deletions after this revision are to be told."""
        return max(self.begun, self.mark)


class Graveyard(Generic[K, R]):
    """The deletions and trackers of one table."""

    def __init__(self, limit: int = GRAVES) -> None:
        self._limit = limit
        self._graves: OrderedDict[K, Version[K, R]] = OrderedDict()
        self._trackers: list[Tracker] = []
        self._expired: deque[str] = deque(maxlen=NAMED)

    def __len__(self) -> int:
        """How many deletions are remembered."""
        return len(self._graves)

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """Who reads."""
        return tuple(self._trackers)

    @property
    def expired(self) -> tuple[str, ...]:
        """Who was expired, the last ones."""
        return tuple(self._expired)

    def join(self, name: str, revision: int) -> Tracker:
        """Somebody begins to read a table of this revision."""
        tracker = Tracker(name, revision)
        self._trackers.append(tracker)
        return tracker

    def leave(self, tracker: Tracker) -> int:
        """He does not read any more. How many deletions were forgotten."""
        if tracker in self._trackers:
            self._trackers.remove(tracker)
        return self.collect()

    def bury(self, version: Version[K, R]) -> bool:
        """A deletion, later than any other. False: nobody need know, it is not kept."""
        if not self._trackers:
            version.ended = FORGOTTEN
            return False
        self._graves[version.key] = version
        return True

    def revive(self, key: K) -> int:
        """There is a row with this key again. How many deletions were forgotten."""
        grave = self._graves.pop(key, None)
        if grave is None:
            return 0
        grave.ended = FORGOTTEN
        return 1

    def collect(self) -> int:
        """Forget what all have been told, and what is too much. How many deletions were forgotten."""
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
        """What even the slowest has been told."""
        graves = self._graves
        while graves:
            key = next(iter(graves))
            grave = graves[key]
            if slowest is not None and grave.revision > slowest.needs:
                return
            grave.ended = FORGOTTEN
            del graves[key]
