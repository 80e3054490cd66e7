"""The cost of calls during evaluation, by the sizes of their arguments."""

import math
from collections.abc import Sequence
from typing import Final

from wharfinger.control_plane.cel.costs.sizes import LIST_COST, STRUCT_COST
from wharfinger.control_plane.cel.values.objects import ListView, ObjectView
from wharfinger.control_plane.cel.values.values import CelMap, Opaque, Optional, Value

_TEXT: Final = 0.1
_REGEX: Final = 0.25
_ONCE: Final = frozenset(
    {"url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip",
     "quantity", "isQuantity", "semver", "isSemver",
     "jsonpatch.escapeKey", "startsWith", "endsWith", "bytes", "format", "strings.quote", "string"}
)  # fmt: skip
_TWICE: Final = frozenset({"replace", "split", "join", "ip.isCanonical"})
_CHECK: Final = 350_000
"""The cost of one authorization check; the cost limit of an evaluation allows at most two checks."""
_SEARCHES: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})


def call_cost(function: str, overloads: Sequence[str], given: Sequence[Value], _result: Value) -> int:
    """Return the cost of a call."""
    if not given:
        return 1
    if function in {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"}:
        return math.ceil(min(_size(given[0]), _size(given[1])) * _TEXT)
    if function == "_+_" and isinstance(given[0], str | bytes):
        return math.ceil((_size(given[0]) + _size(given[1])) * _TEXT)
    if function == "@in":
        return _size(given[1]) if isinstance(given[1], list | ListView) else 1
    if function in {"matches", "find", "findAll"} and len(given) > 1:
        return math.ceil((1 + _size(given[0])) * _TEXT) * math.ceil(_size(given[1]) * _REGEX)
    if function == "contains":
        return math.ceil(_size(given[0]) * _TEXT) * math.ceil(_size(given[1]) * _TEXT)
    if function in {"check", "fieldSelector", "labelSelector"}:
        return _CHECK if function == "check" else _selector_cost(_size(given[1]))
    if function in _SEARCHES:
        return _traversed(given[0])
    if function in _TWICE:
        return math.ceil(_size(given[0]) * 2 * _TEXT)
    if function == "string" and not isinstance(given[0], bytes):
        return 1
    if function in _ONCE and "cidr_ip" not in overloads:
        return math.ceil(_size(given[0]) * _TEXT)
    return math.ceil(_size(given[1]) * _TEXT * 128 * _REGEX) if function == "validate" else 1


def _selector_cost(length: int) -> int:
    """Return the cost of parsing a selector: its text, and one requirement (a struct with a list) for each two characters."""
    return LIST_COST + math.ceil(length * _TEXT) + math.ceil(math.ceil(length / 2) * (LIST_COST + STRUCT_COST))


def _size(value: Value) -> int:
    if isinstance(value, str | bytes | list | ListView | CelMap | ObjectView):
        return len(value)
    if isinstance(value, Optional) and value.present:
        return _size(value.value)
    if isinstance(value, Opaque) and value.type_name in {"net.IP", "net.CIDR"}:
        return 16 if ":" in str(value.content) else 4
    return 1


def _traversed(value: Value) -> int:
    if isinstance(value, str | bytes):
        return int(len(value) * _TEXT)
    if isinstance(value, list | ListView):
        return sum(map(_traversed, value))
    return 1
