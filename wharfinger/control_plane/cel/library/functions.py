"""The implementations of the standard functions, and the table of all implementations in this folder."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from wharfinger.control_plane.cel.library.authorizer import AUTHORIZATION
from wharfinger.control_plane.cel.library.kubernetes import KUBERNETES
from wharfinger.control_plane.cel.library.lists import LISTS
from wharfinger.control_plane.cel.library.texts import TEXTS
from wharfinger.control_plane.cel.library.times import TIMES
from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.values import NONE, CelError, CelMap, Function, Implementation, Optional, Value
from wharfinger.formats.json.pointers import pointer_of


def _unequal(one: Value, other: Value) -> Value:
    return not operations.equal(one, other)


def _not(value: Value) -> Value:
    if not isinstance(value, bool):
        raise CelError(operations.NO_OVERLOAD)
    return not value


def _order(decide: Callable[[int], bool]) -> Callable[[Value, Value], Value]:
    return lambda one, other: decide(operations.compare(one, other))


def _index(container: Value, key: Value) -> Value:
    if isinstance(container, Optional):
        return Optional(present=True, value=operations.element(container.value, key)) if container.present else NONE
    return operations.element(container, key)


def _in(value: Value, container: Value) -> Value:
    return operations.contains(container, value)


def _value(value: Value) -> Value:
    if not isinstance(value, Optional):
        raise CelError(operations.NO_OVERLOAD)
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value


def _has_value(value: Value) -> Value:
    if not isinstance(value, Optional):
        raise CelError(operations.NO_OVERLOAD)
    return value.present


def _of_non_zero(value: Value) -> Value:
    empty = value is None or value is False or (isinstance(value, int | float | str | bytes) and not value)
    empty = empty or (isinstance(value, list | CelMap) and len(value) == 0)
    return NONE if empty else Optional(present=True, value=value)


def _unwrapped(values: Value) -> Value:
    items = operations.as_items(values)
    if items is None:
        raise CelError(operations.NO_OVERLOAD)
    return [item.value for item in items if isinstance(item, Optional) and item.present]


def _inserted(made: Value, *entry: Value) -> Value:
    if not isinstance(made, CelMap):
        raise CelError(operations.NO_OVERLOAD)
    if len(entry) == 2:
        return made.inserted(*entry)
    other = entry[0]
    if isinstance(other, CelMap):
        for key in other.keys():  # noqa: SIM118 - not a Python mapping
            made = made.inserted(key, other.find(key)[1])
    return made


def _escaped_key(key: Value) -> Value:
    """Return a key in the escaped form of paths in JSON patches."""
    if not isinstance(key, str):
        raise CelError(operations.NO_OVERLOAD)
    return pointer_of((key,))[1:]


_STANDARD: Final[Mapping[str, Implementation]] = {
    "!_": _not,
    "_==_": operations.equal,
    "_!=_": _unequal,
    "_<_": _order(lambda order: order < 0),
    "_<=_": _order(lambda order: order <= 0),
    "_>_": _order(lambda order: order > 0),
    "_>=_": _order(lambda order: order >= 0),
    "_+_": operations.add,
    "_-_": operations.subtract,
    "_*_": operations.multiply,
    "_/_": operations.divide,
    "_%_": operations.modulo,
    "-_": operations.negate,
    "_[_]": _index,
    "@in": _in,
    "size": operations.size,
    "int": operations.to_int,
    "uint": operations.to_uint,
    "double": operations.to_double,
    "bool": operations.to_bool,
    "string": operations.to_string,
    "bytes": operations.to_bytes,
    "timestamp": operations.to_timestamp,
    "duration": operations.to_duration,
    "dyn": lambda value: value,
    "type": operations.type_of,
    "optional.of": lambda value: Optional(present=True, value=value),
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": _of_non_zero,
    "optional.unwrap": _unwrapped,
    "unwrapOpt": _unwrapped,
    "value": _value,
    "hasValue": _has_value,
    "cel.@mapInsert": _inserted,
    "jsonpatch.escapeKey": _escaped_key,
}
"""The standard implementations by function; each accepts the types of all overloads of its function."""
_KNOWN: Final[Mapping[str, Implementation]] = {**_STANDARD, **TEXTS, **LISTS, **TIMES, **KUBERNETES, **AUTHORIZATION}


def implementation(name: str) -> Function:
    """Return the implementation of a function.

    The implementation raises CelError for arguments of types that no overload accepts.
    """
    function = cast("Function", _KNOWN[name.removeprefix(".")])

    def run(*given: Value) -> Value:
        try:
            return function(*given)
        except (TypeError, AttributeError) as error:
            raise CelError(operations.NO_OVERLOAD) from error
        except (ValueError, OverflowError) as error:
            raise CelError(str(error)) from error

    return run
