"""The objects of one kind, as last seen, and the subscribers to their changes.

Synchronous: nothing here awaits except a subscriber's wait. A subscriber's memory is bounded by the number of objects: it
holds the *keys* that changed since the last call of `Changes.wait`, never a queue of events. Two changes of one object
between two calls count as one.

A caller that needs each change, and the object as the server sent it, passes ``on_change``, which is called immediately and
must not block. A caller that stores the objects itself passes the function ``keep``. It returns the part of an object that the
cache then stores in place of the object, so that complete objects are not stored twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import trio

from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.shared_texts import with_shared_texts
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """The report that one object was added, changed or deleted.

    ``object`` is the complete object from the server: its new state or, if it is gone, its last state. It is None if the
    server did not send the last state: a new list lacks the object, or another object (with another uid) has its key. In the
    second case, the old object is reported as gone, and then the new one as added.
    """

    type: WatchType
    key: ObjectKey
    object: JsonObject | None


OnChange = Callable[[ObjectChange], None]
"""A callback that is called with each change of the cache, in the order of the changes. It must not block."""


def whole(obj: JsonObject) -> JsonObject:
    """Return the complete object; this is the default of ``keep``."""
    return obj


def without_managers(obj: JsonObject) -> JsonObject:
    """Return an object without ``metadata.managedFields``, which can be larger than the rest of the object."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def in_shared_texts(obj: JsonObject) -> JsonObject:
    """Return an object without ``managedFields``. To save memory, equal strings of different objects are stored only once."""
    return with_shared_texts(without_managers(obj))


def ignore_change(change: ObjectChange) -> None:
    """Ignore a change; this is the default of ``on_change``."""


class Changes:
    """One subscription: the keys that changed since :meth:`wait` last returned. At the beginning, these are the keys of all
    objects.
    """

    def __init__(self, keys: Iterable[ObjectKey]) -> None:
        self._keys = set(keys)
        self._wake = trio.Event()
        if self._keys:
            self._wake.set()

    async def wait(self) -> frozenset[ObjectKey]:
        """Wait until something changed, and return the keys of changed objects; an object that is gone counts as changed."""
        await self._wake.wait()
        return self.take_nowait()

    def take_nowait(self) -> frozenset[ObjectKey]:
        """Return the keys that :meth:`wait` would return, without waiting; empty if nothing changed."""
        keys = frozenset(self._keys)
        self._keys.clear()
        self._wake = trio.Event()
        return keys

    def add(self, keys: Iterable[ObjectKey]) -> None:
        """Record that these objects changed."""
        self._keys.update(keys)
        if self._keys:
            self._wake.set()


class ObjectCache:
    """Objects by key. Returned objects are shared and must not be changed."""

    def __init__(
        self,
        resource: ResourceType,
        *,
        keep: Callable[[JsonObject], JsonObject] = whole,
        on_change: OnChange = ignore_change,
    ) -> None:
        """Hold the part of each object that ``keep`` returns; this part must contain name, namespace, uid and resourceVersion."""
        self._resource = resource
        self._keep = keep
        self._on_change = on_change
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._snapshot: Mapping[ObjectKey, JsonObject] | None = None
        self._subscribers: set[Changes] = set()

    def objects(self) -> Mapping[ObjectKey, JsonObject]:
        """Return a snapshot of all objects by key, which later changes do not affect."""
        if self._snapshot is None:
            self._snapshot = MappingProxyType(self._objects.copy())
        return self._snapshot

    def get(self, key: ObjectKey) -> JsonObject | None:
        """Return the last known state of one object; None if it is not known to exist."""
        return self._objects.get(key)

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    @contextmanager
    def subscribe(self) -> Iterator[Changes]:
        """Yield a subscription for as long as the block runs."""
        changes = Changes(self._objects)
        self._subscribers.add(changes)
        try:
            yield changes
        finally:
            self._subscribers.discard(changes)

    def key_of(self, obj: JsonObject) -> ObjectKey:
        """Return the key of an object of this cache's kind."""
        return ObjectKey(self._resource, namespace_of(obj) if self._resource.namespaced else "", name_of(obj))

    def replace(self, items: Iterable[JsonObject]) -> frozenset[ObjectKey]:
        """Replace the content of the cache by the objects of a list. Return the keys of the objects that were added, changed or
        removed.
        """
        fresh = {self.key_of(item): (item, _state(item)) for item in items}
        gone = self._objects.keys() - fresh.keys()
        for key in sorted(gone):
            del self._objects[key]
            self._on_change(ObjectChange(WatchType.DELETED, key, None))
        changed = {key for key, (item, state) in fresh.items() if self._put(key, item, state)}
        return self._tell(gone | changed)

    def put(self, obj: JsonObject) -> frozenset[ObjectKey]:
        """Add or change one object; return its key if something changed."""
        key = self.key_of(obj)
        return self._tell({key} if self._put(key, obj, _state(obj)) else set())

    def drop(self, obj: JsonObject) -> frozenset[ObjectKey]:
        """Remove one object; return its key if the cache contained it."""
        key = self.key_of(obj)
        if self._objects.pop(key, None) is None:
            return frozenset()
        self._on_change(ObjectChange(WatchType.DELETED, key, obj))
        return self._tell({key})

    def _put(self, key: ObjectKey, obj: JsonObject, state: tuple[str, str]) -> bool:
        """Store this state of an object; return whether it differs from the stored one."""
        old = self._objects.get(key)
        held = None if old is None else _state(old)
        if held == state:
            return False
        self._objects[key] = self._keep(obj)
        if held is not None and held[0] == state[0]:
            self._on_change(ObjectChange(WatchType.MODIFIED, key, obj))
            return True
        if held is not None:
            self._on_change(ObjectChange(WatchType.DELETED, key, None))
        self._on_change(ObjectChange(WatchType.ADDED, key, obj))
        return True

    def _tell(self, changed: set[ObjectKey]) -> frozenset[ObjectKey]:
        if changed:
            self._snapshot = None
            for subscriber in self._subscribers:
                subscriber.add(changed)
        return frozenset(changed)


def _state(obj: JsonObject) -> tuple[str, str]:
    """Return uid and resourceVersion, which show whether two states are the same. Raises ShapeError."""
    return find_str(obj, "metadata", "uid"), find_str(obj, "metadata", "resourceVersion")
