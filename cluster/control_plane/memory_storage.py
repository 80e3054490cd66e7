"""Storage in memory: a dict, a sorted list of keys for each collection, and a bounded history.

A list hands out references, not copies: what is stored is never altered (law 2), so a snapshot of ten thousand objects
costs one tuple. Older lists are made by undoing the history backwards from now.
"""

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.cluster.control_plane.storage import Change, ChangeType, Collection, CompactedError, Key
from wharfinger.formats.json_value import JsonObject, as_object

HISTORY_LIMIT: Final = 20_000
"""Changes kept for watches and older lists; the oldest go first."""
_AFTER_SLASH: Final = chr(ord("/") + 1)


class MemoryStorage:
    """State that is lost with the process: of tests and simulations, and what other storages keep in reach.

    It begins at ``revision`` with ``objects`` there (each as a storage stamped it), and without a history.
    """

    def __init__(
        self,
        *,
        history_limit: int = HISTORY_LIMIT,
        revision: int = 1,
        objects: Iterable[tuple[Key, JsonObject]] = (),
    ) -> None:
        self._revision = revision
        self._oldest = revision
        self._history_limit = history_limit
        self._objects: dict[Key, JsonObject] = dict(objects)
        self._places: defaultdict[Collection, list[str]] = defaultdict(list)
        for key in sorted(self._objects, key=lambda key: key.place):
            self._places[key.collection].append(key.place)
        self._history: deque[Change] = deque()
        self._by_collection: defaultdict[Collection, deque[Change]] = defaultdict(deque)

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def oldest(self) -> int:
        return self._oldest

    def get(self, key: Key) -> JsonObject | None:
        return self._objects.get(key)

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> tuple[JsonObject, ...]:
        if at is not None and at < self._revision:
            return self._list_at(collection, namespace, at)
        places = self._places.get(collection, [])
        if namespace:
            places = places[bisect_left(places, f"{namespace}/") : bisect_left(places, f"{namespace}{_AFTER_SLASH}")]
        return tuple(self._objects[_key(collection, place)] for place in places)

    def _list_at(self, collection: Collection, namespace: str, at: int) -> tuple[JsonObject, ...]:
        undone: dict[str, JsonObject | None] = {}
        for change in reversed(self.changes(collection, at)):
            undone[change.key.place] = change.previous
        now = {place: self._objects[_key(collection, place)] for place in self._places.get(collection, [])}
        then = sorted((now | undone).items())
        prefix = f"{namespace}/" if namespace else ""
        return tuple(obj for place, obj in then if obj is not None and place.startswith(prefix))

    def put(self, key: Key, obj: JsonObject) -> Change:
        previous = self._objects.get(key)
        self._revision += 1
        stored = stamped(obj, self._revision)
        if previous is None:
            insort(self._places[key.collection], key.place)
        self._objects[key] = stored
        type_ = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        return self._record(Change(self._revision, type_, key, stored, previous))

    def delete(self, key: Key) -> Change:
        previous = self._objects.pop(key)
        places = self._places[key.collection]
        del places[bisect_left(places, key.place)]
        self._revision += 1
        last = stamped(previous, self._revision)
        return self._record(Change(self._revision, ChangeType.DELETED, key, last, previous))

    def changes(self, collection: Collection, after: int) -> Sequence[Change]:
        if after < self._oldest:
            raise CompactedError(after, self._oldest)
        found: deque[Change] = deque()
        for change in reversed(self._by_collection.get(collection, ())):
            if change.revision <= after:
                break
            found.appendleft(change)
        return tuple(found)

    def _record(self, change: Change) -> Change:
        self._history.append(change)
        self._by_collection[change.key.collection].append(change)
        while len(self._history) > self._history_limit:
            dropped = self._history.popleft()
            self._by_collection[dropped.key.collection].popleft()
            self._oldest = dropped.revision
        return change

    def compact(self) -> None:
        self._history.clear()
        self._by_collection.clear()
        self._oldest = self._revision


def _key(collection: Collection, place: str) -> Key:
    namespace, _, name = place.partition("/")
    return Key(collection, namespace, name)


def stamped(obj: JsonObject, revision: int) -> JsonObject:
    """A copy that bears a revision."""
    metadata = as_object(obj.get("metadata", {}), "metadata")
    return {**obj, "metadata": {**metadata, "resourceVersion": str(revision)}}
