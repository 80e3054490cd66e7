"""Revisions that come and go, and which of them is the lowest.

Progress is told by one number (everything up to it was attempted; everything below it is well), so the lowest of what is still
open has to be known at any time. Revisions mostly come in their order, so the heap has next to nothing to do.

Invariants: every revision held is in the heap; what else is in the heap was discarded, and goes once it is at the top or
once it is more than half of it.
"""

import heapq
from collections.abc import Container, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_STALE: Final = 64
"""So many discarded ones may always be in the heap."""


class Lowest(Generic[K]):
    """Keys by revision. A revision belongs to one key of a table, so it is never held for two."""

    __slots__ = ("_heap", "_keys")

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._keys: dict[int, K] = {}

    def __len__(self) -> int:
        """How many are held."""
        return len(self._keys)

    def add(self, revision: int, key: K) -> None:
        """Hold this revision; nothing where it is held."""
        if revision not in self._keys:
            self._keys[revision] = key
            heapq.heappush(self._heap, revision)

    def discard(self, revision: int) -> None:
        """Hold it no longer; nothing where it is not held."""
        if revision in self._keys:
            del self._keys[revision]
            if len(self._heap) > 2 * len(self._keys) + _STALE:
                self._heap = sorted(self._keys)

    def lowest(self) -> int:
        """The lowest revision held; 0 where none is."""
        heap, keys = self._heap, self._keys
        while heap and heap[0] not in keys:
            heapq.heappop(heap)
        return heap[0] if heap else 0

    def holds(self, revision: int, keys: Container[K] | None) -> bool:
        """Whether one up to this revision is held, of these keys; None: of any."""
        if not 0 < self.lowest() <= revision:
            return False
        return keys is None or any(one <= revision and key in keys for one, key in self._keys.items())

    def by_revision(self) -> list[K]:
        """The keys, by revision."""
        return [self._keys[revision] for revision in sorted(self._keys)]
