"""The server's answer to an apply, in the few bytes that are needed to judge drift.

That answer is the baseline: the fields that were ours then, and their values as the server stored them after defaulting,
normalization and admission. The text of the chart cannot be the baseline: "1000m" is stored as "1", ``stringData`` not at all.
A few hundred bytes are kept of each object: the packed fields, a checksum of four bytes for each value, and a *mark*, which is
a checksum of our own entry in ``managedFields``. If an event leaves the mark unchanged, as changes of the status do, the event
is dismissed without reading the fields or the other checksums.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from wharfinger.cluster.fields.items import Absent, Maybe, leaf_values
from wharfinger.cluster.fields.owners import has_other_writers, own_entry, read_owners, text_at
from wharfinger.cluster.objects.desired import Identity
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, canonical_json, encode_json
from wharfinger.kube.field_sets import EMPTY, MOST_REMEMBERED, FieldPath, FieldSet, read_fields_v1

STRING_DATA: Final = "f:stringData"
"""The field that the author of a Secret may write instead of ``data``; the server converts it, and no manager owns the
result.
"""
_CRC_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Applied:
    """An object as the server returned it after its apply. ``mark`` is from :func:`mark_of`, for use in this process only."""

    uid: str
    resource_version: str
    mark: int
    fields: PackedJson
    """The fields that this daemon owned after the apply, as FieldsV1."""
    values: bytes
    """A checksum of each value, in the order of :func:`~wharfinger.cluster.fields.items.leaf_values`."""
    partial: bool = False
    """True if the apply left some wanted fields to other managers, which had taken them. Then the daemon owns fewer fields than
    it wants.
    """

    @property
    def owned(self) -> FieldSet:
        """Return the fields that this daemon owned after the apply."""
        return read_fields_v1(self.fields.value())

    def changed_values(self, live: JsonObject) -> list[FieldPath]:
        """Return the paths of applied fields that have another value in ``live``, whichever manager owns them now."""
        size = _CRC_BYTES
        return [
            path
            for at, (path, value) in enumerate(leaf_values(self.owned, live))
            if self.values[at * size : (at + 1) * size] != _checksum(value)
        ]

    def is_newer_than(self, live: JsonObject) -> bool:
        """Return whether ``live`` has an older resource version than this answer of the server. False if the versions are not
        numbers.
        """
        other = text_at(live, "metadata", "resourceVersion")
        known = self.resource_version.isdecimal() and other.isdecimal()
        return known and int(self.resource_version) > int(other)

    def is_marked(self, live: JsonObject, manager: str) -> bool:
        """Return whether the live object is the applied object (by its uid), and our entry in its managed fields is unchanged.
        Such an object is assumed not to have drifted.

        The check misses a value that changed while our entry stayed the same; a webhook can make such a change.
        """
        metadata = live.get("metadata")
        return isinstance(metadata, dict) and metadata.get("uid") == self.uid and self.mark == mark_of(live, manager)


def applied_of(answer: JsonObject, manager: str) -> Applied:
    """Return the baseline of an object, with which drift is judged later. It is made from the server's answer to the apply."""
    owners = read_owners(answer, manager)
    fields = owners.own if owners is not None else EMPTY
    return Applied(
        text_at(answer, "metadata", "uid"),
        text_at(answer, "metadata", "resourceVersion"),
        mark_of(answer, manager),
        _packed(encode_json(fields.to_fields_v1())),
        b"".join(_checksum(value) for _, value in leaf_values(fields, answer)),
    )


def _packed(fields: bytes) -> PackedJson:
    """Return packed fields. Objects with equal fields share one copy; most objects of a kind have equal fields."""
    return _shared(fields) if len(fields) <= MOST_REMEMBERED else PackedJson(fields)


@lru_cache(maxsize=256)
def _shared(fields: bytes) -> PackedJson:
    return PackedJson(fields)


def mark_of(live: JsonObject, manager: str) -> int:
    """Return a checksum of the manager's own entry in an object, 0 if the manager has no entry; costs a few microseconds."""
    entry = own_entry(live, manager)
    if entry is None:
        return 0
    fields = entry.get("fieldsV1")
    data = live.get("data") if isinstance(fields, dict) and STRING_DATA in fields else None
    return hash(encode_json([entry.get("time"), fields, data]))


class AppliedObjects:
    """The baselines of all applied objects, by identity. A baseline is made from the server's answer to the last apply of an
    object, and drift is found by comparison with it.
    """

    def __init__(self, manager: str) -> None:
        self.manager = manager
        self._applied: dict[Identity, Applied] = {}
        self._shared: set[Identity] = set()
        """The objects in which another manager has fields, according to the answer to the last apply or an event since then."""
        self._listener: Callable[[Identity], None] | None = None

    def listen(self, listener: Callable[[Identity], None]) -> None:
        """Call ``listener`` with the identity of every object that is recorded from now on; it replaces an earlier listener."""
        self._listener = listener

    def record(self, identity: Identity, answer: JsonObject, *, partial: bool = False) -> None:
        """Record the baseline of an object. ``answer`` is the server's answer to an apply, or an object that was read and did
        not differ from the wanted one.

        ``partial``: not all wanted fields were applied, so wanted fields that the object lacks still count as drift.
        """
        applied = applied_of(answer, self.manager)
        self._applied[identity] = replace(applied, partial=True) if partial else applied
        self._shared.discard(identity)
        self.noticed(identity, answer)
        if self._listener is not None:
            self._listener(identity)

    def noticed(self, identity: Identity, live: JsonObject) -> None:
        """Record whether another manager has fields of an object that the watch reported."""
        if identity in self._applied and has_other_writers(live, self.manager):
            self._shared.add(identity)

    def is_shared(self, identity: Identity) -> bool:
        """Return whether another manager has fields of the object other than its status, or had some since the last apply."""
        return identity in self._shared

    def get(self, identity: Identity) -> Applied | None:
        """Return the baseline of an object, which is its state as the server returned it after an apply. Return None if this
        process has neither applied nor read the object yet.
        """
        return self._applied.get(identity)

    def forget(self, identity: Identity) -> None:
        """Forget an object that is no longer ours."""
        self._applied.pop(identity, None)
        self._shared.discard(identity)

    def __len__(self) -> int:
        """Return the number of baselines."""
        return len(self._applied)


def _checksum(value: Maybe) -> bytes:
    text = b"" if isinstance(value, Absent) else canonical_json(value)
    return zlib.crc32(text).to_bytes(_CRC_BYTES)
