"""A storage as it was some revisions ago, to be read: for stale reads.

As far as the history goes: what is older than it is read as of its beginning. Nothing is written through it.
"""

from collections.abc import Sequence

from wharfinger.cluster.control_plane.storage import Change, Collection, Key, Storage, StorageError
from wharfinger.formats.json_value import JsonObject, find_str


class PastStorage:
    """What ``storage`` was at ``revision``, or at its oldest where that is later. A ``Storage`` that is only read."""

    def __init__(self, storage: Storage, revision: int) -> None:
        self._storage = storage
        self._revision = max(revision, storage.oldest)

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def oldest(self) -> int:
        return self._storage.oldest

    def get(self, key: Key) -> JsonObject | None:
        listed = self._storage.list(key.collection, key.namespace, at=self._revision)
        return next((obj for obj in listed if find_str(obj, "metadata", "name") == key.name), None)

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> tuple[JsonObject, ...]:
        then = self._revision if at is None else min(at, self._revision)
        return self._storage.list(collection, namespace, at=then)

    def put(self, key: Key, obj: JsonObject) -> Change:
        del obj
        raise StorageError(f"{key.collection.plural} {key.place} cannot be written into the past")

    def delete(self, key: Key) -> Change:
        raise StorageError(f"{key.collection.plural} {key.place} cannot be deleted from the past")

    def changes(self, collection: Collection, after: int) -> Sequence[Change]:
        return self._storage.changes(collection, after)

    def compact(self) -> None:
        """Nothing: the history is not this one's."""
