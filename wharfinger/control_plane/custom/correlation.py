"""The correlation of the values in the new state of an object with those in its old state (KEP-4008, ratcheting).

Members of objects correspond by name. Items of lists correspond by their keys, and only in lists of type ``map``. A value
without a counterpart is treated as new.
"""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.formats.json.value import JsonObject, JsonValue

_SCALARS: Final = bool | int | float | str


def equal(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true does not equal 1, and 1.0 does not equal 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(name in other and equal(item, other[name]) for name, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and one == other


def item_key(schema: JsonObject, item: JsonValue) -> tuple[tuple[str, JsonValue], ...] | None:
    """Return the key of an item of a ``map`` list: type and value of each key field.

    Return None if a key field is missing or not a scalar.
    """
    if not isinstance(item, dict):
        return None
    found = tuple((type(item.get(key)).__name__, item.get(key)) for key in schemas.strings(schema, schemas.LIST_KEYS))
    return found if found and all(isinstance(value, _SCALARS) for _, value in found) else None


def keyed_items(schema: JsonObject, items: JsonValue) -> dict[tuple[tuple[str, JsonValue], ...], JsonValue]:
    """Return the items of a list of the type ``map`` by their keys; {} for other lists. If several items have the same key,
    return only the first of them.
    """
    found: dict[tuple[tuple[str, JsonValue], ...], JsonValue] = {}
    if schemas.text(schema, "type") != "array" or schemas.list_type(schema) != "map" or not isinstance(items, list):
        return found
    for item in items:
        key = item_key(schema, item)
        if key is not None:
            found.setdefault(key, item)
    return found


@dataclass(slots=True)
class Pair:
    """A value with its old value."""

    new: JsonValue
    old: JsonValue
    schema: JsonObject
    _same: bool | None = None
    _children: dict[str | int, "Pair | None"] = field(default_factory=dict)
    _keyed: dict[tuple[tuple[str, JsonValue], ...], JsonValue] | None = None

    def member(self, name: str) -> "Pair | None":
        """Return a member's new and old value as a pair, or None if it has no old value."""
        if name not in self._children:
            self._children[name] = self._member(name)
        return self._children[name]

    def _member(self, name: str) -> "Pair | None":
        new, old = self.new, self.old
        if not (isinstance(new, dict) and isinstance(old, dict) and name in new and name in old):
            return None
        schema = schemas.child(schemas.child(self.schema, "properties") or {}, name) or schemas.additional(self.schema)
        return None if schema is None else Pair(new[name], old[name], schema)

    def item(self, index: int) -> "Pair | None":
        """Return an item of the new list and the item with the same key in the old list as a pair; None if the old list has no
        such item.
        """
        if index not in self._children:
            self._children[index] = self._item(index)
        return self._children[index]

    def _item(self, index: int) -> "Pair | None":
        schema = schemas.items(self.schema)
        if schema is None or not isinstance(self.new, list) or schemas.list_type(self.schema) != "map":
            return None
        if self._keyed is None:
            self._keyed = keyed_items(self.schema, self.old)
        key = item_key(self.schema, self.new[index])
        old = None if key is None else self._keyed.get(key)
        return None if old is None else Pair(self.new[index], old, schema)

    def same(self) -> bool:
        """Return whether nothing changed; the order of items in a ``map`` list does not count."""
        if self._same is None:
            self._same = self._compared()
        return self._same

    def _compared(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            pairs = [self.member(name) for name in new] if len(new) == len(old) else [None]
            return all(pair is not None and pair.same() for pair in pairs)
        if isinstance(new, list) and isinstance(old, list):
            if len(new) != len(old):
                return False
            if schemas.list_type(self.schema) != "map":
                return equal(new, old)
            items = [self.item(index) for index in range(len(new))]
            return all(pair is not None and pair.same() for pair in items)
        return equal(new, old)
