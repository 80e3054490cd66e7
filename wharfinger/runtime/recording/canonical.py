"""The canonical form of values of machines: JSON that can be read back to an equal value.

A text, number, truth or None is itself. Every other value is a list that begins with its tag: ``["Enqueued", 1, "Load", …]`` is a
record with its fields in order, ``["=Stage", "Loaded"]`` a member of an enumeration, ``["()", …]`` a tuple. Persistent maps and
sets, whose order is not defined, are sorted. So equal values have equal bytes, in every process. For the same reason a word of
an enumeration that the machine takes for a text, such as the reason of a condition, is that text.

A record whose fields are all numbers, truths, texts, times and members of enumerations is written as ``["#Enqueued", {…}]``
instead if none of its texts has to be masked, because a library written in C makes that form (`Codec.quick`). Reading it gives
the same value; two forms are compared after both were read and encoded again.

A `Codec` knows the records of one machine by their names, and makes no other objects when it reads. Texts pass through a function
that masks secrets, except in fields that hold names and checksums, because a masked name would be a different one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar, cast, get_args, get_type_hints

import msgspec
from rpds import HashTrieMap, HashTrieSet

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.version_constraint import VersionConstraint, both, parse_constraint
from wharfinger.queue.fifo import Fifo

Text: TypeAlias = Callable[[str], str]
"""A function that masks secrets in a text."""

_Encode: TypeAlias = Callable[[object, Text], JsonValue]

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_SCALARS: Final = frozenset((int, bool, float, type(None)))
_SIMPLE: Final = frozenset((*_SCALARS, str, datetime))
_PAIR: Final = ") and ("


class CanonicalError(FormatError):
    """A value is not in the canonical form, or not of the machine that it should belong to."""


class _Constructor(Protocol):
    def __call__(self, *values: object) -> object: ...


class _Record:
    """One class of records: its tag, a function that returns all fields, and the marks of those whose texts are kept.

    Records are encoded some dozens of times for each operation of a package, so all fields are taken at once, and only those that
    are not numbers, truths or kept texts are looked at.
    """

    __slots__ = ("get", "kept", "make", "names", "tag")

    def __init__(self, tag: str, kind: type, kept: frozenset[str]) -> None:
        names = [each.name for each in fields(kind)] if is_dataclass(kind) else list(cast("_Named", kind)._fields)
        self.tag = tag
        self.names = tuple(names)
        self.kept = tuple(name in kept for name in names)
        self.get: Callable[[object], tuple[object, ...]] = _getter(names)
        self.make = cast("_Constructor", kind)


T = TypeVar("T")


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
    """A class of records that the library can write: the tag, and a function that returns the texts that may need a mask."""

    tag: str
    texts: Callable[[object], tuple[str | None, ...]]


def _texts_of(kind: type, record: _Record) -> list[str] | None:
    """Return the names of the fields with texts that may need a mask; None if other fields are not of the simplest types."""
    if not is_dataclass(kind):
        return None
    try:
        hints = get_type_hints(kind)
    except TypeError:  # of persistent maps, which are not simple either
        return None
    names = []
    for name, kept in zip(record.names, record.kept, strict=True):
        kinds = set(get_args(hints[name])) or {hints[name]}
        if not all(each in _SIMPLE or (isinstance(each, type) and issubclass(each, Enum)) for each in kinds):
            return None
        if str in kinds and not kept:
            names.append(name)
    return names


def as_bytes(value: JsonValue) -> bytes:
    """Return a value as JSON, with the keys of objects sorted."""
    return _ENCODER.encode(value)


def unmasked(text: str) -> str:
    """Return the text unchanged."""
    return text


class Codec:
    """The canonical form of the records and enumerations of one machine, by their tags.

    ``kept`` are the fields whose texts are names or checksums: they are not masked.
    """

    def __init__(self, kinds: Mapping[str, type], kept: Mapping[str, frozenset[str]]) -> None:
        self._records: dict[type, _Record] = {}
        self._enums: dict[type, str] = {}
        self._by_tag: dict[str, _Record] = {}
        self._members: dict[str, dict[str, object]] = {}
        self._quick: dict[type, _Quick] = {}
        for tag, kind in kinds.items():
            if issubclass(kind, Enum):
                self._enums[kind] = f"={tag}"
                self._members[f"={tag}"] = dict(kind.__members__)
            else:
                record = _Record(tag, kind, kept.get(tag, frozenset()))
                self._records[kind] = self._by_tag[tag] = record
                if (texts := _texts_of(kind, record)) is not None:
                    self._quick[kind] = _Quick(f"#{tag}", _getter(texts))

    def encode(self, value: object, text: Text = unmasked) -> JsonValue:
        """Return the canonical form of a value. Raises CanonicalError for a value of an unknown class."""
        return self._encoded(value, text, self.encode)

    def _encoded(self, value: object, text: Text, inner: _Encode) -> JsonValue:
        kind = type(value)
        if kind is str:
            return text(cast("str", value))
        if kind in _SCALARS:
            return cast("JsonValue", value)
        record = self._records.get(kind)
        if record is not None:
            encoded: list[JsonValue] = [record.tag]
            append, enums = encoded.append, self._enums
            for found, kept in zip(record.get(value), record.kept, strict=True):
                of_field = type(found)
                if isinstance(found, str) and of_field is str:
                    append(found if kept else text(found))
                elif of_field in _SCALARS:
                    append(cast("JsonValue", found))
                elif of_field is datetime:
                    append(["@", cast("datetime", found).isoformat()])
                elif of_field in enums:
                    append([enums[of_field], cast("Enum", found)._name_])  # `name` costs a call
                else:
                    append(inner(found, unmasked if kept else text))
            return encoded
        if kind in self._enums:
            return [self._enums[kind], cast("Enum", value)._name_]
        if isinstance(value, StrEnum):
            return value.value
        return self._container(value, text, inner)

    def _container(self, value: object, text: Text, inner: _Encode) -> JsonValue:
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
                raise CanonicalError(f"{type(value).__name__}: expected a value of a machine; it cannot be recorded")

    def quick(self, value: object, text: Text) -> JsonValue:
        """Return a form of a value that is fast to write; parts of it are the records themselves."""
        quick = self._quick.get(type(value))
        if quick is not None and all(each is None or text(each) is each for each in quick.texts(value)):
            return [quick.tag, cast("JsonValue", value)]
        return self._encoded(value, text, self.quick)

    def plain(self, form: JsonValue) -> JsonValue:
        """Return the canonical form of a form that was read. Raises CanonicalError."""
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
                return msgspec.convert(rest[0], cast("type", record.make))
            if (members := self._members.get(tag)) is not None:
                return members[str(rest[0])]
            return self._decode_container(tag, rest)
        except (TypeError, ValueError, KeyError, IndexError, msgspec.ValidationError) as error:
            raise CanonicalError(f"{tag}: expected the fields of this version, found others: {error}") from error

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
                raise CanonicalError(f"{tag[:80]!r}: expected a record of this machine, found another")

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
    """Read a constraint, also one that `both` has made of two."""
    if text.startswith("(") and text.endswith(")") and _PAIR in text:
        first, _, second = text[1:-1].rpartition(_PAIR)
        return both(_constraint(first), parse_constraint(second))
    return parse_constraint(text)
