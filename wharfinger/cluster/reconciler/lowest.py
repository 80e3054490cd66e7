"""A collection of revisions with quick access to the lowest one.

Progress is reported as one revision (all rows up to it were attempted, or all rows below it are done). So the lowest revision
that was not attempted yet, or is not done, has to be known at any time. Revisions are usually added in ascending order, which
is cheap for a heap.

Invariants: every revision held is in the heap; all other revisions in the heap were discarded, and are removed once they are
at the top, or once they outnumber the revisions held by more than :data:`_STALE`. An empty collection has neither heap nor
dict, to save memory: there are a dozen collections for each release, and nearly all are empty.
"""

import heapq
from collections.abc import Container, Hashable
from operator import itemgetter
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_STALE: Final = 64
"""The heap is made anew when it has more discarded revisions than held ones, and the difference is larger than this number."""


class Lowest(Generic[K]):
    """A collection of revisions, each with the key of the row that was written at this revision. One revision never belongs to
    two keys.
    """

    __slots__ = ("_heap", "_keys")

    def __init__(self) -> None:
        self._heap: list[int] | None = None
        self._keys: dict[int, K] | None = None

    def __len__(self) -> int:
        """Return the number of revisions in the collection."""
        return len(self._keys or ())

    def add(self, revision: int, key: K) -> None:
        """Add a revision with its key; do nothing if the collection contains the revision already."""
        if self._keys is None or self._heap is None:
            self._heap, self._keys = [revision], {revision: key}
        elif revision not in self._keys:
            self._keys[revision] = key
            heapq.heappush(self._heap, revision)

    def discard(self, revision: int) -> None:
        """Remove a revision; do nothing if the collection does not contain it."""
        if self._keys is None or self._heap is None or revision not in self._keys:
            return
        del self._keys[revision]
        if not self._keys:
            self._heap = self._keys = None
        elif len(self._heap) > 2 * len(self._keys) + _STALE:
            self._heap = sorted(self._keys)

    def lowest(self) -> int:
        """Return the lowest revision in the collection; 0 if the collection is empty."""
        heap, keys = self._heap, self._keys
        if heap is None or keys is None:
            return 0
        while heap and heap[0] not in keys:
            heapq.heappop(heap)
        return heap[0] if heap else 0

    def holds(self, revision: int, keys: Container[K] | None) -> bool:
        """Return whether the collection contains ``revision`` or a lower one for one of these keys (None: for any key)."""
        if self._keys is None or not 0 < self.lowest() <= revision:
            return False
        return keys is None or any(one <= revision and key in keys for one, key in self._keys.items())

    def by_revision(self) -> list[K]:
        """Return the keys of all revisions in the collection, sorted by revision."""
        return [key for _, key in sorted((self._keys or {}).items(), key=itemgetter(0))]
