"""Sets of fields, as managers own them: a trie of path elements, and its algebra.

A path element is written as FieldsV1 writes it (``f:name`` a member, ``k:{"name":"a"}`` an item of a keyed list,
``v:"x"`` an item of a set, ``i:0`` an index), so two elements are equal exactly when their texts are: keys and values
are kept as canonical JSON. A :class:`FieldSet` holds the elements that are in the set themselves (``members``) and
the sets below elements (``children``); an element may be both, which FieldsV1 writes as ``"."``.

Invariants: sets are immutable, children are never empty, and every operation is set algebra over whole paths: taking
away ``.spec`` says nothing of ``.spec.replicas``.

Sources: KEP-555, and FieldsV1 in the API reference of ``meta/v1``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from wharfinger.cluster.control_plane.list_types import ListTypes, Relation
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, JsonObject, JsonValue, canonical_json, decode_json

FieldPath: TypeAlias = tuple[str, ...]
"""Path elements from the root on; the root itself is ()."""

_KINDS: Final = ("f:", "k:", "v:", "i:")
MAX_ELEMENT_BYTES: Final = 64_000


class FieldSetError(FormatError):
    """A FieldsV1 that is none."""


@dataclass(frozen=True, slots=True)
class FieldSet:
    """An immutable set of field paths."""

    members: frozenset[str] = frozenset()
    children: "Mapping[str, FieldSet]" = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.members) or bool(self.children)

    def __contains__(self, path: FieldPath) -> bool:
        here = self
        for element in path[:-1]:
            here = here.below(element)
        return path[-1] in here.members

    def below(self, element: str) -> "FieldSet":
        """The paths below one element, without it; empty where there are none."""
        return self.children.get(element, EMPTY)

    def union(self, other: "FieldSet") -> "FieldSet":
        """The paths in either."""
        children = dict(self.children)
        for element, child in other.children.items():
            children[element] = child.union(children[element]) if element in children else child
        return FieldSet(self.members | other.members, children)

    def difference(self, other: "FieldSet") -> "FieldSet":
        """The paths in this and not in the other."""
        children = {element: child.difference(other.below(element)) for element, child in self.children.items()}
        return FieldSet(self.members - other.members, {element: child for element, child in children.items() if child})

    def intersection(self, other: "FieldSet") -> "FieldSet":
        """The paths in both."""
        children = {element: child.intersection(other.below(element)) for element, child in self.children.items()}
        return FieldSet(self.members & other.members, {element: child for element, child in children.items() if child})

    def paths(self) -> Iterator[FieldPath]:
        """Every path, parents before what is below them, otherwise in order of their texts by kind."""
        for element in sorted(self.members, key=_order):
            yield (element,)
        for element in sorted(self.children, key=_order):
            for path in self.children[element].paths():
                yield (element, *path)

    def with_named_parents(self, lists: ListTypes) -> "FieldSet":
        """With every declared member that has paths below it, as if it had been set itself.

        A struct's members are not owned by themselves (only what is inside them is), so what to prune has to add them.
        """
        children: dict[str, FieldSet] = {}
        members = set(self.members)
        for element, child in self.children.items():
            below = lists.item
            if element.startswith("f:"):
                name = element[2:]
                below = lists.field(name)
                if name in lists.fields:
                    members.add(element)
            children[element] = child.with_named_parents(below)
        return FieldSet(frozenset(members), children)

    def to_fields_v1(self) -> JsonObject:
        """FieldsV1, sorted."""
        written: JsonObject = {}
        for element in sorted(self.members | self.children.keys(), key=_order):
            inner = self.below(element).to_fields_v1()
            written[element] = {".": {}} | inner if inner and element in self.members else inner
        return written

    @staticmethod
    def from_fields_v1(fields: JsonValue) -> "FieldSet":
        """Read FieldsV1; FieldSetError for anything else. A "." at the very top is dropped, as the API server does."""
        if not isinstance(fields, dict):
            raise FieldSetError("fieldsV1: expected an object")
        members: set[str] = set()
        children: dict[str, FieldSet] = {}
        for text, inner in fields.items():
            if text == ".":
                continue
            element = _checked(text)
            if not isinstance(inner, dict):
                raise FieldSetError(f"fieldsV1: expected an object at {text!r}")
            child = FieldSet.from_fields_v1(inner)
            if child:
                children[element] = child
            if not inner or "." in inner:
                members.add(element)
        return FieldSet(frozenset(members), children)

    @staticmethod
    def of_paths(paths: Iterable[FieldPath]) -> "FieldSet":
        """The set of these paths; the root () is in no set and left out."""
        members: set[str] = set()
        below: dict[str, list[FieldPath]] = {}
        for path in paths:
            if len(path) == 1:
                members.add(path[0])
            elif path:
                below.setdefault(path[0], []).append(path[1:])
        return FieldSet(frozenset(members), {element: FieldSet.of_paths(inner) for element, inner in below.items()})

    @staticmethod
    def of_object(obj: JsonValue, lists: ListTypes) -> "FieldSet":
        """What a manager owns that applies this object.

        Leaves, atomic values, items of lists, members of maps, and empty or null members; structs and lists are not
        owned.
        """
        found: list[FieldPath] = []
        _collect(obj, lists, (), found)
        return FieldSet.of_paths(found)


EMPTY: Final = FieldSet()


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
    """The path element of one item of a set or keyed list; keys an item lacks are defaulted, or left out."""
    if lists.relation is not Relation.KEYED or not isinstance(item, dict):
        return f"v:{canonical_json(item).decode()}"
    key = {name: item.get(name, lists.key_defaults.get(name)) for name in lists.keys}
    return f"k:{canonical_json({name: value for name, value in key.items() if value is not None}).decode()}"


class Comparison(NamedTuple):
    """What differs between two documents."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


