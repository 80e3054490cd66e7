"""Sets of fields, as field managers own them: a trie of path elements, with union, difference and intersection.

A path element is written as in FieldsV1: ``f:name`` for a member, ``k:{"name":"a"}`` for an item of a keyed list, ``v:"x"`` for
an item of a set, ``i:0`` for an index. Keys and values are canonical JSON, so two elements are equal if and only if their texts
are equal. A :class:`FieldSet` has ``members``, the elements that belong to the set themselves, and ``children``, the sets of the
paths below an element. An element may be in both, which FieldsV1 writes as ``"."``.

Invariants: sets are immutable, children are never empty, and every operation is set algebra over whole paths: removing ``.spec``
does not affect ``.spec.replicas``. Only the server knows which lists are keyed, and by which keys
(:mod:`wharfinger.control_plane.merging.typed_fields`). A set has no such schema: it depends only on
the kind of each path element.

Sources: KEP-555, and FieldsV1 in the API reference of ``meta/v1``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonError, JsonObject, JsonValue, canonical_json, decode_json, encode_json

FieldPath: TypeAlias = tuple[str, ...]
"""The path elements, starting at the root; the root itself is ()."""

_KINDS: Final = ("f:", "k:", "v:", "i:")
MAX_ELEMENT_BYTES: Final = 8 * 1024 * 1024
"""The largest size of a list key or a set item in a path. It is the largest size that an object can have after escaping."""
MOST_REMEMBERED: Final = 4096
"""The size in bytes up to which a FieldsV1 is cached."""


class FieldSetError(FormatError):
    """The value is not a valid FieldsV1."""


@dataclass(frozen=True, slots=True)
class FieldSet:
    """An immutable set of field paths."""

    members: frozenset[str] = frozenset()
    children: "Mapping[str, FieldSet]" = field(default_factory=dict)
    _written: JsonObject | None = field(default=None, init=False, repr=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.members) or bool(self.children)

    def __contains__(self, path: FieldPath) -> bool:
        here = self
        for element in path[:-1]:
            child = here.children.get(element)
            if child is None:
                return False
            here = child
        return path[-1] in here.members

    def below(self, element: str) -> "FieldSet":
        """Return the paths below one element, without the element itself."""
        return self.children.get(element, EMPTY)

    def union(self, other: "FieldSet") -> "FieldSet":
        """Return the paths in either set. The result is this object itself if the other set adds nothing."""
        if not other:
            return self
        if not self:
            return other
        children = dict(self.children)
        grown = False
        for element, child in other.children.items():
            mine = children.get(element)
            merged = child if mine is None else mine.union(child)
            if merged is not mine:
                children[element] = merged
                grown = True
        members = self.members | other.members
        return FieldSet(members, children) if grown or len(members) != len(self.members) else self

    def difference(self, other: "FieldSet") -> "FieldSet":
        """Return the paths in this set and not in the other. The result is this object itself if nothing is removed."""
        members, children = self.members - other.members, dict(self.children)
        changed = len(members) != len(self.members)
        for element in self.children.keys() & other.children.keys():
            child = self.children[element]
            left = child.difference(other.children[element])
            changed = changed or left is not child
            if left:
                children[element] = left
            else:
                del children[element]
        return FieldSet(members, children) if changed else self

    def intersection(self, other: "FieldSet") -> "FieldSet":
        """Return the paths in both sets."""
        children = {element: child.intersection(other.below(element)) for element, child in self.children.items()}
        return FieldSet(self.members & other.members, {element: child for element, child in children.items() if child})

    def paths(self) -> Iterator[FieldPath]:
        """Yield every path: first the elements of this set itself, then the paths below each element; both are sorted by kind
        and text.
        """
        for element in sorted(self.members, key=_order):
            yield (element,)
        for element in sorted(self.children, key=_order):
            for path in self.children[element].paths():
                yield (element, *path)

    def to_fields_v1(self) -> JsonObject:
        """Return the set as sorted FieldsV1. The result is cached, so it must not be altered."""
        if self._written is not None:
            return self._written
        written: JsonObject = {}
        for element in sorted(self.members | self.children.keys(), key=_order):
            inner = self.below(element).to_fields_v1()
            written[element] = {".": {}} | inner if inner and element in self.members else inner
        object.__setattr__(self, "_written", written)
        return written

    @staticmethod
    def from_fields_v1(fields: JsonValue) -> "FieldSet":
        """Read FieldsV1. Raises FieldSetError for anything else. A "." at the root is dropped, as in the API server."""
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
        """Return the set of these paths. The root () is left out, because no set contains it."""
        members: set[str] = set()
        below: dict[str, list[FieldPath]] = {}
        for path in paths:
            if len(path) == 1:
                members.add(path[0])
            elif path:
                below.setdefault(path[0], []).append(path[1:])
        return FieldSet(frozenset(members), {element: FieldSet.of_paths(inner) for element, inner in below.items()})


EMPTY: Final = FieldSet()


def read_fields_v1(written: JsonValue) -> FieldSet:
    """Read FieldsV1, with a cache, because most objects of a kind have the same owned fields. Raises FieldSetError."""
    encoded = encode_json(written)
    return _read_remembered(encoded) if len(encoded) <= MOST_REMEMBERED else FieldSet.from_fields_v1(written)


@lru_cache(maxsize=256)
def _read_remembered(encoded: bytes) -> FieldSet:
    return FieldSet.from_fields_v1(decode_json(encoded, max_bytes=MOST_REMEMBERED, what="fieldsV1"))


def same_value(left: JsonValue, right: JsonValue) -> bool:
    """Return whether JSON values are equal: unlike in Python, ``true`` is not 1; 1 and 1.0 are the same number."""
    if isinstance(left, str) or left is right:
        return left == right
    return left == right and _same_booleans(left, right)


def _same_booleans(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values that are equal for Python have booleans in the same places."""
    if left is right or type(left) is str:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        for name, value in left.items():  # noqa: SIM110 - a generator takes longer
            if type(value) is not str and not _same_booleans(value, right[name]):
                return False
        return True
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_same_booleans, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


