"""What a change of a watched object means to a hook (spec hook-protocol §4.5). Pure.

For each object there is an :class:`Entry`, the last state that got through the filter, or none. A change is an event to the hook
only where what the hook can see of the object changed: the ``filterResult``, or without a filter the whole object. So a status
that is written every second is silent to a hook that filters the spec. What an event is called follows from the entries, not from
the watch: an object without an entry is Added, one with an entry that is gone is Deleted. Hence the events of one object always
alternate, whatever a filter refused or a broken watch left out.
"""

from dataclasses import dataclass
from typing import assert_never

from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, JsonValue, checksum
from wharfinger.hooks.config import KubernetesBinding, WatchVerb


@dataclass(frozen=True, slots=True)
class Entry:
    """An object as a hook may see it: its item in contract form, and the checksum of what counts."""

    item: JsonObject
    checksum: str


@dataclass(frozen=True, slots=True)
class Seen:
    """The object is there, in this form."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Gone:
    """The object is no more. ``last``: its last form; None where that is not known better than from its entry."""

    last: Entry | None


Observation = Seen | Gone


@dataclass(frozen=True, slots=True)
class MonitorEvent:
    """Something a hook is told: what happened, and the object's item (``object``, ``filterResult``) at that time."""

    verb: WatchVerb
    item: JsonObject


def step(entry: Entry | None, seen: Observation) -> tuple[Entry | None, MonitorEvent | None]:
    """The object's next entry, and the event where there is one."""
    match seen:
        case Seen(new):
            if entry is None:
                return new, MonitorEvent(WatchVerb.ADDED, new.item)
            if entry.checksum == new.checksum:
                return new, None
            return new, MonitorEvent(WatchVerb.MODIFIED, new.item)
        case Gone(last):
            if entry is None:
                return None, None
            return None, MonitorEvent(WatchVerb.DELETED, (last or entry).item)
        case _:
            assert_never(seen)


def entry_of(binding: KubernetesBinding, obj: JsonObject, filtered: JsonValue) -> Entry:
    """The entry of an object; ``filtered`` is what the binding's filter made of it, ignored where it has none.

    Raises ShapeError where either has no checksum (it is nested too deep).
    """
    item: JsonObject = {"object": obj} if binding.keep_full_objects else {}
    if binding.jq_filter:
        item["filterResult"] = filtered
        return Entry(item, checksum(filtered))
    return Entry(item, checksum(obj))


def place(binding: KubernetesBinding, key: ObjectKey) -> tuple[str, ...]:
    """What items are sorted by (§2.1): namespace and name, or ``ns/Kind/name`` as one word where objects are not kept."""
    if binding.keep_full_objects:
        return key.namespace, key.name
    return (f"{key.namespace}/{key.resource.kind}/{key.name}",)
