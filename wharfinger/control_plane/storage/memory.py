"""Storage in memory. Each collection has its records by place (``namespace/name``), and a sorted list of the places. All
collections share one bounded history.

To list objects, the storage iterates over the places; for a list at an earlier revision, it also reverts the later changes. So
the cost of a page depends on its size and on the number of changes, but not on the number of objects.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Final

from wharfinger.control_plane.storage.history import HISTORY_BYTES, HISTORY_LIMIT, History
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, Key
from wharfinger.control_plane.storage.record import DECODED_BYTES, DecodedCache, Objects, Record, record_of
from wharfinger.formats.json.value import JsonObject

_AFTER_SLASH: Final = chr(ord("/") + 1)


class _Partition:
    """The stored objects of one collection."""

    __slots__ = ("places", "records")

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.places: list[str] = []

    def between(self, namespace: str, start: str) -> tuple[int, int]:
        """Return the range of indexes (first, end) in ``places`` for the places (``namespace/name``) of a namespace that are
        not before ``start``.

        If ``namespace`` is "", the range includes the places of all namespaces.
        """
        first, last = 0, len(self.places)
        if namespace:
            first = bisect_left(self.places, f"{namespace}/")
            last = bisect_left(self.places, f"{namespace}{_AFTER_SLASH}", lo=first)
        return min(max(first, bisect_left(self.places, start)), last), last


class MemoryStorage:
    """A storage whose state is lost with the process: for tests and simulations, and as the cache of other storages.

    It begins at ``revision`` with the objects in ``bodies``: key, revision and JSON of each. Its history is empty at first, and
    limited to ``history_limit`` changes and ``history_bytes``. Decoded objects are cached up to ``decoded_bytes`` of their JSON.
    """

    def __init__(
        self,
        *,
        history_limit: int = HISTORY_LIMIT,
        history_bytes: int = HISTORY_BYTES,
        revision: int = 1,
        bodies: Iterable[tuple[Key, int, bytes]] = (),
        decoded_bytes: int = DECODED_BYTES,
    ) -> None:
        self._revision = revision
        self._cache = DecodedCache(decoded_bytes)
        self._partitions: defaultdict[Collection, _Partition] = defaultdict(_Partition)
        for key, at, body in bodies:
            self._partitions[key.collection].records[key.place] = Record(key, at, body, self._cache)
        for partition in self._partitions.values():
            partition.places = sorted(partition.records)
        self._history = History(revision, limit=history_limit, max_bytes=history_bytes)

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def committed(self) -> int:
        return self._revision

    @property
    def oldest(self) -> int:
        return self._history.oldest

    def record(self, key: Key) -> Record | None:
        partition = self._partitions.get(key.collection)
        return None if partition is None else partition.records.get(key.place)

    def get(self, key: Key) -> JsonObject | None:
        record = self.record(key)
        return None if record is None else record.obj

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> Sequence[JsonObject]:
        return Objects(tuple(self.records(collection, namespace, at=at)))

    def records(
        self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None
    ) -> Iterator[Record]:
        partition = self._partitions.get(collection) or _Partition()
        first, last = partition.between(namespace, start)
        now = islice(partition.places, first, last)
        if at is None or at >= self._revision:
            return map(partition.records.__getitem__, now)
        then = self._undone(collection, namespace, start, at)
        gone = sorted(place for place in then if place not in partition.records)
        placed = merge(now, gone) if gone else now
        found = (then[place] if place in then else partition.records[place] for place in placed)
        return (record for record in found if record is not None)

    def count(self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None) -> int:
        partition = self._partitions.get(collection) or _Partition()
        first, last = partition.between(namespace, start)
        if at is None or at >= self._revision:
            return last - first
        then = self._undone(collection, namespace, start, at)
        return last - first + sum((record is not None) - (place in partition.records) for place, record in then.items())

    def _undone(self, collection: Collection, namespace: str, start: str, at: int) -> dict[str, Record | None]:
        """Return the objects that have changed since the revision ``at``, each as it was at that revision (None if it did not
        exist). The keys are places (``Key.place``).
        """
        then: dict[str, Record | None] = {}
        for change in self._history.after(collection, at, None, None):
            place = change.key.place
            if place not in then and place >= start and (not namespace or change.key.namespace == namespace):
                then[place] = change.before
        return then

    def put(self, key: Key, obj: JsonObject) -> Change:
        record = record_of(key, obj, self._revision + 1, self._cache)
        partition = self._partitions[key.collection]
        place = key.place
        before = partition.records.get(place)
        if before is None:
            insort(partition.places, place)
        partition.records[place] = record
        return self._record(Change(ChangeType.ADDED if before is None else ChangeType.MODIFIED, record, before))

    def delete(self, key: Key) -> Change:
        before = self.record(key)
        if before is None:
            raise KeyError(key)
        record = record_of(key, before.obj, self._revision + 1, self._cache)
        self._remove(key)
        return self._record(Change(ChangeType.DELETED, record, before))

    def _remove(self, key: Key) -> None:
        partition = self._partitions[key.collection]
        place = key.place
        del partition.records[place]
        del partition.places[bisect_left(partition.places, place)]

    def changes(
        self, collection: Collection, after: int, *, limit: int | None = None, upto: int | None = None
    ) -> Sequence[Change]:
        return self._history.after(collection, after, limit, upto)

    def _record(self, change: Change) -> Change:
        self._revision = change.revision
        self._history.add(change)
        return change

    def compact(self) -> None:
        self._history.clear(self._revision)

    def commit(self) -> None:
        """Do nothing. Each write counts as committed as soon as it is made, because nothing outlives the process."""

    def undo(self, changes: Sequence[Change], revision: int) -> Sequence[Change]:
        """Undo the latest changes, so that the storage is at ``revision`` again.

        ``changes`` lists the changes to undo, oldest first. Return the changes that undo them, at most one for each object.
        """
        first = {change.key: change.before for change in reversed(changes)}
        last = {change.key: change for change in changes}
        self._revision = revision
        self._history.forget_after(revision)
        undone = []
        for key, before in first.items():
            partition, place, newest = self._partitions[key.collection], key.place, last[key]
            absent = newest.type is ChangeType.DELETED
            if before is None:
                if not absent:
                    self._remove(key)
                    undone.append(Change(ChangeType.DELETED, newest.record, newest.record))
                continue
            if absent:
                insort(partition.places, place)
            partition.records[place] = before
            type_ = ChangeType.ADDED if absent else ChangeType.MODIFIED
            undone.append(Change(type_, before, None if absent else newest.record))
        return undone
