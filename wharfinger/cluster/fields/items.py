"""Resolution of a field set's paths in a document, without the schema that the set was made with.

The set itself shows which lists are keyed, and by which keys: an element such as ``k:{"name":"a"}`` means the item that has
these keys. The server may have filled in a key that the item leaves out (``protocol: TCP`` of a port); such a key counts as equal
unless another item matches better. No function here raises an error: the value of a path that leads nowhere is ABSENT.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonError, JsonObject, JsonValue, canonical_json, decode_json
from wharfinger.kube.field_sets import MAX_ELEMENT_BYTES, FieldPath, FieldSet


class Absent:
    """The absence of a value, as opposed to a null."""


ABSENT: Final = Absent()
Maybe: TypeAlias = "JsonValue | Absent"
_Key: TypeAlias = tuple[tuple[bool, JsonValue], ...]


def match_items(elements: Collection[str], items: Sequence[JsonValue]) -> dict[str, int]:
    """Return the index in ``items`` of the item that each of ``elements`` means. Elements are parts of a path in a field set,
    such as ``k:{"name":"a"}`` (an item by its keys), ``v:"a"`` (by its value) and ``i:0`` (by its index).

    Elements without a matching item are left out. At most one element with keys matches the same item.
    """
    keyed = [element for element in elements if element.startswith("k:")]
    groups = _by_present_keys(keyed, items)
    found: dict[str, int] = {}
    taken: set[int] = set()
    for names in sorted(
        groups, key=len, reverse=True
    ):  # items with the most keys first: defaults match only the remaining ones
        for element in keyed:
            keys = keys_of(element)
            if element in found or not names <= keys.keys():
                continue
            free = (at for at in groups[names].get(_key(keys, names), ()) if at not in taken)
            if (index := next(free, None)) is not None:
                found[element] = index
                taken.add(index)
    wanted = {element for element in elements if element.startswith("v:")}
    for at, item in enumerate(items if wanted else ()):
        text = f"v:{canonical_json(item).decode()}"
        if text in wanted:
            found.setdefault(text, at)
    for element in elements:
        if element.startswith("i:") and int(element[2:]) in range(len(items)):
            found[element] = int(element[2:])
    return found


@lru_cache(maxsize=4096)
def keys_of(element: str) -> JsonObject:
    """Return the keys of an element ``k:…``. The result is cached, so callers must not change it."""
    try:
        keys = decode_json(element[2:], max_bytes=MAX_ELEMENT_BYTES, what="key")
    except JsonError:
        return {}
    return keys if isinstance(keys, dict) else {}


def leaf_values(fields: FieldSet, value: Maybe) -> Iterator[tuple[FieldPath, Maybe]]:
    """Yield each leaf path of the set, with its value; the order is the same for equal sets."""
    children = sorted(fields.members | fields.children.keys())
    for element, inner in _steps(children, value):
        below = fields.children.get(element)
        if below is None:
            yield (element,), inner
        else:
            for path, leaf in leaf_values(below, inner):
                yield (element, *path), leaf


def value_at(path: FieldPath, value: Maybe) -> Maybe:
    """Return the value at the end of a path."""
    for element in path:
        value = next(inner for _, inner in _steps([element], value))
    return value


def _steps(elements: Sequence[str], value: Maybe) -> Iterator[tuple[str, Maybe]]:
    """Yield each path element with the part of ``value`` to which it leads; ABSENT if it leads nowhere."""
    indexes: Mapping[str, int] = match_items(elements, value) if isinstance(value, list) else {}
    for element in elements:
        if element.startswith("f:"):
            yield element, value.get(element[2:], ABSENT) if isinstance(value, dict) else ABSENT
        else:
            yield element, value[indexes[element]] if isinstance(value, list) and element in indexes else ABSENT


def _by_present_keys(
    keyed: Sequence[str], items: Sequence[JsonValue]
) -> dict[frozenset[str], dict[_Key, dict[int, None]]]:
    """Return the positions of items, grouped first by which of the named keys an item has, and then by the values of these
    keys.
    """
    groups: dict[frozenset[str], dict[_Key, dict[int, None]]] = {}
    for names in {frozenset(keys_of(element)) for element in keyed}:
        for at, item in enumerate(items):
            present = frozenset(names & item.keys()) if isinstance(item, dict) else frozenset()
            if isinstance(item, dict) and present:
                groups.setdefault(present, {}).setdefault(_key(item, present), {})[at] = None
    return groups


def _key(values: JsonObject, names: frozenset[str]) -> _Key:
    """Return comparable values of these keys: true is not 1, and a value that is not a scalar becomes its text."""
    return tuple((isinstance(values[name], bool), _scalar(values[name])) for name in sorted(names))


def _scalar(value: JsonValue) -> JsonValue:
    return canonical_json(value).decode() if isinstance(value, dict | list) else value


def segments_at(path: FieldPath, *documents: Maybe) -> tuple[str, ...]:
    """Return a path as segments of a JSON pointer, with the index of an item in the first document that has the item.

    For an item that no document has, the segment is the path element itself.
    """
    segments: list[str] = []
    places = list(documents)
    for element in path:
        if element.startswith("f:"):
            segments.append(element[2:])
        else:
            found = (match_items([element], place).get(element) for place in places if isinstance(place, list))
            segments.append(next((str(index) for index in found if index is not None), element))
        places = [value_at((element,), place) for place in places]
    return tuple(segments)
