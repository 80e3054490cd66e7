"""The objects of one kind, as last seen, and who waits for what of them changed.

Synchronous: nothing here awaits except a subscriber's wait. A subscriber's memory is bounded by the number of objects: it
holds the *keys* that changed since it last looked, never a queue of events. Two changes of one object between two looks
are one.

Who must see each change, and the object as the server told it, gives ``on_change``, which is called at once and must not block;
and who keeps his own view of the objects gives ``keep``, so that they are not held twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import trio

from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object was added, changed, or is gone.

    ``object`` is all the server told of it: the new state, or the last one. None: a list no longer has it. An object that is
    another by its uid is gone, and another is added.
    """

    type: WatchType
    key: ObjectKey
    object: JsonObject | None


OnChange = Callable[[ObjectChange], None]
"""Told every change in its order; must not block."""


def whole(obj: JsonObject) -> JsonObject:
    """Keep all of an object."""
    return obj


def told(change: ObjectChange) -> None:
    """Nobody has to see each change."""


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

    def __init__(
        self, resource: ResourceType, *, keep: Callable[[JsonObject], JsonObject] = whole, on_change: OnChange = told
    ) -> None:
        """``keep``: what is held of an object; it must leave name, namespace, uid and resourceVersion."""
        self._resource = resource
        self._keep = keep
        self._on_change = on_change
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
        fresh = {self.key_of(item): (item, _state(item)) for item in items}
        gone = self._objects.keys() - fresh.keys()
        for key in sorted(gone):
            del self._objects[key]
            self._on_change(ObjectChange(WatchType.DELETED, key, None))
        changed = {key for key, (item, state) in fresh.items() if self._put(key, item, state)}
        return self._tell(gone | changed)

    def put(self, obj: JsonObject) -> frozenset[ObjectKey]:
        """One object was added or changed."""
        key = self.key_of(obj)
        return self._tell({key} if self._put(key, obj, _state(obj)) else set())

    def drop(self, obj: JsonObject) -> frozenset[ObjectKey]:
        """One object is gone."""
        key = self.key_of(obj)
        if self._objects.pop(key, None) is None:
            return frozenset()
        self._on_change(ObjectChange(WatchType.DELETED, key, obj))
        return self._tell({key})

    def _put(self, key: ObjectKey, obj: JsonObject, state: tuple[str, str]) -> bool:
        """Hold this state; whether it is another than the one held."""
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
    """uid and resourceVersion, which tell whether two states are the same. Raises ShapeError."""
    return find_str(obj, "metadata", "uid"), find_str(obj, "metadata", "resourceVersion")
