"""One state of one stored object, as JSON bytes that are decoded when the object is read.

A tree of Python objects takes four times the memory of its JSON and costs time in the garbage collector; bytes avoid both, and
lists, watches and gets send them unchanged. Recently decoded records stay decoded within a limit (:class:`DecodedCache`),
because an object that was just written is usually read once more.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, cast, overload

import msgspec

from wharfinger.formats.json.value import JsonObject, as_object, encode_json

DECODED_BYTES: Final = 2 * 1024 * 1024
"""The limit on the total size of the objects that a storage keeps in decoded form, as bytes of their JSON."""


class Collection(msgspec.Struct, frozen=True, order=True, gc=False):
    """The group and plural name of a kind, which identify its stored objects in all versions."""

    group: str
    plural: str


class Key(msgspec.Struct, frozen=True, order=True, gc=False):
    """The key of one object; ``namespace`` is "" if the object is cluster-scoped. Its parts contain no slash."""

    collection: Collection
    namespace: str
    name: str

    @property
    def place(self) -> str:
        """Return ``namespace/name``, the sort key within a collection."""
        return f"{self.namespace}/{self.name}"


class DecodedCache:
    """The cache of decoded objects: the latest ones, up to ``limit`` bytes of JSON in total."""

    def __init__(self, limit: int = DECODED_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._records: deque[Record] = deque()

    def add(self, record: "Record") -> None:
        """Add a record. While the decoded objects exceed the limit, drop that of the oldest record. The newest one is always
        kept.
        """
        self._records.append(record)
        self._bytes += len(record.body)
        while self._bytes > self._limit and len(self._records) > 1:
            oldest = self._records.popleft()
            self._bytes -= len(oldest.body)
            oldest.drop_decoded()


class _Metadata(msgspec.Struct):
    labels: object = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata | None = None


_LABELS: Final = msgspec.json.Decoder(_Labelled)


class Record:
    """One state of an object. ``body`` is its JSON, which has ``revision`` as its resourceVersion."""

    __slots__ = ("_cache", "_obj", "body", "key", "revision")

    def __init__(
        self, key: Key, revision: int, body: bytes, cache: DecodedCache, obj: JsonObject | None = None
    ) -> None:
        self.key = key
        self.revision = revision
        self.body = body
        self._cache = cache
        self._obj = obj
        if obj is not None:
            cache.add(self)

    @property
    def obj(self) -> JsonObject:
        """Return the object, which stays decoded for a while; it must not be altered."""
        if self._obj is None:
            self._obj = self.decode()
            self._cache.add(self)
        return self._obj

    def decode(self) -> JsonObject:
        """Return the decoded object without caching it, for readers of a whole collection."""
        return cast("JsonObject", msgspec.json.decode(self.body)) if self._obj is None else self._obj

    def labels(self) -> JsonObject:
        """Return ``metadata.labels`` without decoding the rest."""
        if self._obj is None:
            metadata = _LABELS.decode(self.body).metadata
            found = None if metadata is None else metadata.labels
        else:
            whole = self._obj.get("metadata")
            found = whole.get("labels") if isinstance(whole, dict) else None
        return cast("JsonObject", found) if isinstance(found, dict) else {}

    def drop_decoded(self) -> None:
        """Forget the decoded object."""
        self._obj = None


_Slice: TypeAlias = "slice[int | None, int | None, int | None]"


class Objects(Sequence[JsonObject]):
    """The objects of records, each decoded when it is read. Equal to any sequence of equal objects."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> JsonObject: ...
    @overload
    def __getitem__(self, index: "_Slice") -> Sequence[JsonObject]: ...
    def __getitem__(self, index: "int | _Slice") -> JsonObject | Sequence[JsonObject]:
        if isinstance(index, slice):
            return Objects(self.records[index])
        return self.records[index].decode()

    def __iter__(self) -> Iterator[JsonObject]:
        return (record.decode() for record in self.records)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple((record.key, record.revision) for record in self.records))

    def __repr__(self) -> str:
        return f"Objects({list(self)})"


def stamped(obj: JsonObject, revision: int) -> JsonObject:
    """Return a copy with this revision as its resourceVersion."""
    metadata = as_object(obj.get("metadata", {}), "metadata")
    return {**obj, "metadata": {**metadata, "resourceVersion": str(revision)}}


def record_of(key: Key, obj: JsonObject, revision: int, cache: DecodedCache) -> Record:
    """Return the record of an object at a revision. Raises ShapeError if the object has no JSON form."""
    stored = stamped(obj, revision)
    return Record(key, revision, encode_json(stored), cache, stored)
