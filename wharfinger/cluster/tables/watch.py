"""To be told that something one has read may be another by now.

A watch is taken *before* what it watches is read, fires once, and may fire though nothing changed; it never misses a change that
was committed after it was taken. It is set after the commit: who is woken reads the new rows.

Watches of keys and of index values are held weakly: one that nobody waits for any more is gone with whoever took it.
"""

from collections.abc import Hashable, Iterable
from weakref import WeakValueDictionary

import trio


class Watch:
    """One-shot, level: once it has fired, it has for good. Shared by all who took it between two changes."""

    __slots__ = ("__weakref__", "_event")

    def __init__(self) -> None:
        self._event = trio.Event()

    @property
    def fired(self) -> bool:
        """Whether what is watched may have changed since the watch was taken."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until it has fired."""
        await self._event.wait()

    def fire(self) -> None:
        """For whoever gave the watch out."""
        self._event.set()


class Watches:
    """Who watches what of one table."""

    def __init__(self) -> None:
        self._table: Watch | None = None
        self._keys: WeakValueDictionary[Hashable, Watch] = WeakValueDictionary()
        self._values: WeakValueDictionary[Hashable, Watch] = WeakValueDictionary()

    @property
    def keyed(self) -> int:
        """How many keys and index values are watched."""
        return len(self._keys) + len(self._values)

    @property
    def values_watched(self) -> bool:
        """Whether anybody watches a value of an index."""
        return bool(self._values)

    def table(self) -> Watch:
        """Any change."""
        if self._table is None:
            self._table = Watch()
        return self._table

    def key(self, key: Hashable) -> Watch:
        """The row with this key."""
        return _shared(self._keys, key)

    def value(self, index: str, value: Hashable) -> Watch:
        """The rows with this value of an index."""
        return _shared(self._values, (index, value))

    def fire_table(self) -> None:
        """Something changed."""
        watch, self._table = self._table, None
        if watch is not None:
            watch.fire()

    def fire(self, keys: Iterable[Hashable], values: Iterable[tuple[str, Hashable]]) -> None:
        """These keys and values changed."""
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
