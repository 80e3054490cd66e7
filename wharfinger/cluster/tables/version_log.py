"""The versions of a table's rows, sorted by revision, in a list that is only appended to, so that all snapshots can share it.

A version has *ended* when its row was replaced or deleted; the version that records a deletion has ended when no reader needs
it any more. Ended versions stay in the list until their number exceeds about half the number of the others. Then a second list
without ended versions is built: with each write a few versions are copied, so that no write takes long. When the second list is
complete, a new log with this list, the *successor*, replaces the log. Existing snapshots keep the old list.

Invariant: every version that has not ended is in the list exactly once, and the revisions in a list ascend.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Final, Generic

from wharfinger.cluster.tables.entry import GRAVE, PRESENT, K, R, Version

SLACK: Final = 8
"""A log is tidied when the number of its ended versions exceeds SLACK plus half the number of its other versions."""
COPIES: Final = 8
"""The number of versions of this log that are copied to its successor, or skipped because they have ended, each time a version
is written. It must be more than 1; otherwise the successor would never catch up.
"""

_revision: Final = attrgetter("revision")


class VersionLog(Generic[K, R]):
    """A log of versions: either a new, empty log, or a successor that :meth:`tidied` has made.

    ``live`` is the number of versions that have not ended; the code that ends versions updates this number.
    """

    __slots__ = ("_copied", "_next", "live", "versions")

    def __init__(self, versions: list[Version[K, R]] | None = None, live: int = 0) -> None:
        self.versions: list[Version[K, R]] = [] if versions is None else versions
        self.live = live
        self._next: list[Version[K, R]] | None = None
        self._copied = 0

    def append(self, version: Version[K, R]) -> None:
        """Append the newest version."""
        self.versions.append(version)
        self.live += 1

    def tidied(self, written: int) -> "VersionLog[K, R]":
        """Copy a part of the living versions to a successor if this log has too many dead versions. Return the successor if it
        is complete, otherwise this log.

        ``written`` is the number of versions that were added or ended since the last call.
        """
        length = len(self.versions)
        if self._next is None:
            if length <= self.live + self.live // 2 + SLACK:
                return self
            self._next, self._copied = [], 0
        until = self._copied + COPIES * written + SLACK
        self._next += [
            version
            for version in self.versions[self._copied : until]
            if version.ended == PRESENT or version.ended == GRAVE
        ]
        self._copied = until
        return self if until < length else VersionLog(self._next, self.live)

    def seen(self, revision: int, length: int, after: int = 0) -> Iterator[Version[K, R]]:
        """Return the rows that a snapshot at ``revision`` sees, and that were written after the revision ``after``. ``length``
        is the number of versions in the log when the snapshot was made.
        """
        versions = self.versions
        start = bisect_right(versions, after, key=_revision) if after else 0
        chosen = islice(versions, length) if not start else iter(versions[start:length])
        return (version for version in chosen if version.ended > revision)

    def changes_since(self, after: int) -> Iterator[Version[K, R]]:
        """Iterate over the current rows and the deletions whose revision is later than ``after``. The iterator must not be used
        after a write.
        """
        start = bisect_right(self.versions, after, key=_revision)
        for index in range(start, len(self.versions)):
            version = self.versions[index]
            if version.ended == PRESENT or version.ended == GRAVE:
                yield version
