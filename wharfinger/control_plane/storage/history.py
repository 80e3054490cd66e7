"""The latest changes of a storage, for watches and for lists at an older revision: bounded in number and in memory.

Each change holds the object as it was before the change. Only the history still needs these old objects, so its memory limit
counts them. The oldest changes of all collections are dropped first. So a single revision defines, for all collections, which
changes are still known.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, CompactedError

HISTORY_LIMIT: Final = 20_000
HISTORY_BYTES: Final = 16 * 1024 * 1024
_OVERHEAD: Final = 300
"""The approximate size in bytes of the Python objects that make up a change."""
_REVISION: Final = attrgetter("revision")


class _Log:
    """The changes of one collection. The first ``start`` entries of ``changes`` count as dropped, but are still there."""

    __slots__ = ("changes", "start")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.start = 0

    def drop_first(self) -> None:
        self.start += 1
        if self.start >= 64 and self.start * 2 >= len(self.changes):
            del self.changes[: self.start]
            self.start = 0


class History:
    """The changes since the revision ``oldest``."""

    def __init__(self, oldest: int, *, limit: int = HISTORY_LIMIT, max_bytes: int = HISTORY_BYTES) -> None:
        self.oldest = oldest
        self._limit = limit
        self._max_bytes = max_bytes
        self._bytes = 0
        self._order: deque[Change] = deque()
        self._logs: defaultdict[Collection, _Log] = defaultdict(_Log)

    def add(self, change: Change) -> None:
        """Add the latest change, and drop the oldest changes while there are too many or they use too much memory."""
        self._order.append(change)
        self._logs[change.key.collection].changes.append(change)
        self._bytes += _weight(change)
        while len(self._order) > self._limit or self._bytes > self._max_bytes:
            dropped = self._order.popleft()
            self._logs[dropped.key.collection].drop_first()
            self._bytes -= _weight(dropped)
            self.oldest = dropped.revision

    def after(self, collection: Collection, revision: int, limit: int | None, upto: int | None) -> Sequence[Change]:
        """Return the changes of a collection after a revision, oldest first. Raises CompactedError.

        The result has at most ``limit`` changes, and none later than ``upto``.
        """
        if revision < self.oldest:
            raise CompactedError(revision, self.oldest)
        log = self._logs.get(collection)
        if log is None:
            return ()
        changes = log.changes
        first = bisect_right(changes, revision, lo=log.start, key=_REVISION)
        last = len(changes) if upto is None else bisect_right(changes, upto, lo=first, key=_REVISION)
        return changes[first : last if limit is None else min(last, first + limit)]

    def clear(self, revision: int) -> None:
        """Remove all changes; ``revision`` is the latest revision."""
        self._order.clear()
        self._logs.clear()
        self._bytes = 0
        self.oldest = revision

    def forget_after(self, revision: int) -> None:
        """Remove the changes later than ``revision``.

        Older changes that were dropped to make room for the removed changes are not restored.
        """
        if revision < self.oldest:
            self.clear(revision)
            return
        while self._order and self._order[-1].revision > revision:
            change = self._order.pop()
            self._logs[change.key.collection].changes.pop()
            self._bytes -= _weight(change)


def _weight(change: Change) -> int:
    own = len(change.record.body) if change.type is ChangeType.DELETED else 0
    return _OVERHEAD + own + (0 if change.before is None else len(change.before.body))
