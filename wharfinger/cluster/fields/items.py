"""Where the paths of a field set lead in a document, without the schema that the set was made with.

A set says of itself which lists are keyed, and by what: its elements are ``k:{"name":"a"}``. So the item an element means is the
one that has these keys; a key that the item leaves out may be one that the server filled in (``protocol: TCP`` of a port), and
is taken to fit where no other item fits better. Nothing here fails: what leads nowhere is absent.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonError, JsonObject, JsonValue, canonical_json, decode_json
from wharfinger.kube.field_sets import MAX_ELEMENT_BYTES, FieldPath, FieldSet


class Absent:
    """No value, as opposed to a null."""


ABSENT: Final = Absent()
Maybe: TypeAlias = "JsonValue | Absent"
_Key: TypeAlias = tuple[tuple[bool, JsonValue], ...]


def match_items(elements: Collection[str], items: Sequence[JsonValue]) -> dict[str, int]:
    """The index of the item that each element means; elements that no item fits are left out. Each item is taken once."""
    keyed = [element for element in elements if element.startswith("k:")]
    groups = _by_present_keys(keyed, items)
    found: dict[str, int] = {}
    taken: set[int] = set()
    for names in sorted(
        groups, key=len, reverse=True
    ):  # items with the most keys first: a default fits only what is left
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
    """The keys of an element ``k:…``; not to be changed."""
    try:
        keys = decode_json(element[2:], max_bytes=MAX_ELEMENT_BYTES, what="key")
    except JsonError:
        return {}
    return keys if isinstance(keys, dict) else {}


def leaf_values(fields: FieldSet, value: Maybe) -> Iterator[tuple[FieldPath, Maybe]]:
    """Every path of the set with nothing of it below, and the value there; in the same order for equal sets."""
    children = sorted(fields.members | fields.children.keys())
    for element, inner in _steps(children, value):
        below = fields.children.get(element)
        if below is None:
            yield (element,), inner
        else:
            for path, leaf in leaf_values(below, inner):
                yield (element, *path), leaf


def value_at(path: FieldPath, value: Maybe) -> Maybe:
    """The value at the end of a path."""
    for element in path:
        value = next(inner for _, inner in _steps([element], value))
    return value


def _steps(elements: Sequence[str], value: Maybe) -> Iterator[tuple[str, Maybe]]:
    """Each element with the value that it leads to."""
    indexes: Mapping[str, int] = match_items(elements, value) if isinstance(value, list) else {}
    for element in elements:
        if element.startswith("f:"):
            yield element, value.get(element[2:], ABSENT) if isinstance(value, dict) else ABSENT
        else:
            yield element, value[indexes[element]] if isinstance(value, list) and element in indexes else ABSENT


def _by_present_keys(
    keyed: Sequence[str], items: Sequence[JsonValue]
) -> dict[frozenset[str], dict[_Key, dict[int, None]]]:
    """Items by which of the keys they have, and by these; an item may be in several, since elements may lack keys, too."""
    groups: dict[frozenset[str], dict[_Key, dict[int, None]]] = {}
    for names in {frozenset(keys_of(element)) for element in keyed}:
        for at, item in enumerate(items):
            present = frozenset(names & item.keys()) if isinstance(item, dict) else frozenset()
            if isinstance(item, dict) and present:
                groups.setdefault(present, {}).setdefault(_key(item, present), {})[at] = None
    return groups


def _key(values: JsonObject, names: frozenset[str]) -> _Key:
    """The values of these keys, to be compared: true is not 1, and what is no scalar is its text."""
    return tuple((isinstance(values[name], bool), _scalar(values[name])) for name in sorted(names))


def _scalar(value: JsonValue) -> JsonValue:
    return canonical_json(value).decode() if isinstance(value, dict | list) else value


def segments_at(path: FieldPath, *documents: Maybe) -> tuple[str, ...]:
    """A path as the segments of a JSON pointer: an item's index is that in the first document that has it.

    An item that none of them has stays as the set names it.
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


def pointer_text(segments: Sequence[str]) -> str:
    """The RFC 6901 pointer of segments: ``("a/b", "0")`` → ``/a~1b/0``."""
    return "".join(f"/{segment.replace('~', '~0').replace('/', '~1')}" for segment in segments)
