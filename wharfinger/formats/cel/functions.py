"""The functions that Kubernetes adds to CEL and the library lacks: a table of them, with their types. Pure.

Examples are ``[1, 2].isSorted()``, ``quantity('1Gi')`` and ``'a1'.find('[0-9]')``. Each overload has the types of its parameters
in the library's notation (the receiver first), and its implementation on plain Python values (a list is a list, a timestamp a
datetime). ``docs/cel.md`` lists the functions that rules can use, and those that are missing.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.cel import network as cel_network
from wharfinger.formats.cel import quantity as cel_quantity

Implementation: TypeAlias = object
"""A Python function. The functions have different parameters, so no narrower type fits all of them."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One function with one signature.

    If ``member`` is true, the function is called on its first parameter. ``run`` raises ValueError or TypeError for invalid
    arguments.
    """

    name: str
    result: str
    parameters: tuple[str, ...]
    run: Implementation
    member: bool = True

    @property
    def id(self) -> str:
        """The unique name of the overload."""
        return f"wharfinger_{self.name}_{'_'.join(self.parameters)}_{self.member}".lower()


_LIST: Final = "list<dyn>"
_TAGGED: Final = "map<string, dyn>"
_KINDS: Final = (
    *("int", "uint", "double", "string", "bool", "bytes", "null"),
    *("duration", "timestamp", _LIST, "map<dyn, dyn>"),
)


def _same(item: object, wanted: object) -> bool:
    """Return whether two values are equal in CEL: true is not 1."""
    return isinstance(item, bool) is isinstance(wanted, bool) and item == wanted


def index_of(items: list[object], wanted: object) -> int:
    """Implement ``[1, 2].indexOf(2)``: the first index, or -1."""
    return next((index for index, item in enumerate(items) if _same(item, wanted)), -1)


def last_index_of(items: list[object], wanted: object) -> int:
    """Implement ``[1, 2].lastIndexOf(2)``: the last index, or -1."""
    return next((index for index in range(len(items) - 1, -1, -1) if _same(items[index], wanted)), -1)


def is_sorted(items: list[float]) -> bool:
    """Implement ``[1, 2].isSorted()``."""
    return all(items[index] <= items[index + 1] for index in range(len(items) - 1))


def total(items: list[float]) -> float:
    """Implement ``[1, 2].sum()``: 0 for an empty list."""
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in items):
        raise ValueError("sum() expects a list of numbers")
    found = sum(items)
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        raise ValueError("integer overflow")
    return found


def smallest(items: list[float]) -> float:
    """Implement ``[1, 2].min()``."""
    if not items:
        raise ValueError("min() of an empty list")
    return min(items)


def largest(items: list[float]) -> float:
    """Implement ``[1, 2].max()``."""
    if not items:
        raise ValueError("max() of an empty list")
    return max(items)


_GROUP: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|\(\?P?<[^>]*>|\(\?|\(", re.DOTALL
)


def without_groups(pattern: str) -> str:
    """Return the pattern with all groups made non-capturing. With a capturing group, the library would return only a part of the
    match.
    """

    def plain(match: re.Match[str]) -> str:
        text = match[0]
        return "(?:" if text == "(" or (text.startswith("(?") and text.endswith(">")) else text

    return _GROUP.sub(plain, pattern)


def string_index_of(text: str, wanted: str, start: int = 0) -> int:
    """Implement ``'hello'.indexOf('l')``."""
    if not 0 <= start <= len(text):
        raise ValueError("index out of range")
    return text.find(wanted, start)


def string_last_index_of(text: str, wanted: str, start: int | None = None) -> int:
    """Implement ``'hello'.lastIndexOf('l')``; the result is not greater than ``start``."""
    if start is None:
        return text.rfind(wanted)
    if not 0 <= start <= len(text):
        raise ValueError("index out of range")
    return text.rfind(wanted, 0, start + len(wanted))


def _member(result: str, run: Implementation, name: str, *parameters: str) -> Overload:
    return Overload(name, result, parameters, run)


def _plain(result: str, run: Implementation, name: str, *parameters: str) -> Overload:
    return Overload(name, result, parameters, run, member=False)


FUNCTIONS: Final[tuple[Overload, ...]] = (
    _member("bool", is_sorted, "isSorted", _LIST),
    _member("dyn", total, "sum", _LIST),
    _member("dyn", smallest, "min", _LIST),
    _member("dyn", largest, "max", _LIST),
    _plain(_TAGGED, cel_quantity.quantity, "quantity", "string"),
    _plain("bool", cel_quantity.is_quantity, "isQuantity", "string"),
    *(
        _member(_TAGGED, run, name, _TAGGED, other)
        for name, run in (("add", cel_quantity.add), ("sub", cel_quantity.sub))
        for other in (_TAGGED, "int")
    ),
    _member("int", cel_quantity.sign, "sign", _TAGGED),
    _member("bool", cel_quantity.is_integer, "isInteger", _TAGGED),
    _member("int", cel_quantity.as_integer, "asInteger", _TAGGED),
    _member("double", cel_quantity.as_float, "asApproximateFloat", _TAGGED),
    _member("int", cel_quantity.compare, "compareTo", _TAGGED, _TAGGED),
    _member("bool", cel_quantity.is_greater, "isGreaterThan", _TAGGED, _TAGGED),
    _member("bool", cel_quantity.is_less, "isLessThan", _TAGGED, _TAGGED),
    _plain(_TAGGED, cel_quantity.version, "semver", "string"),
    _plain(_TAGGED, cel_quantity.version, "semver", "string", "bool"),
    _plain("bool", cel_quantity.is_version, "isSemver", "string"),
    _plain("bool", cel_quantity.is_version, "isSemver", "string", "bool"),
    _member("int", cel_quantity.major, "major", _TAGGED),
    _member("int", cel_quantity.minor, "minor", _TAGGED),
    _member("int", cel_quantity.patch, "patch", _TAGGED),
    _plain(_TAGGED, cel_network.ip, "ip", "string"),
    _member(_TAGGED, cel_network.cidr_ip, "ip", _TAGGED),
    _plain("bool", cel_network.is_ip, "isIP", "string"),
    _plain("bool", cel_network.is_canonical, "ip.isCanonical", "string"),
    _member("int", cel_network.family, "family", _TAGGED),
    _member("bool", cel_network.is_unspecified, "isUnspecified", _TAGGED),
    _member("bool", cel_network.is_loopback, "isLoopback", _TAGGED),
    _member("bool", cel_network.is_link_local_multicast, "isLinkLocalMulticast", _TAGGED),
    _member("bool", cel_network.is_link_local_unicast, "isLinkLocalUnicast", _TAGGED),
    _member("bool", cel_network.is_global_unicast, "isGlobalUnicast", _TAGGED),
    _plain(_TAGGED, cel_network.cidr, "cidr", "string"),
    _plain("bool", cel_network.is_cidr, "isCIDR", "string"),
    *(_member("bool", cel_network.contains_ip, "containsIP", _TAGGED, other) for other in (_TAGGED, "string")),
    *(_member("bool", cel_network.contains_cidr, "containsCIDR", _TAGGED, other) for other in (_TAGGED, "string")),
    _member(_TAGGED, cel_network.masked, "masked", _TAGGED),
    _member("int", cel_network.prefix_length, "prefixLength", _TAGGED),
    _plain(_TAGGED, cel_network.url, "url", "string"),
    _plain("bool", cel_network.is_url, "isURL", "string"),
    _member("string", cel_network.scheme, "getScheme", _TAGGED),
    _member("string", cel_network.host, "getHost", _TAGGED),
    _member("string", cel_network.hostname, "getHostname", _TAGGED),
    _member("string", cel_network.port, "getPort", _TAGGED),
    _member("string", cel_network.escaped_path, "getEscapedPath", _TAGGED),
    _member("map<string, list<string>>", cel_network.query, "getQuery", _TAGGED),
)
"""The functions that are always added to those of the CEL library."""

INDEXES: Final[tuple[Overload, ...]] = (
    *(_member("int", index_of, "indexOf", _LIST, kind) for kind in _KINDS),
    *(_member("int", last_index_of, "lastIndexOf", _LIST, kind) for kind in _KINDS),
    _member("int", string_index_of, "indexOf", "string", "string"),
    _member("int", string_index_of, "indexOf", "string", "string", "int"),
    _member("int", string_last_index_of, "lastIndexOf", "string", "string"),
    _member("int", string_last_index_of, "lastIndexOf", "string", "string", "int"),
)
"""Functions that replace functions of the library.

