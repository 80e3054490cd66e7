"""Watches: notifications that rows may have changed since they were read.

Get a watch *before* you read the rows. The watch fires once, after the first commit that changes the watched content, so a
task that is woken reads the new rows. The watch may also fire without a change, but never misses a change.

The table has only weak references to watches of keys and of index values: a watch is discarded once no task refers to it.
"""

from collections.abc import Hashable, Iterable
from weakref import WeakValueDictionary

import trio


class Watch:
    """A notification that fires once. All readers that request a watch of the same content between two changes share it."""

    __slots__ = ("__weakref__", "_event")

    def __init__(self) -> None:
        self._event = trio.Event()

    @property
    def fired(self) -> bool:
        """Return whether the watched content may have changed since the watch was taken."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the watch has fired."""
        await self._event.wait()

    def fire(self) -> None:
        """Fire the watch. Only the table that returned the watch calls this."""
        self._event.set()


class Watches:
    """The watches of one table."""

    def __init__(self) -> None:
        self._table: Watch | None = None
        self._keys: WeakValueDictionary[Hashable, Watch] = WeakValueDictionary()
        self._values: WeakValueDictionary[Hashable, Watch] = WeakValueDictionary()

    @property
    def keyed(self) -> int:
        """Return the number of watched keys and index values."""
        return len(self._keys) + len(self._values)

    @property
    def values_watched(self) -> bool:
        """Return whether a value of an index is watched."""
        return bool(self._values)

    def table(self) -> Watch:
        """Return the watch that any change of the table fires."""
        if self._table is None:
            self._table = Watch()
        return self._table

    def key(self, key: Hashable) -> Watch:
        """Return the watch of the row with this key."""
        return _shared(self._keys, key)

    def value(self, index: str, value: Hashable) -> Watch:
        """Return the watch of the rows with this value of an index."""
        return _shared(self._values, (index, value))

    def fire_table(self) -> None:
        """Fire the watch that :meth:`table` returned."""
        watch, self._table = self._table, None
        if watch is not None:
            watch.fire()

    def fire(self, keys: Iterable[Hashable], values: Iterable[tuple[str, Hashable]]) -> None:
        """Fire the watch of the whole table, and the watches of the given keys and index values, whose rows have changed."""
        if self._keys:
            _fire(self._keys, keys)
        if self._values:
            _fire(self._values, values)
        self.fire_table()


def _shared(watches: "WeakValueDictionary[Hashable, Watch]", of: Hashable) -> Watch:
    watch = watches.get(of)
    if watch is None:
        watch = watches[of] = Watch()
    return watch


def _fire(watches: "WeakValueDictionary[Hashable, Watch]", changed: Iterable[Hashable]) -> None:
    for one in changed:
        watch = watches.pop(one, None)
        if watch is not None:
            watch.fire()
