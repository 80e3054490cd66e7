"""Values during evaluation: values of Python's own types that mean the same in CEL, and instances of the classes below.

bool, int (64 bits), float, str, bytes, None and list are used directly. The objects and lists in a custom resource are
represented by views of them (:mod:`~wharfinger.control_plane.cel.values.objects`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

Value: TypeAlias = object
"""Any value of an expression."""


class CelError(Exception):
    """The error of an expression that has no value; the message is the same as in cel-go."""


class CostError(CelError):
    """The error of an expression that exceeds its cost limit."""


class Uint(int):
    """An unsigned integer."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A timestamp in nanoseconds since 1970, in UTC."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type that is itself the value of an expression."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional value."""

    present: bool
    value: Value = None


NONE: Final = Optional(present=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of a type that Kubernetes adds: the type's name, and the content by which values are compared."""

    type_name: str
    content: object


class CelMap:
    """A map that an expression constructs. The keys 1, 1u and 1.0 are equal; true is another key."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        self._entries: dict[object, tuple[Value, Value]] = {}
        for key, value in entries:
            self._entries[key_of(key)] = (key, value)

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> Iterator[Value]:
        """Yield the keys in the order of their insertion."""
        return (key for key, _ in self._entries.values())

    def find(self, key: Value) -> tuple[bool, Value]:
        """Return whether a key exists, and its value."""
        found = self._entries.get(key_of(key))
        return (False, None) if found is None else (True, found[1])

    def inserted(self, key: Value, value: Value) -> "CelMap":
        """Return a map with one more entry. Raises CelError if the key exists."""
        if key_of(key) in self._entries:
            raise CelError(f"insert failed: key {shown_key(key)} already exists")
        made = CelMap()
        made._entries = {**self._entries, key_of(key): (key, value)}
        return made


class MadeObject(CelMap):
    """An object that an expression constructs, with the name of its type: ``Object.spec``, or ``JSONPatch``."""

    __slots__ = ("made_type",)

    def __init__(self, made_type: str, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        super().__init__(entries)
        self.made_type = made_type


def key_of(key: Value) -> object:
    """Return a hashable value that is equal for equal keys."""
    return (bool, key) if isinstance(key, bool) else key if isinstance(key, int | float | str) else repr(key)


def shown_key(key: Value) -> str:
    """Return a key as errors show it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"), (Uint, "uint"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"),
    (Duration, "google.protobuf.Duration"), (Timestamp, "google.protobuf.Timestamp"), (TypeValue, "type"),
    (Optional, "optional_type"),
    (list, "list"), (CelMap, "map"),
)  # fmt: skip


def type_name(value: Value) -> str:
    """Return the name of a value's type."""
    if value is None:
        return "null_type"
    if isinstance(value, Opaque):
        return value.type_name
    if isinstance(value, MadeObject):
        return value.made_type
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return str(getattr(value, "cel_type", "unknown"))


def is_number(value: Value) -> bool:
    """Return whether a value is an int, uint or double."""
    return isinstance(value, int | float) and not isinstance(value, bool)


Implementation: TypeAlias = object
"""A function of values, which may raise CelError. The functions have different parameters, so the type is not more precise."""


class Function(Protocol):
    """The type of a Python function that implements a CEL function."""

    def __call__(self, *arguments: Value) -> Value: ...