The library has ``indexOf`` and ``lastIndexOf`` for strings only. If functions of these names for lists are added, all string
functions of the library are lost. ``STRING_FUNCTIONS`` restores the other string functions.
"""

STRING_FUNCTIONS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("charAt", "string", ("string", "int")),
    ("lowerAscii", "string", ("string",)),
    ("upperAscii", "string", ("string",)),
    ("replace", "string", ("string", "string", "string")),
    ("replace", "string", ("string", "string", "string", "int")),
    ("split", "list<string>", ("string", "string")),
    ("split", "list<string>", ("string", "string", "int")),
    ("substring", "string", ("string", "int")),
    ("substring", "string", ("string", "int", "int")),
    ("trim", "string", ("string",)),
    ("join", "string", (_LIST,)),
    ("join", "string", (_LIST, "string")),
    ("format", "string", ("string", _LIST)),
)
"""The string functions of the CEL library, except those in INDEXES. Each entry has the name of the function, the type of its
result, and the types of its parameters.

The functions in INDEXES replace a part of the library's extension ``strings``. If they are used, this extension is not loaded,
and each function of this table is added as a call to the library's own function.
"""

MATCHES: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("find", "string", ("string", "string")),
    ("findAll", "list<string>", ("string", "string")),
    ("findAll", "list<string>", ("string", "string", "int")),
)
"""Functions on regular expressions. Each entry has the name of the function, the type of its result, and the types of its
parameters. The CEL library's own engine matches the expressions, in linear time.
"""
