"""The canonical form of the values of state machines: JSON that can be read back to an equal value.

In this module, a record is an instance of a dataclass, of a msgspec struct or of a named tuple.

A text, a number, a boolean and None are written as they are. Every other value is a list that begins with its tag:
``["Enqueued", 1, "Load", …]`` is a record with its fields in order, ``["=Stage", "Loaded"]`` is a member of an enumeration, and
``["()", …]`` is a tuple. Sets and persistent maps (`HashTrieMap`) have no defined order, so their entries are sorted. So equal
values have equal bytes, in every process. If the codec does not know a StrEnum, such as the reasons of conditions, its members
are written as their texts, because a member of a StrEnum equals its text.

A record has another form, ``["#Enqueued", {…}]``, if its fields contain only numbers, booleans, texts, times and members of
enumerations, and if no text has to be masked. The library msgspec, which is written in C, writes this form faster
(`Codec.quick`). Both forms are read as the same value. To compare two forms, both are read and encoded again.

A `Codec` knows the classes of the records of one state machine by their names, and makes no other objects when it reads. All
texts except for names and checksums pass through a function that masks secrets. Names are not masked, because a masked name
would be another name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from operator import attrgetter
from types import ModuleType, UnionType
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from rpds import HashTrieMap, HashTrieSet

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.version_constraint import VersionConstraint, combine_constraints, parse_constraint
from wharfinger.queue.fifo import Fifo

Text: TypeAlias = Callable[[str], str]
"""A function that masks secrets in a text."""

Clean: TypeAlias = set[str | None]
"""The texts that are known to contain no secret. None is always a member, because a field for a text may be None."""

Encode: TypeAlias = Callable[[object, Text], JsonValue]
"""A function that returns the recorded form of a part of a value. It masks the texts in this part with the given function."""
_NOTHING: Final[Mapping[str, frozenset[str]]] = {}

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_LINES: Final = msgspec.json.Encoder()
_SCALARS: Final = frozenset((int, bool, float, type(None)))
_SIMPLE: Final = frozenset((*_SCALARS, str, datetime))
_PAIR: Final = ") and ("


class CanonicalError(FormatError):
    """A value is not in the canonical form, or belongs to another state machine."""


class _Constructor(Protocol):
    def __call__(self, *values: object) -> object: ...


class _Record:
    """One class of records: its tag, a function that returns all fields, and the positions of fields whose texts are kept without
    masking.

    Dozens of records are encoded for each operation of a package. For speed, one call reads all fields, and only fields that are
    not numbers, booleans or kept texts are encoded one by one.
    """

    __slots__ = ("get", "kept", "make", "names", "tag")

    def __init__(self, tag: str, kind: type, kept: frozenset[str], opaque: Collection[str]) -> None:
        names = _names_of(kind)
        self.tag = tag
        self.names = tuple(names)
        self.kept = tuple(None if name in opaque else name in kept for name in names)
        self.get: Callable[[object], tuple[JsonValue, ...]] = _getter(names)
        """A function that returns the fields of a record. Each field is a JSON value, or a value that has a canonical form."""
        self.make = cast("_Constructor", kind)


T = TypeVar("T")


def _names_of(kind: type) -> list[str]:
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    return [each.name for each in fields(kind)] if is_dataclass(kind) else list(cast("_Named", kind)._fields)


def _getter(names: list[str]) -> "Callable[[object], tuple[T, ...]]":
    if not names:
        return lambda _: ()
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda value: (only(value),)
    return cast("Callable[[object], tuple[T, ...]]", attrgetter(*names))


class _Named(Protocol):
    _fields: tuple[str, ...]


class _Quick(NamedTuple):
    """A class whose objects msgspec can write: the tag of the class, and functions that return the texts of an object that may
    contain secrets.
    """

    tag: str
    texts: Callable[[object], tuple[str | None, ...]]
    lists: Callable[[object], tuple[tuple[str, ...] | None, ...]] | None
    is_bare: bool
    """True if no text of this class can contain a secret."""

    def is_open(self, value: object, text: Text, clean: Clean) -> bool:
        """Return whether no text of a record has to be masked. Texts that are not in ``clean`` are checked with ``text``."""
        for one in self.texts(value):
            if one not in clean and one is not None and text(one) != one:
                return False
        lists = self.lists(value) if self.lists is not None else ()
        return all(each in clean or text(each) == each for many in lists for each in many or ())


_Kept: TypeAlias = Mapping[str, frozenset[str]]


def _quick_of(tag: str, kind: type, kept: _Kept) -> _Quick | None:
    """Return the description that `Codec.quick` needs to write records of a class with msgspec; None if msgspec cannot write
    them, because some fields of the class do not have the simplest types.
    """
    found = _texts_of(tag, kind, kept, "")
    if found is None:
        return None
    lists = [path for path, many in found if many]
    texts = _getter([path for path, many in found if not many])
    return _Quick(f"#{tag}", texts, _getter(lists) if lists else None, is_bare=not found)


def _texts_of(tag: str, kind: type, kept: _Kept, prefix: str) -> list[tuple[str, bool]] | None:
    """Return the paths of the texts that may contain secrets, each with True if the path leads to a tuple of texts.

    Return None if the class has fields that are not of the simplest types.
    """
    if not is_dataclass(kind):
        return None
    try:
        hints = get_type_hints(kind)
    except (TypeError, NameError):  # raised for the types of persistent maps, which are not simple types
        return None
    found: list[tuple[str, bool]] = []
    for each in fields(kind):
        hint, path = hints[each.name], f"{prefix}{each.name}"
        if isinstance(hint, type) and is_dataclass(hint):
            inner = _texts_of(hint.__name__, hint, kept, f"{path}.")
            if inner is None:
                return None
            found += inner
            continue
        kinds = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
        many = {one for one in kinds if get_origin(one) is tuple}
        if many and kinds - many - {type(None)}:
            return None
        members = {member for one in many for member in get_args(one)} - {Ellipsis}
        if not all(_is_simple(one) for one in (kinds - many) | members):
            return None
        if (str in kinds or str in members) and each.name not in kept.get(tag, ()):
            found.append((path, bool(many)))
    return found


def _is_simple(kind: object) -> bool:
    return kind in _SIMPLE or (isinstance(kind, type) and issubclass(kind, Enum))


def kinds_of(*modules: ModuleType) -> dict[str, type]:
    """Return the records and enumerations that modules define, by their names."""
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and _is_value(kind)
    }


def _is_value(kind: type) -> bool:
    if issubclass(kind, Enum | msgspec.Struct):
        return True
    return is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def as_bytes(value: JsonValue) -> bytes:
    """Return a value as JSON, with the keys of objects sorted."""
    return _ENCODER.encode(value)


def as_lines(values: Sequence[object]) -> bytes:
    """Return values as lines of JSON; the keys of objects are in any order. The values may contain all objects that msgspec can
    encode, such as structs and times.
    """
    return _LINES.encode_lines(values)


def normal(value: object) -> JsonValue:
    """Return the value as it would be read from a recording; parts of the given value may be objects that msgspec writes."""
    return cast("JsonValue", msgspec.json.decode(_ENCODER.encode(value)))


def unmasked(text: str) -> str:
    """Return the text unchanged."""
    return text


class Codec:
    """The codec of one state machine: it writes and reads the machine's records and enumerations in the canonical form.

    ``kept`` names the fields that are not masked, because their texts are names or checksums. ``opaque`` names the fields that
    only `other` can encode.
    """

    def __init__(
        self,
        kinds: Mapping[str, type],
        kept: Mapping[str, frozenset[str]],
        opaque: Mapping[str, Collection[str]] = _NOTHING,
    ) -> None:
        self._records: dict[type, _Record] = {}
        self._enums: dict[type, str] = {}
        self._by_tag: dict[str, _Record] = {}
        self._members: dict[str, dict[str, object]] = {}
        self._quick: dict[type, _Quick] = {}
        self._marked: set[type] = set()
        """The classes whose objects are written with `mark`. A subclass adds a class when it first marks an object of it."""
        for tag, kind in kinds.items():
            if issubclass(kind, Enum):
                self._enums[kind] = f"={tag}"
                self._members[f"={tag}"] = dict(kind.__members__)
            else:
                record = _Record(tag, kind, kept.get(tag, frozenset()), opaque.get(tag, ()))
                self._records[kind] = self._by_tag[tag] = record
                if tag not in opaque and (quick := _quick_of(tag, kind, kept)) is not None:
                    self._quick[kind] = quick

    @property
    def kinds(self) -> frozenset[type]:
        """The classes of records that the codec knows."""
        return frozenset(self._records)

    def encode(self, value: object, text: Text = unmasked) -> JsonValue:
        """Return the canonical form of a value. Raises CanonicalError for a value of an unknown class."""
        kind = type(value)
        record = self._records.get(kind)
        return self._other(kind, value, text, self.encode) if record is None else self._record(record, value, text)

    def _record(self, record: _Record, value: object, text: Text) -> JsonValue:
        """Return the canonical form of a record."""
        encoded: list[JsonValue] = [record.tag]
        append = encoded.append
        for found, kept in zip(record.get(value), record.kept, strict=True):
            if isinstance(found, str) and type(found) is str:
                append(found if kept else text(found))
            elif type(found) in _SCALARS:
                append(found)
            elif kept is None:
                append(self.other(found, text))
            else:
                append(self.encode(found, unmasked if kept else text))
        return encoded

    def _quick_record(self, record: _Record, value: object, text: Text, clean: Clean) -> object:
        """Return a form of a record that is fast to write. The parts of the record are in that form, too."""
        encoded: list[object] = [record.tag]
        append = encoded.append
        for found, kept in zip(record.get(value), record.kept, strict=True):
            kind = type(found)
            if kind is str:
                append(found if kept or found in clean else text(str(found)))
            elif kind in _SCALARS:
                append(found)
            elif kept is None:
                append(self.other(found, text))
            elif kind in self._marked:
                append(self.mark(found, text))
            else:
                append(self.quick(found, unmasked if kept else text, clean))
        return encoded

    def mark(self, value: object, text: Text) -> JsonValue:
        """Return the canonical form of a *marked* object, to which the state of a state machine only refers. The class `Codec`
        raises CanonicalError, because most state machines refer to no such objects. Subclasses for other state machines
        override this method.
        """
        return self.other(value, text)

    def _other(self, kind: type, value: object, text: Text, inner: Encode) -> JsonValue:
        """Return the canonical form of a value that is not a record."""
        if kind is str:
            return text(cast("str", value))
        if kind in _SCALARS:
            return cast("JsonValue", value)
        if kind in self._enums:
            return [self._enums[kind], cast("Enum", value)._name_]  # faster than `name`, which is a property
        if isinstance(value, StrEnum):
            return value.value
        return self.container(value, text, inner)

    def container(self, value: object, text: Text, inner: Encode) -> JsonValue:
        """Return the form of a value that is neither a record nor a member of an enumeration. Raises CanonicalError."""
        match value:
            case datetime():
                return ["@", value.isoformat()]
            case tuple():
                return ["()", *(inner(item, text) for item in value)]
            case Fifo():
                return ["fifo", *(inner(item, text) for item in value)]
            case VersionConstraint():
                return ["range", value.text]
            case frozenset():
                return ["{}", *_sorted(inner(item, text) for item in value)]
            case HashTrieSet():
                return ["set", *_sorted(inner(item, text) for item in value)]
            case HashTrieMap():
                return [
                    "map",
                    *_sorted([inner(key, text), inner(item, text)] for key, item in value.items()),
                ]
            case Mapping():
                return ["dict", *([inner(key, text), inner(item, text)] for key, item in value.items())]
            case _:
                return self.other(value, text)

    def other(self, value: object, _text: Text) -> JsonValue:
        """Raise CanonicalError, because values of this class have no form."""
        raise CanonicalError(
            f"{type(value).__name__}: objects of this type cannot be recorded, so a state machine must not contain one"
        )

    def quick(self, value: object, text: Text, clean: Clean) -> object:
        """Return a form of a value that is fast to write. It may contain records, which msgspec writes."""
        kind = type(value)
        quick = self._quick.get(kind)
        if quick is not None:
            tag, texts, lists, is_bare = quick
            if is_bare or (lists is None and clean.issuperset(texts(value))):
                return [tag, value]
            if quick.is_open(value, text, clean):
                return [tag, value]
        elif (member := self._enums.get(kind)) is not None:
            return [member, cast("Enum", value)._name_]  # faster than `name`, which is a property
        record = self._records.get(kind)
        if record is not None:
            return self._quick_record(record, value, text, clean)
        inner = cast("Encode", lambda one, text_of: self.quick(one, text_of, clean))
        return self._other(kind, value, text, inner)

    def is_simple(self, kind: type) -> bool:
        """Return whether the fields of a class of records contain only numbers, booleans, texts, times and members of
        enumerations.
        """
        return kind in self._quick

    def names(self) -> dict[str, tuple[str, ...]]:
        """Return the names that recordings contain: the fields of each class, and the members of each enumeration."""
        return {tag: record.names for tag, record in self._by_tag.items()} | {
            tag: tuple(members) for tag, members in self._members.items()
        }

    def plain(self, form: JsonValue) -> JsonValue:
        """Convert a value that was read in the fast form to the canonical form. Raises CanonicalError."""
        return self.encode(self.decode(form))

    def decode(self, value: JsonValue) -> object:
        """Return the value of a canonical form. Raises CanonicalError."""
        if not isinstance(value, list):
            if isinstance(value, dict):
                raise CanonicalError("expected a list with a tag, found an object")
            return value
        if not value or not isinstance(value[0], str):
            raise CanonicalError("expected a list with a tag, found one without")
        tag, rest = value[0], value[1:]
        try:
            if (record := self._by_tag.get(tag)) is not None:
                return record.make(*(self.decode(item) for item in rest))
            if tag[:1] == "#" and (record := self._by_tag.get(tag[1:])) is not None:
                if isinstance(rest[0], dict) and rest[0].keys() != set(record.names):  # convert ignores unknown names
                    raise ValueError(f"{', '.join(sorted(rest[0].keys() ^ set(record.names)))}")
                return msgspec.convert(rest[0], cast("type", record.make))
            if (members := self._members.get(tag)) is not None:
                return members[str(rest[0])]
            return self._decode_container(tag, rest)
        except (TypeError, ValueError, KeyError, IndexError, msgspec.ValidationError) as error:
            raise CanonicalError(
                f"{tag}: expected the fields that this version of Wharfinger writes, found others: {error}"
            ) from error

    def _decode_container(self, tag: str, rest: list[JsonValue]) -> object:
        match tag:
            case "@":
                return datetime.fromisoformat(str(rest[0]))
            case "range":
                return _constraint(str(rest[0]))
            case "()":
                return tuple(self.decode(item) for item in rest)
            case "fifo":
                return Fifo.of(self.decode(item) for item in rest)
            case "{}":
                return frozenset(self.decode(item) for item in rest)
            case "set":
                return HashTrieSet(self.decode(item) for item in rest)
            case "map":
                return HashTrieMap(self._pairs(rest))
            case "dict":
                return dict(self._pairs(rest))
            case _:
                raise CanonicalError(f"{tag[:80]!r}: expected a record of this state machine, found another record")

    def _pairs(self, rest: list[JsonValue]) -> list[tuple[object, object]]:
        pairs: list[tuple[object, object]] = []
        for pair in rest:
            if not isinstance(pair, list) or len(pair) != 2:
                raise CanonicalError("expected pairs of a key and a value, found something else")
            pairs.append((self.decode(pair[0]), self.decode(pair[1])))
        return pairs


def _sorted(values: Iterable[JsonValue]) -> list[JsonValue]:
    return sorted(values, key=as_bytes)


def _constraint(text: str) -> VersionConstraint:
    """Read a constraint, which may be a combination that `combine_constraints` has made."""
    if text.startswith("(") and text.endswith(")") and _PAIR in text:
        first, _, second = text[1:-1].rpartition(_PAIR)
        return combine_constraints(_constraint(first), parse_constraint(second))
    return parse_constraint(text)
