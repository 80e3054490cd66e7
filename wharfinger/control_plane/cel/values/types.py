"""Types of expressions, and the check whether a type is assignable to another one (unification, as in cel-go)."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, its name, and the types that it consists of."""

    kind: str
    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        """Return the type as errors show it."""
        if self.kind == "error":
            return "!error!"
        if self.kind == "null":
            return "null"
        if self.kind == "param" or not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


_SIMPLE: Final = ("bool", "int", "uint", "double", "string", "bytes", "duration", "timestamp", "dyn", "type")
BOOL, INT, UINT, DOUBLE, STRING, BYTES, DURATION, TIMESTAMP, DYN, TYPE = (Type(name, name) for name in _SIMPLE)
NULL: Final = Type("null", "null_type")
ERROR: Final = Type("error", "error")


def listed(element: Type) -> Type:
    """Return the type of lists with elements of this type."""
    return Type("list", "list", (element,))


def mapped(key: Type, value: Type) -> Type:
    """Return the type of maps from ``key`` to ``value``."""
    return Type("map", "map", (key, value))


def optional(value: Type) -> Type:
    """Return the type of optional values."""
    return Type("opaque", "optional_type", (value,))


def param(name: str) -> Type:
    """Return a type parameter, whose type is inferred."""
    return Type("param", name)


def unwrapped(kind: Type) -> tuple[Type, bool]:
    """Return the type inside an optional type and True; for any other type, the type itself and False."""
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.params[0], True
    return kind, False


_WORD: Final = re.compile(r"[\w.]+|[(),]")


def read_type(text: str) -> Type:
    """Parse a type as it is written in the table of functions: ``map(string, list(A))``; capital letters are parameters."""
    words = _WORD.findall(text)
    found, rest = _read(words)
    if rest:
        raise ValueError(f"not a type: {text}")
    return found


def _read(words: list[str]) -> tuple[Type, list[str]]:
    name, rest = words[0], words[1:]
    params: list[Type] = []
    if rest[:1] == ["("]:
        while rest[0] != ")":
            inner, rest = _read(rest[1:])
            params.append(inner)
        rest = rest[1:]
    if len(name) == 1 and name.isupper():
        return param(name), rest
    if name == "optional":
        return optional(params[0]), rest
    if name in {"list", "map"}:
        return Type(name, name, tuple(params)), rest
    if name == "type":
        return Type("type", "type", tuple(params)), rest
    if name == "null":
        return NULL, rest
    if name in {"net.IP", "net.CIDR"}:
        return Type("opaque", name), rest
    return Type("struct" if "." in name else name, name, tuple(params)), rest


class Bindings:
    """The types that were inferred for type parameters so far. A check that fails adds no types."""

    def __init__(self) -> None:
        self._found: dict[str, Type] = {}

    def assignable(self, have: Type, want: Type) -> bool:
        """Return whether a type is assignable to another; if so, record the types that this implies for type parameters."""
        return self.all_assignable((have,), (want,))

    def all_assignable(self, have: tuple[Type, ...], want: tuple[Type, ...]) -> bool:
        """Return whether each type is assignable to its counterpart; if so, record what this implies for type parameters."""
        before = dict(self._found)
        if len(have) == len(want) and all(map(self._fits, have, want)):
            return True
        self._found = before
        return False

    def substituted(self, kind: Type, *, final: bool = False) -> Type:
        """Replace parameters by their types; with ``final``, parameters that are still unknown become dynamic."""
        if kind.kind == "param":
            found = self._found.get(kind.name)
            if found is not None:
                return self.substituted(found, final=final)
            return DYN if final else kind
        if not kind.params:
            return kind
        return Type(kind.kind, kind.name, tuple(self.substituted(inner, final=final) for inner in kind.params))

    def _fits(self, have: Type, want: Type) -> bool:
        if want.kind == "param":
            valid, bound = self._binds(have, want)
            if valid or bound:
                return valid
        if have.kind == "param":
            return self._binds(want, have)[0]
        if {have.kind, want.kind} & {"dyn", "error"}:
            return True
        if have.kind == "null" or want.kind == "null":
            other = want if have.kind == "null" else have
            return other.kind in {"null", "opaque", "struct", "duration", "timestamp"}
        if have.kind != want.kind:
            return False
        if have.kind == "type":
            return True
        if have.kind in {"opaque", "list", "map"}:
            same = have.name == want.name and len(have.params) == len(want.params)
            return same and all(map(self._fits, have.params, want.params))
        return have.name == want.name

    def _binds(self, other: Type, parameter: Type) -> tuple[bool, bool]:
        """Bind a type parameter to a type if possible. Return whether this succeeded, and whether the parameter had a type
        before.
        """
        if other == parameter:
            return True, True
        bound = self._found.get(parameter.name)
        if bound is not None:
            if other == bound:
                return True, True
            if self._fits(other, bound):
                general = other if _is_general(other, bound) else bound
                if not self._mentions(parameter, general):
                    self._found[parameter.name] = general
                return True, True
            return False, True
        if self._mentions(parameter, other):
            return False, False
        self._found[parameter.name] = other
        return True, False

    def _mentions(self, parameter: Type, within: Type) -> bool:
        if within == parameter:
            return True
        if within.kind == "param":
            found = self._found.get(within.name)
            return found is not None and self._mentions(parameter, found)
        return any(self._mentions(parameter, inner) for inner in within.params)


def most_general(one: Type, other: Type) -> Type:
    """Return the more general one of two types that are assignable to each other."""
    return one if _is_general(one, other) else other


def _is_general(one: Type, other: Type) -> bool:
    if one.kind in {"dyn", "param"}:
        return True
    if other.kind in {"dyn", "param"} or one.kind != other.kind:
        return False
    if one.kind in {"opaque", "list", "map"}:
        same = one.name == other.name and len(one.params) == len(other.params)
        return same and all(map(_is_general, one.params, other.params))
    return one.kind == "type" or one == other
