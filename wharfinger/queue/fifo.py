"""An immutable first-in-first-out queue, which contains the tasks that wait in a lane (`queue.state`).

A pure machine returns a new state for every event and does not change the old one. If the state had a tuple of a thousand tasks,
the tuple would be copied for each task that is added or taken. In contrast, a `Fifo` shares its parts with the `Fifo` that it was
made from. A `Fifo` has two chains: new items are put onto a chain that begins with the newest item, and items are taken from a
chain that begins with the oldest item. When the second chain is empty, the first one is reversed. So the average cost of adding
and taking does not depend on the length.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

_Chain: TypeAlias = "tuple[T, _Chain[T]] | None"
"""A linked list: its first item, and the list of the items after it. None is the empty list."""


class Fifo(Generic[T]):
    """An immutable queue: `put` and `take` return a new queue."""

    __slots__ = ("_length", "_newest", "_oldest")

    def __init__(self, oldest: "_Chain[T]" = None, newest: "_Chain[T]" = None, length: int = 0) -> None:
        """Make an empty queue. The arguments are private; `of` makes a queue of several items."""
        self._oldest = oldest
        self._newest = newest
        self._length = length

    @classmethod
    def of(cls, items: Iterable[T]) -> "Fifo[T]":
        """Return a queue of these items; the first one is the oldest."""
        found = tuple(items)
        return cls(_chained(reversed(found)), None, len(found))

    def put(self, item: T) -> "Fifo[T]":
        """Return a queue with the same items, and one more item at the end."""
        return Fifo(self._oldest, (item, self._newest), self._length + 1)

    def take(self) -> "tuple[T, Fifo[T]]":
        """Return the oldest item and the queue without it. Raises IndexError when empty."""
        oldest, newest = self._oldest, self._newest
        if oldest is None:
            oldest, newest = _chained(_items(newest)), None
            if oldest is None:
                raise IndexError("taking from an empty Fifo")
        item, rest = oldest
        return item, Fifo(rest, newest, self._length - 1)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        """Iterate over the items, oldest first."""
        yield from _items(self._oldest)
        yield from reversed(list(_items(self._newest)))

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a queue of equal items in the same order. How the items are divided into two chains does
        not matter.
        """
        return isinstance(other, Fifo) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Fifo.of({list(self)!r})"


def _items(chain: "_Chain[T]") -> Iterator[T]:
    while chain is not None:
        item, chain = chain
        yield item


def _chained(items: Iterable[T]) -> "_Chain[T]":
    """Return a chain of these items in reverse order: it begins with the last item."""
    chain: _Chain[T] = None
    for item in items:
        chain = (item, chain)
    return chain
