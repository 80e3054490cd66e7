"""The storage of the control plane: objects by key, one revision for all of them, and the latest changes, for watches.

The storage is synchronous and independent of Kubernetes except for ``metadata.resourceVersion``, which it sets. Its invariants,
tested for every implementation by ``tests/control_plane/support/storage_contract.py``:

1. Each write gets the next revision; no two writes share a revision; a deletion is a write too.
2. An object that a caller has passed to the storage or has received from it is never altered afterwards, by either side.
3. A list at a revision is the list as it was at that time, until that revision is compacted.
4. The changes after a revision, applied in order to the list at that revision, give the current list.
5. Writes are permanent once :meth:`Storage.commit` has returned, even if the process dies. A write that is not committed may be
  undone, so no client sees the write before the commit: no answer is sent, and no watch sends changes later than ``committed``.

Only one process writes to a storage, and verbs never wait between reading and writing, so there is no compare-and-set here.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from wharfinger.control_plane.storage.record import Collection as Collection  # noqa: PLC0414 - offered from here
from wharfinger.control_plane.storage.record import Key as Key  # noqa: PLC0414
from wharfinger.control_plane.storage.record import Record as Record  # noqa: PLC0414
from wharfinger.formats.json.value import JsonObject


class ChangeType(StrEnum):
    """The type of a change; the values are those of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, frozen=True, gc=False):
    """One write: ``record`` is the object after the write, and ``before`` is the object before the write (None for a new object).

    After a deletion, ``record`` is the last state of the object, with the revision of the deletion.
    """

    type: ChangeType
    record: Record
    before: Record | None

    @property
    def revision(self) -> int:
        """The revision of this write."""
        return self.record.revision

    @property
    def key(self) -> Key:
        """Return the key of the written object."""
        return self.record.key

    @property
    def obj(self) -> JsonObject:
        """The object after the write."""
        return self.record.obj

    @property
    def previous(self) -> JsonObject | None:
        """The object before the write; None if the write created it."""
        return None if self.before is None else self.before.obj


class CompactedError(Exception):
    """The changes after the requested revision are no longer known; ``oldest`` is the oldest revision after which all
    changes are known."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is compacted; the oldest kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


class StorageError(Exception):
    """A write failed and had no effect, or the storage cannot be opened. The message contains the reason, and some messages also
    contain a remedy."""


class Storage(Protocol):
    """Objects under one revision counter. A storage in a file raises StorageError if a write fails."""

    @property
    def revision(self) -> int:
        """The revision of the latest write."""
        ...

    @property
    def committed(self) -> int:
        """The revision of the latest write that is committed."""
        ...

    @property
    def oldest(self) -> int:
        """The oldest revision at which objects can be listed, and from which changes can be watched."""
        ...

    def get(self, key: Key) -> JsonObject | None:
        """Return the object, or None."""
        ...

    def record(self, key: Key) -> Record | None:
        """Return the stored record of the object, or None."""
        ...

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> Sequence[JsonObject]:
        """Return the objects in the order of ``namespace/name``, now or at a revision; namespace "" means all namespaces.

        Raises CompactedError if ``at`` is older than :attr:`oldest`.
        """
        ...

    def records(
        self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None
    ) -> Iterator[Record]:
        """Yield the stored records from the place ``start`` (``namespace/name``) on.

        Nothing may be written while the records are read. Raises CompactedError if ``at`` is older than :attr:`oldest`.
        """
        ...

    def count(self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None) -> int:
        """Return the number of objects that :meth:`records` would yield."""
        ...

    def put(self, key: Key, obj: JsonObject) -> Change:
        """Store a copy of the object, with the next revision as its resourceVersion."""
        ...

    def delete(self, key: Key) -> Change:
        """Remove the object. Raises KeyError if it does not exist."""
        ...

    def changes(
        self, collection: Collection, after: int, *, limit: int | None = None, upto: int | None = None
    ) -> Sequence[Change]:
        """Return the changes of a collection after a revision, oldest first. Raises CompactedError.

        The result has at most ``limit`` changes, and none later than ``upto``.
        """
        ...

    def compact(self) -> None:
        """Remove all changes from the history: after that, only the current state can be listed and watched."""
        ...

    def commit(self) -> None:
        """Make all writes permanent. If that fails, every write since the last commit is undone.

        Raises CommitError, which holds the changes that undo the writes.
        """
        ...


class CommitError(StorageError):
    """Writes could not be committed, and were undone. ``undone`` has the changes that undo them, at most one for each object."""

    def __init__(self, message: str, undone: Sequence[Change] = ()) -> None:
        super().__init__(message)
        self.undone = undone
