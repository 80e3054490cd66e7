"""The event of a hook for a change of a watched object (spec hook-protocol §4.5). Pure.

Each object may have an :class:`Entry`, the last state that passed the filter. A change is an event only if the visible part of
the object changed: the ``filterResult``, or without a filter the whole object. So a status that is written every second causes no
events for a hook whose filter returns only the spec. The verb of an event follows from the entries, not from the watch: an
object that exists is Added if it has no entry, and an object that is gone is Deleted if it has one. Hence Added and Deleted of
one object always alternate, even if a filter failed or a broken watch missed changes.

No object is parsed here: objects arrive as text, and are kept as text.
"""

import hashlib
from dataclasses import dataclass
from typing import assert_never

from wharfinger.cluster.api.raw_object import RawObject
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.hooks.config.bindings import KubernetesBinding, WatchVerb
from wharfinger.kube.resource import ObjectKey


@dataclass(frozen=True, slots=True)
class Item:
    """The part of one object that the hook gets. A field that the binding leaves out is None."""

    object: PackedJson | None
    filter_result: PackedJson | None

    def fields(self) -> dict[str, PackedJson]:
        """Return the fields that are not None, under the names that hooks get (spec hook-protocol §2.1)."""
        found = {} if self.object is None else {"object": self.object}
        return found if self.filter_result is None else {**found, "filterResult": self.filter_result}


@dataclass(frozen=True, slots=True)
class Sighting:
    """An object as it was seen, before any filter: its text, and an identifier of this state.

    If the server gives no identifier, ``state`` is "", and the text is compared.
    """

    state: str
    text: bytes | PackedJson

    def plain(self) -> bytes:
        """Return the object's JSON."""
        return self.text.text() if isinstance(self.text, PackedJson) else self.text

    def packed(self) -> PackedJson:
        """Return the object's JSON, packed."""
        return self.text if isinstance(self.text, PackedJson) else PackedJson(self.text)

    def small(self) -> "Sighting":
        """Return this sighting with its text packed, which saves memory while the change waits to be processed."""
        return Sighting(self.state, self.packed())


def sighting_of(obj: RawObject) -> Sighting:
    """Return a sighting of an object. The state in the sighting is the object's uid and resourceVersion, if the object has
    both, because no two states of an object have the same pair.
    """
    state = f"{obj.uid} {obj.resource_version}" if obj.uid and obj.resource_version else ""
    return Sighting(state, obj.text)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object as hooks see it, with the checksum (SHA-256) of the content whose change is an event."""

    item: Item
    checksum: bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """The observation that the object exists. ``entry`` is its present form."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Gone:
    """The observation that the object is deleted. ``last`` is its last form; None if that form is unknown."""

    last: Entry | None


Observation = Seen | Gone


@dataclass(frozen=True, slots=True)
class MonitorEvent:
    """An event for a hook: the verb, the key of the object, and the part of the object that hooks see (:class:`Item`)."""

    verb: WatchVerb
    key: ObjectKey
    item: Item


def step(key: ObjectKey, entry: Entry | None, seen: Observation) -> tuple[Entry | None, MonitorEvent | None]:
    """Return the object's next entry (None if the object is gone), and the event (None if the change causes no event)."""
    match seen:
        case Seen(new):
            if entry is None:
                return new, MonitorEvent(WatchVerb.ADDED, key, new.item)
            if entry.checksum == new.checksum:
                return new, None
            return new, MonitorEvent(WatchVerb.MODIFIED, key, new.item)
        case Gone(last):
            if entry is None:
                return None, None
            return None, MonitorEvent(WatchVerb.DELETED, key, (last or entry).item)
        case _:
            assert_never(seen)


def entry_of(binding: KubernetesBinding, seen: Sighting, filtered: bytes | None) -> Entry:
    """Return the entry of an object; ``filtered`` is the filter's result (canonical JSON), None without a filter."""
    item = Item(
        seen.packed() if binding.keep_full_objects else None, None if filtered is None else PackedJson(filtered)
    )
    if filtered is not None:
        return Entry(item, hashlib.sha256(filtered).digest())
    return Entry(item, hashlib.sha256(seen.state.encode() if seen.state else seen.plain()).digest())


def place(binding: KubernetesBinding, key: ObjectKey) -> tuple[str, ...]:
    """Return the key by which items are sorted (spec §2.1): the namespace and the name. If the binding does not keep full
    objects, the key is one text, ``namespace/Kind/name``.
    """
    if binding.keep_full_objects:
        return key.namespace, key.name
    return (f"{key.namespace}/{key.resource.kind}/{key.name}",)
