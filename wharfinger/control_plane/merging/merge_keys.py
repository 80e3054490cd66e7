"""The lists that strategic merge patches merge: the keys that identify their items, and the order of the result.

Items that a patch names get the order of the patch, or of its ``$setElementOrder``. All other items keep their old order, and
stay before the named items that they preceded. Error messages about lists use the wording and the type names of Go.

Source: the design proposal on order in strategic merge patches, and apimachinery's ``strategicpatch``.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.control_plane.wire.go_printing import map_text
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json

_MAP: Final = "map[string]interface {}"
_LIST: Final = "[]interface {}"


class PatchError(FormatError):
    """The patch contradicts itself or the types of the kind: an item without its merge key, an unknown directive, an
    impossible order."""


class PatchFormatError(PatchError):
    """A directive of the patch is malformed."""

    def __init__(self, directive: str) -> None:
        super().__init__(f"invalid patch format of {directive}")


class PatchContentError(PatchError):
    """The patch contains a list in a list."""


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a value that has to be a list. Raises PatchError."""
    if not isinstance(value, list):
        raise PatchError(f"expected a {_LIST}, but received a {go_type(value)}")
    return value


def _object(item: JsonValue) -> JsonObject:
    if not isinstance(item, dict):
        raise PatchError(f"expected a {_MAP}, but received a {go_type(item)}")
    return item


def as_objects(items: Sequence[JsonValue]) -> list[JsonObject]:
    """Return the items of a list that must contain only objects. Raises PatchError."""
    return [_object(item) for item in items]


def key_of(item: JsonObject, key: str) -> bytes:
    """Return the value of an item's merge key. Raises PatchError if the key is missing."""
    if key not in item:
        raise PatchError(f"map: {map_text(item)} does not contain declared merge key: {key}")
    return identity_of(item[key])


def item_identity(item: JsonValue, key: str) -> bytes:
    """Return the identity of an item of a merged list: its merge key, or for scalars the value itself."""
    return key_of(_object(item), key) if key else identity_of(item)


def identity_of(value: JsonValue) -> bytes:
    """Return bytes that are the same for values that are equal in Go, where ``1`` does not equal ``1.0``."""
    return type(value).__name__.encode() + canonical_json(value)


def are_objects(*lists: list[JsonValue]) -> bool:
    """Return whether the items of lists are objects.

    Raises PatchContentError for lists of lists, and PatchError if there are no items or their types differ.
    """
    kinds: list[type] = []
    for item in (item for items in lists for item in items):
        kinds.append(type(item))
        if kinds[0] is list:
            raise PatchContentError("lists of lists are not supported")
        if kinds[-1] is not kinds[0]:
            raise PatchError(f"list element types are not identical: {map_text([[*items] for items in lists])}")
    if not kinds:
        raise PatchError("no elements in any of the given slices")
    return kinds[0] is dict


def split(items: list[JsonValue], order: Sequence[JsonValue], key: str) -> tuple[list[JsonValue], list[JsonValue]]:
    """Divide ``items`` into two lists: the items that ``order`` contains, and all others. With ``key``, items count as equal if
    they have the same value under this key.
    """
    if not key:
        wanted = {identity_of(item) for item in order}
        return [item for item in items if identity_of(item) in wanted], [
            item for item in items if identity_of(item) not in wanted
        ]
    known: set[bytes] = set()
    odd = -1
    for index, item in enumerate(order):
        if not isinstance(item, dict):
            odd = index
            break
        if key in item:
            known.add(identity_of(item[key]))
    named: list[JsonValue] = []
    others: list[JsonValue] = []
    for item in as_objects(items):
        found = key_of(item, key) in known
        if not found and odd >= 0:
            raise PatchError(f"value for key {odd} is not a map")
        (named if found else others).append(item)
    return named, others


def ordered(
    named: list[JsonValue], others: list[JsonValue], order: Sequence[JsonValue], live: Sequence[JsonValue], key: str
) -> list[JsonValue]:
    """Return all items: the ``named`` ones in the order of ``order``, and each of the ``others`` before the named items that it
    precedes in ``live``.
    """
    wanted, standing = _places(order, key), _places(live, key)
    named = sorted(named, key=lambda item: wanted.get(item_identity(item, key), -1))
    others = sorted(others, key=lambda item: standing.get(item_identity(item, key), -1))
    places = [[standing.get(item_identity(item, key), -1) for item in items] for items in (others, named)]
    result: list[JsonValue] = []
    left = right = 0
    while left < len(others) and right < len(named):
        before = -1 < places[0][left] < places[1][right]
        result.append(others[left] if before else named[right])
        left, right = left + before, right + (not before)
    return result + others[left:] + named[right:]


def _places(items: Sequence[JsonValue], key: str) -> dict[bytes, int]:
    """Return the position of each item, by the item's identity. If an identity occurs several times, its first position
    counts.
    """
    found: dict[bytes, int] = {}
    for index, item in enumerate(items):
        found.setdefault(item_identity(item, key), index)
    return found


def go_type(value: JsonValue) -> str:
    """Return Go's name for the type of a value without a declared type."""
    if isinstance(value, bool | None):
        return "bool" if value is not None else "%!s(<nil>)"
    types: dict[type, str] = {dict: _MAP, list: _LIST, int: "int64", float: "float64"}
    return next((name for kind, name in types.items() if isinstance(value, kind)), "string")
