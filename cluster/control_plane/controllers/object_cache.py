"""What the controllers know of the cluster: a synchronous store of all objects, fed by watches.

One writer (:mod:`.mirror`), many readers. Each change is told to the listeners at once, before the writer goes on; they
only take notes of what to look at. Objects are never changed in place, so readers may keep them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.cluster.control_plane.controllers.garbage import owner_uids
from wharfinger.cluster.resource import ObjectKey, ResourceType, name_of, namespace_of
from wharfinger.formats.json_value import JsonObject, find_str


@dataclass(frozen=True, slots=True)
class Change:
    """One object as it was and is; None where it was or is absent."""

    key: ObjectKey
    before: JsonObject | None
    after: JsonObject | None

    @property
    def known(self) -> JsonObject:
        """The object as it is, or as it last was."""
        return self.after or self.before or {}


Listener: TypeAlias = Callable[[Change], None]


def key_of(resource: ResourceType, obj: JsonObject) -> ObjectKey:
    """The key of an object of a kind."""
    return ObjectKey(resource, namespace_of(obj) if resource.namespaced else "", name_of(obj))


class ObjectCache:
    """All mirrored objects, by kind, uid and owner."""

    def __init__(self) -> None:
        self._kinds: dict[ResourceType, dict[ObjectKey, JsonObject]] = {}
        self._by_uid: dict[str, ObjectKey] = {}
        self._dependents: dict[str, set[ObjectKey]] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Be told of every change from now on."""
        self._listeners.append(listener)

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The object, or None."""
        return self._kinds.get(key.resource, {}).get(key)

    def of_kind(self, group_kind: str, namespace: str = "") -> Iterator[tuple[ObjectKey, JsonObject]]:
        """The objects of a kind (``Deployment.apps``), in one namespace or ("") all."""
        for resource, objects in self._kinds.items():
            if resource.group_kind == group_kind:
                for key, obj in objects.items():
                    if not namespace or key.namespace == namespace:
                        yield key, obj

    def kinds(self) -> tuple[ResourceType, ...]:
        """The mirrored kinds."""
        return tuple(self._kinds)

    def key_of_uid(self, uid: str) -> ObjectKey | None:
        """Whose uid it is."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[tuple[ObjectKey, JsonObject]]:
        """The objects with an owner reference to this uid."""
        found = ((key, self.get(key)) for key in sorted(self._dependents.get(uid, ())))
        return [(key, obj) for key, obj in found if obj is not None]

    def put(self, key: ObjectKey, obj: JsonObject) -> None:
        """The object is so."""
        before = self.get(key)
        if before is not None:
            self._unlink(key, before)
        self._kinds.setdefault(key.resource, {})[key] = obj
        self._by_uid[find_str(obj, "metadata", "uid")] = key
        for owner in owner_uids(obj):
            self._dependents.setdefault(owner, set()).add(key)
        self._tell(Change(key, before, obj))

    def drop(self, key: ObjectKey) -> None:
        """The object is gone."""
        before = self._kinds.get(key.resource, {}).pop(key, None)
        if before is not None:
            self._unlink(key, before)
            self._tell(Change(key, before, None))

    def replace_kind(self, resource: ResourceType, objects: Iterable[JsonObject]) -> None:
        """These are all the objects of a kind."""
        listed = {key_of(resource, obj): obj for obj in objects}
        for key in [key for key in self._kinds.setdefault(resource, {}) if key not in listed]:
            self.drop(key)
        for key, obj in listed.items():
            if self.get(key) != obj:
                self.put(key, obj)

    def forget_kind(self, resource: ResourceType) -> None:
        """The kind is no longer served, and its objects are gone."""
        self.replace_kind(resource, ())
        self._kinds.pop(resource, None)

    def statistics(self) -> dict[str, int]:
        """How many kinds and objects there are."""
        return {"kinds": len(self._kinds), "objects": sum(map(len, self._kinds.values()))}

    def _unlink(self, key: ObjectKey, obj: JsonObject) -> None:
        uid = find_str(obj, "metadata", "uid")
        if self._by_uid.get(uid) == key:
            del self._by_uid[uid]
        for owner in owner_uids(obj):
            keys = self._dependents.get(owner, set())
            keys.discard(key)
            if not keys:
                self._dependents.pop(owner, None)

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)