def path_text(path: FieldPath) -> str:
    """Return a path as the API server prints it: ``.spec.containers[name="a"].image``, ``.metadata.finalizers[="x"]``."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, text = element[:2], element[2:]
    match kind:
        case "k:":
            keys = decode_json(text, max_bytes=MAX_ELEMENT_BYTES, what="key")
            parts = keys.items() if isinstance(keys, dict) else ()
            return "[" + ",".join(f"{name}={_value_text(value)}" for name, value in parts) + "]"
        case "v:":
            return f"[={text}]"
        case "i:":
            return f"[{text}]"
        case _:
            return f".{text}"


def _value_text(value: JsonValue) -> str:
    """Return a value in a key as the API server prints it; the members of an object are joined without separators or braces."""
    if isinstance(value, dict):
        return "".join(f"{name}={_value_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_value_text, value))}]"
    return canonical_json(value).decode()


def _checked(text: str) -> str:
    """Return the text of a path element, such as ``k:{"name":"web"}``, with its JSON in canonical form."""
    kind, rest = text[:2], text[2:]
    if kind not in _KINDS:
        raise FieldSetError(f"fieldsV1: {text!r} is not a path element")
    if kind == "f:":
        return text
    try:
        value = decode_json(rest, max_bytes=MAX_ELEMENT_BYTES, what="path element")
    except JsonError as error:
        raise FieldSetError(f"fieldsV1: {text!r} is not a path element: {error}") from error
    if kind == "k:" and not isinstance(value, dict):
        raise FieldSetError(f"fieldsV1: {text!r}: a key must be an object")
    if kind == "i:" and (isinstance(value, bool) or not isinstance(value, int)):
        raise FieldSetError(f"fieldsV1: {text!r}: an index must be an integer")
    return kind + canonical_json(value).decode()


def _order(element: str) -> tuple[int, str]:
    return _KINDS.index(element[:2]), element
