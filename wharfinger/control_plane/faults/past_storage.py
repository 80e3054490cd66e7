"""A read-only view of a storage at an earlier revision, for stale reads."""

from collections.abc import Iterator, Sequence

from wharfinger.control_plane.storage.interface import Change, Collection, Key, Record, Storage, StorageError
from wharfinger.formats.json.value import JsonObject


class PastStorage:
    """A read-only ``Storage`` that shows another storage at ``revision``, or at its oldest known revision if that is later."""

    def __init__(self, storage: Storage, revision: int) -> None:
        self._storage = storage
        self._revision = max(revision, storage.oldest)

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def oldest(self) -> int:
        return self._storage.oldest

    @property
    def committed(self) -> int:
        return min(self._revision, self._storage.committed)

    def get(self, key: Key) -> JsonObject | None:
        record = self.record(key)
        return None if record is None else record.obj

    def record(self, key: Key) -> Record | None:
        listed = self._storage.records(key.collection, key.namespace, at=self._revision)
        return next((record for record in listed if record.key.name == key.name), None)

    def list(self, collection: Collection, namespace: str = "", *, at: int | None = None) -> Sequence[JsonObject]:
        return self._storage.list(collection, namespace, at=self._then(at))

    def records(
        self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None
    ) -> Iterator[Record]:
        return self._storage.records(collection, namespace, start=start, at=self._then(at))

    def count(self, collection: Collection, namespace: str = "", *, start: str = "", at: int | None = None) -> int:
        return self._storage.count(collection, namespace, start=start, at=self._then(at))

    def _then(self, at: int | None) -> int:
        return self._revision if at is None else min(at, self._revision)

    def put(self, key: Key, obj: JsonObject) -> Change:
        del obj
        raise StorageError(
            f"{key.collection.plural} {key.place} cannot be written: this view of an old revision is read-only"
        )

    def delete(self, key: Key) -> Change:
        raise StorageError(
            f"{key.collection.plural} {key.place} cannot be deleted: this view of an old revision is read-only"
        )

    def changes(
        self, collection: Collection, after: int, *, limit: int | None = None, upto: int | None = None
    ) -> Sequence[Change]:
        return self._storage.changes(collection, after, limit=limit, upto=upto)

    def compact(self) -> None:
        """Do nothing: the history belongs to another storage."""

    def commit(self) -> None:
        """Do nothing: nothing was written."""
