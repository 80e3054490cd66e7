"""The central store of objects, which are declared by files or rendered by nodes, with events for listeners.

Objects in it are never changed in place: to change an object, add another one with the same id. Adding an object that is equal
to the stored one (numbers compared by value) causes no event. A refire makes an object's node run again; the node's status is
set to Pending before listeners are called, so that they do not see the old status.

Listeners run inside the call that caused the event, in the order of their subscription, and must not block.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from wharfinger.formats.json.value import JsonObject, checksum
from wharfinger.offline.store.status import PENDING, Status
from wharfinger.runtime.fixpoint.model import Id


@dataclass(frozen=True, slots=True)
class Place:
    """The file and the line on which a document starts; ``file`` is relative to the tree's root."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Stored:
    """One object. ``producer`` is the node that rendered it; None if it was read from ``place`` or added by the caller."""

    id: Id
    object: JsonObject
    digest: str
    place: Place | None = None
    producer: Id | None = None


class Change(StrEnum):
    """The kind of an event."""

    ADDED = "added"
    """The object is new, or its content has changed."""
    REFIRED = "refired"
    REMOVED = "removed"
    STATUS = "status"


Listener: TypeAlias = Callable[[Change, Id], None]


class ObjectStore:
    """The objects and statuses of one run. Not thread-safe."""

    def __init__(self) -> None:
        self._objects: dict[Id, Stored] = {}
        self._statuses: dict[Id, Status] = {}
        self._listeners: list[Listener] = []

    def add(
        self, who: Id, obj: JsonObject, *, place: Place | None = None, producer: Id | None = None
    ) -> tuple[Stored, bool]:
        """Add an object; return the stored object, and whether it is new or has changed.

        An object that is added again without a place keeps its place: the same file still declares it.
        """
        before = self._objects.get(who)
        stored = Stored(who, obj, checksum(obj), place or (before.place if before else None), producer)
        self._objects[who] = stored
        changed = before is None or before.digest != stored.digest
        if changed:
            self._notify(Change.ADDED, who)
        return stored, changed

    def remove(self, who: Id) -> None:
        """Remove an object and its status. If it does not exist, there is no event."""
        self._statuses.pop(who, None)
        if self._objects.pop(who, None) is not None:
            self._notify(Change.REMOVED, who)

    def refire(self, who: Id) -> None:
        """Run the node of an object again; do nothing for an unknown object."""
        if who in self._objects:
            self._statuses[who] = PENDING
            self._notify(Change.REFIRED, who)

    def set_status(self, who: Id, status: Status) -> None:
        """Set the status of a node; if it is the same as before, there is no event."""
        if self._statuses.get(who) != status:
            self._statuses[who] = status
            self._notify(Change.STATUS, who)

    def get(self, who: Id) -> Stored | None:
        """Return an object; None if it does not exist."""
        return self._objects.get(who)

    def status(self, who: Id) -> Status:
        """Return the status of a node; Pending if it was never set."""
        return self._statuses.get(who, PENDING)

    def list(self, kind: str = "") -> tuple[Stored, ...]:
        """Return the objects of a kind, sorted by id; "" is all kinds."""
        return tuple(self._objects[who] for who in sorted(self._objects) if not kind or who.kind == kind)

    def statuses(self) -> Iterable[tuple[Id, Status]]:
        """Return the statuses of existing objects, sorted by id."""
        return tuple((who, self._statuses[who]) for who in sorted(self._statuses) if who in self._objects)

    @contextmanager
    def subscribed(self, listener: Listener) -> Iterator[None]:
        """Call ``listener`` with each event while the block runs."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def _notify(self, change: Change, who: Id) -> None:
        for listener in tuple(self._listeners):
            listener(change, who)
