"""Removal of other managers' fields from the object that we apply, if a rule leaves these fields to them.

An apply that contains a field takes the field from the manager that set it, or conflicts. If the apply leaves the field out
while both managers own it, only our ownership ends, and the other manager keeps the field. So exactly the leaf fields that
other managers own are left out; a field that no other manager set stays ours.
"""

from collections.abc import Sequence

from wharfinger.cluster.fields.items import ABSENT, Absent, Maybe, keys_of, match_items
from wharfinger.cluster.objects.drift_policy import ANY
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.field_sets import FieldSet


def without_fields(obj: JsonObject, segments: Sequence[str], others: FieldSet) -> JsonObject:
    """Return a copy of the object without the fields of ``others`` that lie at or below the JSON pointer ``segments``. The
    segment ``*`` matches all members and items.
    """
    left = _left(obj, segments, others)
    return left if isinstance(left, dict) else {}


def _left(value: JsonValue, segments: Sequence[str], others: FieldSet) -> Maybe:
    """Return the remaining part of a value; ABSENT if nothing is left."""
    if isinstance(value, dict):
        left: JsonValue = _members_left(value, segments, others)
    elif isinstance(value, list):
        left = _items_left(value, segments, others)
    else:
        return value
    return left if left or not value else ABSENT


def _members_left(value: JsonObject, segments: Sequence[str], others: FieldSet) -> JsonObject:
    left: JsonObject = {}
    for name, inner in value.items():
        kept = inner if _passes(segments, name) else _kept(inner, f"f:{name}", segments, others)
        if not isinstance(kept, Absent):
            left[name] = kept
    return left


def _items_left(value: list[JsonValue], segments: Sequence[str], others: FieldSet) -> list[JsonValue]:
    elements = others.members | others.children.keys()
    named = {index: element for element, index in match_items(sorted(elements), value).items()}
    left: list[JsonValue] = []
    for index, item in enumerate(value):
        element = named.get(index, "")
        if not element or _passes(segments, str(index)):
            left.append(item)
            continue
        kept = _kept(item, element, segments, others)
        if element.startswith("k:") and isinstance(item, dict) and not (element in others.members and kept is ABSENT):
            kept = _with_keys(kept, item, element)
        if not isinstance(kept, Absent):
            left.append(kept)
    return left


def _kept(inner: JsonValue, element: str, segments: Sequence[str], others: FieldSet) -> Maybe:
    """Return the remaining part of a member or item with the path element ``element``; ``others`` as in `without_fields`."""
    rest, below = segments[1:], others.below(element)
    if not rest and element in others.members and not below:
        return ABSENT  # others own all of it
    return _left(inner, rest, below) if below else inner


def _with_keys(kept: Maybe, item: JsonObject, element: str) -> JsonObject:
    """Return the remaining part of an item together with its keys, which distinguish it from the other items."""
    keys = keys_of(element)
    left = kept if isinstance(kept, dict) else {}
    return {name: left.get(name, value) for name, value in item.items() if name in left or name in keys}


def _passes(segments: Sequence[str], name: str) -> bool:
    """Return whether a pointer with these segments does not concern the member or item ``name``: it selects neither ``name``
    nor anything below it. An empty pointer concerns everything.
    """
    return bool(segments) and segments[0] not in {ANY, name}
