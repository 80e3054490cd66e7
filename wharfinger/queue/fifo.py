"""A first-in-first-out sequence that is never changed, only followed by another: what waits in a lane (`queue.state`).

A pure machine answers every event with a new state and leaves the old one as it was. With a tuple, each task put behind a
thousand others would copy a thousand, and so would each one taken. This one shares: new items go onto a chain that begins
with the newest one; items are taken from a chain that begins with the oldest one. When the second chain is empty, the first
one is reversed. So putting and taking cost the same however long it is, on average over the steps of one history.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

_Chain: TypeAlias = "tuple[T, _Chain[T]] | None"
"""An item and the chain behind it; None is the end."""


class Fifo(Generic[T]):
    """Immutable: `put` and `take` answer with another one."""

    __slots__ = ("_length", "_newest", "_oldest")

    def __init__(self, oldest: "_Chain[T]" = None, newest: "_Chain[T]" = None, length: int = 0) -> None:
        """Private, except for the empty chain; `of` makes a chain of several items."""
        self._oldest = oldest
        self._newest = newest
        self._length = length

    @classmethod
    def of(cls, items: Iterable[T]) -> "Fifo[T]":
        """Return a queue of these items, the first of which is the oldest."""
        found = tuple(items)
        return cls(_chained(reversed(found)), None, len(found))

    def put(self, item: T) -> "Fifo[T]":
        """Return the same queue with one more item at the end."""
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
        """Oldest first."""
        yield from _items(self._oldest)
        yield from reversed(list(_items(self._newest)))

    def __eq__(self, other: object) -> bool:
        """Equal items in the same order, however they are chained."""
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
    """Return these items as a chain in reverse order: it begins with the last one."""
    chain: _Chain[T] = None
    for item in items:
        chain = (item, chain)
    return chain
