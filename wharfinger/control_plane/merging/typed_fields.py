"""The fields of a document, and the differences between two documents. Both depend on the types that the kind declares.

A :class:`~wharfinger.kube.field_sets.FieldSet` contains no values, and needs no schema. A schema is needed to compute a set from
a document, because only :class:`ListTypes` state whether a list is a set, is keyed, or changes as a whole.

Sources: KEP-555, and structured-merge-diff for the comparison.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.kube.field_sets import FieldPath, FieldSet, same_value


def fields_of(obj: JsonValue, lists: ListTypes) -> FieldSet:
    """Return the fields that a manager owns after it has applied this object.

    These are leaves, atomic values, items of lists, members of maps, and empty or null members. Structs and lists themselves
    are not owned.
    """
    found: list[FieldPath] = []
    _collect(obj, lists, (), found)
    return FieldSet.of_paths(found)


def with_named_parents(fields: FieldSet, lists: ListTypes) -> FieldSet:
    """Return the fields, and in addition the path of every declared member below which there are fields.

    A manager owns only the contents of a struct, so :func:`fields_of` leaves out the path of the struct itself. Pruning needs
    this path, to remove the struct as well.
    """
    children: dict[str, FieldSet] = {}
    members = set(fields.members)
    for element, child in fields.children.items():
        below = lists.item
        if element.startswith("f:"):
            name = element[2:]
            below = lists.field(name)
            if name in lists.fields:
                members.add(element)
        children[element] = with_named_parents(child, below)
    return FieldSet(frozenset(members), children)


def _collect(value: JsonValue, lists: ListTypes, path: FieldPath, found: list[FieldPath]) -> None:
    lists = lists.of(value)
    if lists.is_whole:
        found.append(path)
    elif lists.relation in {Relation.SET, Relation.KEYED}:
        for item in value if isinstance(value, list) else []:
            here = (*path, item_element(item, lists))
            found.append(here)
            _collect(item, lists.item, here, found)
    elif isinstance(value, dict):
        for name, inner in value.items():
            here = (*path, f"f:{name}")
            _collect(inner, lists.field(name), here, found)
            if inner is None or inner == {} or name not in lists.fields:
                found.append(here)
    elif value is not None:
        found.append(path)


def item_element(item: JsonValue, lists: ListTypes) -> str:
    """Return the path element of one item of a set or keyed list. A missing key gets its default; a missing key without a
    default is left out.

    Raises KeylessItemError if the item has none of the keys, and no key has a default.
    """
    if lists.relation is not Relation.KEYED or not isinstance(item, dict):
        return f"v:{canonical_json(item).decode()}"
    if not any(name in item or name in lists.key_defaults for name in lists.keys):
        raise KeylessItemError("an item of a keyed list has no key")
    named = [name for name in lists.keys if name in item or name in lists.key_defaults]
    key = {name: item[name] if name in item else lists.key_defaults[name] for name in named}
    return f"k:{canonical_json(key).decode()}"


class KeylessItemError(FormatError):
    """An item of a keyed list has no key, so the owners of fields cannot be determined in the object that contains the list."""


class Comparison(NamedTuple):
    """The differences between two documents, as sets of fields."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


class _Absent:
    """The absence of a value, as opposed to null."""


_ABSENT: Final = _Absent()
_Maybe: TypeAlias = "JsonValue | _Absent"


