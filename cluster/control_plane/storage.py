"""What the control plane keeps: objects by key, one revision for all of them, and the changes since, for watches.

The storage is synchronous and knows nothing of Kubernetes beyond ``metadata.resourceVersion``, which it stamps. Its laws,
held for every implementation by ``tests/cluster/control_plane/storage_contract.py``:

1. Each write takes the next revision; no two writes share one; a deletion is a write too.
2. What was handed out never changes: objects given in and given out are not altered afterwards by either side.
3. A list at a revision is what a list was at that time, until that revision is compacted.
4. The changes after a revision, applied in order to the list at that revision, give the list of now.

Only one process writes to a storage, and verbs never wait between reading and writing, so there is no compare-and-set here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from wharfinger.formats.json_value import JsonObject


@dataclass(frozen=True, slots=True, order=True)
class Collection:
    """All objects of one kind, whatever the version: group and plural name."""

    group: str
    plural: str


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One object; ``namespace`` is "" for cluster-scoped ones. Neither name has a slash in it."""

    collection: Collection
    namespace: str
    name: str

    @property
    def place(self) -> str:
        """``namespace/name``: where the object stands in a list of its collection."""
        return f"{self.namespace}/{self.name}"


class ChangeType(StrEnum):
    """What happened; the values are those of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Change:
    """One write. ``obj`` is the object after it (of a deletion: the last state, at the deletion's revision)."""

    revision: int
    type: ChangeType
    key: Key
    obj: JsonObject
    previous: JsonObject | None


class CompactedError(Exception):
    """The changes after that revision are no longer known; ``oldest`` is the oldest revision that can be asked for."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is compacted; the oldest kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


class StorageError(Exception):
    """A write could not be made, and nothing of it was; the message says why and what to do."""


class Storage(Protocol):
    """Objects under one revision counter. Writes raise StorageError where what they are kept on fails."""

    @property
    def revision(self) -> int:
        """The revision of the latest write."""
        ...

    @property
    def oldest(self) -> int:
        """The oldest revision whose list and later changes are known."""
        ...

    def get(self, key: Key) -> JsonObject | None:
        """The object, or None."""
        ...

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> tuple[JsonObject, ...]:
        """Objects in the order of ``namespace/name``, now or at a revision; "" lists all namespaces.

        Raises CompactedError where ``at`` is older than :attr:`oldest`.
        """
        ...

    def put(self, key: Key, obj: JsonObject) -> Change:
        """Store the object under the next revision, which the stored copy bears as its resourceVersion."""
        ...

    def delete(self, key: Key) -> Change:
        """Remove the object. Raises KeyError where there is none."""
        ...

    def changes(self, collection: Collection, after: int) -> Sequence[Change]:
        """Changes of a collection later than a revision, oldest first. Raises CompactedError."""
        ...

    def compact(self) -> None:
        """Forget all changes: only the present can be listed and watched from then on."""
        ...
