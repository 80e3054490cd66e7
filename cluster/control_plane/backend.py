"""What every verb works on: the storage, the kinds served, the time, and where identities come from.

All writes go through here, so that whoever must know of a change (watches, and the server's own upkeep of definitions)
is told of each, in order, in the same step.
"""

import random
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

from wharfinger.cluster.control_plane.catalog import Catalog, Served
from wharfinger.cluster.control_plane.storage import Change, Collection, Key, Storage
from wharfinger.formats.json_value import JsonObject

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
NAME_LIMIT: Final = 63


class Randomness(Protocol):
    """What identities are drawn from; a seeded ``random.Random`` makes a simulation repeatable."""

    def getrandbits(self, k: int, /) -> int: ...

    def choice(self, seq: str, /) -> str: ...


class Backend:
    """The state of a control plane and the only way to write to it. Everything here is synchronous."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        now: Callable[[], datetime],
        randomness: Randomness | None = None,
    ) -> None:
        self.storage = storage
        self.catalog = catalog
        self.now = now
        self._random = randomness or random.SystemRandom()
        self._observers: list[Callable[[Change], None]] = []

    def observe(self, observer: Callable[[Change], None]) -> None:
        """Have every change told to ``observer``, in order, before the verb that made it returns."""
        self._observers.append(observer)

    def new_uid(self) -> str:
        """A random UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def generate_name(self, prefix: str) -> str:
        """``generateName`` with its suffix, within 63 characters."""
        suffix = "".join(self._random.choice(_SUFFIX_ALPHABET) for _ in range(SUFFIX_LENGTH))
        return prefix[: NAME_LIMIT - SUFFIX_LENGTH] + suffix

    def key(self, served: Served, namespace: str, name: str) -> Key:
        """The key of an object of a kind."""
        return Key(served.kind.collection, namespace if served.kind.namespaced else "", name)

    def get(self, served: Served, namespace: str, name: str) -> JsonObject | None:
        """The stored object, or None; it must not be altered."""
        return self.storage.get(self.key(served, namespace, name))

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        """The stored objects of a kind, for strategies and admission (a ``ClusterView``)."""
        return self.storage.list(Collection(group, plural), namespace)

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        """One stored object, or None."""
        return self.storage.get(Key(Collection(group, plural), namespace, name))

    def put(self, key: Key, obj: JsonObject) -> JsonObject:
        """Store an object; returns it as stored."""
        return self._told(self.storage.put(key, obj))

    def delete(self, key: Key) -> JsonObject:
        """Remove an object; returns its last state."""
        return self._told(self.storage.delete(key))

    def _told(self, change: Change) -> JsonObject:
        for observer in self._observers:
            observer(change)
        return change.obj