class _Comparer:
    """A collector of the differences between two documents."""

    def __init__(self) -> None:
        self.added: list[FieldPath] = []
        self.modified: list[FieldPath] = []
        self.removed: list[FieldPath] = []

    def record(self, before: _Maybe, after: _Maybe, path: FieldPath) -> None:
        """Record that a field was added, modified or removed, without comparing its members; do nothing if it is unchanged."""
        if isinstance(before, _Absent):
            self.added.append(path)
        elif isinstance(after, _Absent):
            self.removed.append(path)
        elif not same_value(before, after):
            self.modified.append(path)

    def walk(self, before: _Maybe, after: _Maybe, lists: ListTypes, path: FieldPath) -> None:
        """Collect the differences at and below ``path``."""
        lists = lists.of(_value(before) if isinstance(after, _Absent) else after)
        if lists.is_whole or _fits(before, lists) + _fits(after, lists) == 0 or _differ_in_form(before, after):
            self.record(before, after, path)
            return
        if lists.relation in {Relation.SET, Relation.KEYED}:
            self._walk_list(_items(before), _items(after), lists, path)
        else:
            self._walk_map(_members(before), _members(after), lists, path)
        if isinstance(before, _Absent) or isinstance(after, _Absent):
            self.record(before, after, path)

    def _walk_map(self, before: JsonObject, after: JsonObject, lists: ListTypes, path: FieldPath) -> None:
        for name in before.keys() | after.keys():
            left, right = before.get(name, _ABSENT), after.get(name, _ABSENT)
            if left is right:
                continue
            if type(left) is str and type(right) is str:
                if left != right:
                    self.modified.append((*path, f"f:{name}"))
                continue
            if not path and _are_same(left, right):
                continue  # a fast path for the top level, where most members are unchanged
            self.walk(left, right, lists.field(name), (*path, f"f:{name}"))

    def _walk_list(self, before: list[JsonValue], after: list[JsonValue], lists: ListTypes, path: FieldPath) -> None:
        left, right = by_element(before, lists), by_element(after, lists)
        for element in left.keys() | right.keys():
            lefts, rights = left.get(element, []), right.get(element, [])
            here = (*path, element)
            if len(lefts) > 1 and len(rights) > 1:
                self.record(list(lefts), list(rights), here)
            elif len(rights) > 1:  # managers lose the old content, because equal items cannot be distinguished
                if lefts:
                    self.walk(lefts[0], _ABSENT, lists.item, here)
                self.added.append(here)
            elif len(lefts) > 1:
                if rights:
                    self.walk(_ABSENT, rights[0], lists.item, here)
                self.removed.append(here)
            else:
                self.walk(lefts[0] if lefts else _ABSENT, rights[0] if rights else _ABSENT, lists.item, here)


class Changes(NamedTuple):
    """The differences between two documents, as sets of field paths."""

    added: Sequence[FieldPath]
    modified: Sequence[FieldPath]
    removed: Sequence[FieldPath]

    def compared(self) -> Comparison:
        """Return the differences as sets of fields."""
        return Comparison(
            FieldSet.of_paths(self.added), FieldSet.of_paths(self.modified), FieldSet.of_paths(self.removed)
        )


def changes(before: JsonValue, after: JsonValue, lists: ListTypes) -> Changes:
    """Return the paths that an update from one document to the other adds, modifies and removes (structured-merge-diff's rules).

    If a struct, map or list is added or removed, its own path is reported in addition to the paths of its content. If a null
    becomes a list or an object that is not empty, only the paths of the content are reported.
    """
    comparer = _Comparer()
    comparer.walk(before, after, lists, ())
    return Changes(comparer.added, comparer.modified, comparer.removed)


def compare(before: JsonValue, after: JsonValue, lists: ListTypes) -> Comparison:
    """Return, as sets of fields, the :func:`changes` from one document to the other."""
    return changes(before, after, lists).compared()


def by_element(items: list[JsonValue], lists: ListTypes) -> dict[str, list[JsonValue]]:
    """Return the items of a set or keyed list by their path elements, in order; stored lists may have duplicates."""
    found: dict[str, list[JsonValue]] = {}
    for item in items:
        found.setdefault(item_element(item, lists), []).append(item)
    return found


def _fits(value: _Maybe, lists: ListTypes) -> bool:
    """Return whether the value is a list or an object, as its type requires, and is not empty."""
    wanted = list if lists.relation in {Relation.SET, Relation.KEYED} else dict
    return isinstance(value, wanted) and bool(value)


def _differ_in_form(before: _Maybe, after: _Maybe) -> bool:
    """Return whether two values are of forms that cannot be compared item by item (null fits every form)."""
    if isinstance(before, _Absent) or isinstance(after, _Absent) or before is None or after is None:
        return False
    return isinstance(before, dict) != isinstance(after, dict) or isinstance(before, list) != isinstance(after, list)


def _are_same(left: _Maybe, right: _Maybe) -> bool:
    return not isinstance(left, _Absent) and not isinstance(right, _Absent) and same_value(left, right)


def _value(value: _Maybe) -> JsonValue:
    return None if isinstance(value, _Absent) else value


def _items(value: _Maybe) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _members(value: _Maybe) -> JsonObject:
    return value if isinstance(value, dict) else {}
