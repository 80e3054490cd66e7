"""The objects of one kind, as last seen, and who waits for what of them changed.

Synchronous: nothing here awaits except a subscriber's wait. A subscriber's memory is bounded by the number of objects: it
holds the *keys* that changed since it last looked, never a queue of events. Two changes of one object between two looks
are one.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import trio

from wharfinger.cluster.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.formats.json_value import JsonObject, find_str


class Changes:
    """One subscription: which keys changed since :meth:`wait` last returned. It begins with all that is there."""

    def __init__(self, keys: Iterable[ObjectKey]) -> None:
        self._keys = set(keys)
        self._wake = trio.Event()
        if self._keys:
            self._wake.set()

    async def wait(self) -> frozenset[ObjectKey]:
        """Wait until something changed; the keys that did. An object that is gone changed, too."""
        await self._wake.wait()
        return self.take_nowait()

    def take_nowait(self) -> frozenset[ObjectKey]:
        """What :meth:`wait` would return, without waiting; empty where nothing changed."""
        keys = frozenset(self._keys)
        self._keys.clear()
        self._wake = trio.Event()
        return keys

    def add(self, keys: Iterable[ObjectKey]) -> None:
        """Note that these changed."""
        self._keys.update(keys)
        if self._keys:
            self._wake.set()


class ObjectCache:
    """Objects by key. Objects handed out are shared: nobody may change one."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._snapshot: Mapping[ObjectKey, JsonObject] | None = None
        self._subscribers: set[Changes] = set()

    def objects(self) -> Mapping[ObjectKey, JsonObject]:
        """A snapshot; later changes do not show in it."""
        if self._snapshot is None:
            self._snapshot = MappingProxyType(self._objects.copy())
        return self._snapshot

    def get(self, key: ObjectKey) -> JsonObject | None:
        """One object as last seen."""
        return self._objects.get(key)

    def __len__(self) -> int:
        """How many objects there are."""
        return len(self._objects)

    @contextmanager
    def subscribe(self) -> Iterator[Changes]:
        """A subscription for as long as the block runs."""
        changes = Changes(self._objects)
        self._subscribers.add(changes)
        try:
            yield changes
        finally:
            self._subscribers.discard(changes)

    def key_of(self, obj: JsonObject) -> ObjectKey:
        """The key of an object of this cache's kind."""
        return ObjectKey(self._resource, namespace_of(obj) if self._resource.namespaced else "", name_of(obj))

    def replace(self, items: Iterable[JsonObject]) -> frozenset[ObjectKey]:
        """Hold exactly these from now on (a list); the keys that were added, changed or removed."""
        fresh = {self.key_of(item): item for item in items}
        changed = {key for key, item in fresh.items() if _differs(self._objects.get(key), item)}
        changed |= self._objects.keys() - fresh.keys()
        self._objects = fresh
        return self._tell(changed)

    def put(self, obj: JsonObject) -> frozenset[ObjectKey]:
        """One object was added or changed."""
        key = self.key_of(obj)
        changed = {key} if _differs(self._objects.get(key), obj) else set()
        self._objects[key] = obj
        return self._tell(changed)

    def drop(self, obj: JsonObject) -> frozenset[ObjectKey]:
        """One object is gone."""
        key = self.key_of(obj)
        return self._tell({key} if self._objects.pop(key, None) is not None else set())

    def _tell(self, changed: set[ObjectKey]) -> frozenset[ObjectKey]:
        if changed:
            self._snapshot = None
            for subscriber in self._subscribers:
                subscriber.add(changed)
        return frozenset(changed)


def _differs(old: JsonObject | None, new: JsonObject) -> bool:
    """By uid and resourceVersion, which is what they are for."""
    return old is None or any(
        find_str(old, "metadata", field) != find_str(new, "metadata", field) for field in ("uid", "resourceVersion")
    )