class _Absent:
    """No value, as opposed to a null."""


_ABSENT: Final = _Absent()
_Maybe: TypeAlias = "JsonValue | _Absent"


class _Comparer:
    """Collects the differences of one pair of documents."""

    def __init__(self) -> None:
        self.added: list[FieldPath] = []
        self.modified: list[FieldPath] = []
        self.removed: list[FieldPath] = []

    def note(self, before: _Maybe, after: _Maybe, path: FieldPath) -> None:
        """One field as a whole."""
        if isinstance(before, _Absent):
            self.added.append(path)
        elif isinstance(after, _Absent):
            self.removed.append(path)
        elif not same_value(before, after):
            self.modified.append(path)

    def walk(self, before: _Maybe, after: _Maybe, lists: ListTypes, path: FieldPath) -> None:
        """What differs at and below ``path``."""
        lists = lists.of(_value(before) if isinstance(after, _Absent) else after)
        if lists.is_whole or _fits(before, lists) + _fits(after, lists) == 0 or _clash(before, after):
            self.note(before, after, path)
            return
        if lists.relation in {Relation.SET, Relation.KEYED}:
            self._walk_list(_items(before), _items(after), lists, path)
        else:
            self._walk_map(_members(before), _members(after), lists, path)
        if isinstance(before, _Absent) or isinstance(after, _Absent):
            self.note(before, after, path)

    def _walk_map(self, before: JsonObject, after: JsonObject, lists: ListTypes, path: FieldPath) -> None:
        for name in before.keys() | after.keys():
            left, right = before.get(name, _ABSENT), after.get(name, _ABSENT)
            self.walk(left, right, lists.field(name), (*path, f"f:{name}"))

    def _walk_list(self, before: list[JsonValue], after: list[JsonValue], lists: ListTypes, path: FieldPath) -> None:
        left, right = by_element(before, lists), by_element(after, lists)
        for element in left.keys() | right.keys():
            lefts, rights = left.get(element, []), right.get(element, [])
            here = (*path, element)
            if len(lefts) > 1 or len(rights) > 1:
                self.note(list(lefts) if lefts else _ABSENT, list(rights) if rights else _ABSENT, here)
            else:
                self.walk(lefts[0] if lefts else _ABSENT, rights[0] if rights else _ABSENT, lists.item, here)


def compare(before: JsonValue, after: JsonValue, lists: ListTypes) -> Comparison:
    """What an update from one document to the other adds, modifies and removes (structured-merge-diff's rules).

    An added struct, map or list counts itself beside what is in it; a null where a list or object comes to be does not.
    """
    comparer = _Comparer()
    comparer.walk(before, after, lists, ())
    return Comparison(
        FieldSet.of_paths(comparer.added), FieldSet.of_paths(comparer.modified), FieldSet.of_paths(comparer.removed)
    )


def by_element(items: list[JsonValue], lists: ListTypes) -> dict[str, list[JsonValue]]:
    """The items of a set or keyed list by their path elements, in order; stored lists may have duplicates."""
    found: dict[str, list[JsonValue]] = {}
    for item in items:
        found.setdefault(item_element(item, lists), []).append(item)
    return found


def same_value(left: JsonValue, right: JsonValue) -> bool:
    """Equality of JSON: unlike Python's, ``true`` is not 1; 1 and 1.0 are the same number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return left == right


def path_text(path: FieldPath) -> str:
    """A path as the API server prints it: ``.spec.containers[name="a"].image``, ``.metadata.finalizers[="x"]``."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, text = element[:2], element[2:]
    match kind:
        case "k:":
            keys = decode_json(text, max_bytes=MAX_ELEMENT_BYTES, what="key")
            parts = keys.items() if isinstance(keys, dict) else ()
            return "[" + ",".join(f"{name}={canonical_json(value).decode()}" for name, value in parts) + "]"
        case "v:":
            return f"[={text}]"
        case "i:":
            return f"[{text}]"
        case _:
            return f".{text}"


def _checked(text: str) -> str:
    """A path element with its JSON in canonical form."""
    kind, rest = text[:2], text[2:]
    if kind not in _KINDS:
        raise FieldSetError(f"fieldsV1: {text!r} is no path element")
    if kind == "f:":
        return text
    try:
        value = decode_json(rest, max_bytes=MAX_ELEMENT_BYTES, what="path element")
    except JsonError as error:
        raise FieldSetError(f"fieldsV1: {text!r} is no path element: {error}") from error
    if kind == "k:" and not isinstance(value, dict):
        raise FieldSetError(f"fieldsV1: {text!r}: a key must be an object")
    if kind == "i:" and (isinstance(value, bool) or not isinstance(value, int)):
        raise FieldSetError(f"fieldsV1: {text!r}: an index must be an integer")
    return kind + canonical_json(value).decode()


def _order(element: str) -> tuple[int, str]:
    return _KINDS.index(element[:2]), element


def _fits(value: _Maybe, lists: ListTypes) -> bool:
    """Whether there is something inside the value to walk into."""
    wanted = list if lists.relation in {Relation.SET, Relation.KEYED} else dict
    return isinstance(value, wanted) and bool(value)


def _clash(before: _Maybe, after: _Maybe) -> bool:
    """Whether the two are of forms that cannot be compared item by item (nulls fit everything)."""
    if isinstance(before, _Absent) or isinstance(after, _Absent) or before is None or after is None:
        return False
    return isinstance(before, dict) != isinstance(after, dict) or isinstance(before, list) != isinstance(after, list)


def _value(value: _Maybe) -> JsonValue:
    return None if isinstance(value, _Absent) else value


def _items(value: _Maybe) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _members(value: _Maybe) -> JsonObject:
    return value if isinstance(value, dict) else {}
