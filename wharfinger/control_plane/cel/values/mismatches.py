"""The errors of calls whose arguments have wrong types. The form of an error depends on the function, as in cel-go."""

from collections.abc import Mapping, Sequence
from typing import Final

from wharfinger.control_plane.cel.values.operations import NO_OVERLOAD
from wharfinger.control_plane.cel.values.values import Value, type_name

_TIME: Final = "google.protobuf.Timestamp"
_LENGTH: Final = "google.protobuf.Duration"
_NUMBERS: Final = frozenset({"double", "int", "uint"})
_SUBTRACTED: Final = _NUMBERS | {_TIME, _LENGTH}
_ADDED: Final = _SUBTRACTED | {"bytes", "list", "string"}
_ORDERED: Final = _SUBTRACTED | {"bool", "bytes", "string"}
_TRAITS: Final[Mapping[str, frozenset[str]]] = {
    "_+_": _ADDED, "_-_": _SUBTRACTED, "_*_": _NUMBERS, "_/_": _NUMBERS, "_%_": frozenset({"int", "uint"}),
    "-_": frozenset({"bool", "double", "int"}), "_<_": _ORDERED, "_<=_": _ORDERED, "_>_": _ORDERED, "_>=_": _ORDERED,
    "size": frozenset({"bytes", "list", "map", "string"}),
}  # fmt: skip
"""Functions, each with a set of types. If the type of the first operand is in this set or in ``_ASKED``, the error about wrong
types does not name the function; otherwise the error names it.
"""
_ASKED: Final = frozenset({"string", _TIME, _LENGTH})
"""If the first operand has one of these types, no error of a function in ``_TRAITS`` names the function."""
_RECEIVERS: Final = frozenset(
    {"!_", "_==_", "_!=_", "_[_]", "contains", "endsWith", "startsWith", "matches", "find", "findAll"}
)
"""The functions whose error contains neither the name of the function nor the types of the arguments."""


def mismatch(function: str, given: Sequence[Value]) -> str:
    """Return the error of a call whose arguments have other types than the function takes."""
    known = _TRAITS.get(function)
    if known is not None:
        return NO_OVERLOAD if type_name(given[0]) in known | _ASKED else f"{NO_OVERLOAD}: {function}"
    if function in _RECEIVERS:
        return NO_OVERLOAD
    return f"{NO_OVERLOAD}: {function}({', '.join(map(type_name, given))})"
