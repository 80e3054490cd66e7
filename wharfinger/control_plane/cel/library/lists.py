"""Functions of lists and sets."""

import functools
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.cel.library.texts import index_of, last_index_of, texts, whole
from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.values import NONE, CelError, Duration, Implementation, Optional, Value

_MOST: Final = 1_000_000


def items_of(value: Value) -> list[Value]:
    """Return the items of a value that must be a list. Raises CelError."""
    found = operations.as_items(value)
    if found is None:
        raise CelError(operations.NO_OVERLOAD)
    return list(found)


def _is_sorted(value: Value) -> Value:
    items = items_of(value)
    return all(operations.compare(items[index], items[index + 1]) <= 0 for index in range(len(items) - 1))


def _sum(value: Value) -> Value:
    items = items_of(value)
    total: Value = Duration(0) if items and isinstance(items[0], Duration) else type(items[0])() if items else 0
    for item in items:
        total = operations.add(total, item)
    return total


def _extreme(name: str, sign: int) -> Callable[[Value], Value]:
    def run(value: Value) -> Value:
        items = items_of(value)
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if operations.compare(item, best) * sign > 0:
                best = item
        return best

    return run


def _index_of(where: Value, wanted: Value, start: Value = 0) -> Value:
    if isinstance(where, str):
        return index_of(where, texts(wanted)[0], whole(start))
    return next((index for index, item in enumerate(items_of(where)) if operations.equal(item, wanted)), -1)


def _last_index_of(where: Value, wanted: Value, start: Value = None) -> Value:
    if isinstance(where, str):
        return last_index_of(where, texts(wanted)[0], None if start is None else whole(start))
    found = [index for index, item in enumerate(items_of(where)) if operations.equal(item, wanted)]
    return found[-1] if found else -1


def _distinct(value: Value) -> Value:
    kept: list[Value] = []
    for item in items_of(value):
        if not any(operations.equal(item, known) for known in kept):
            kept.append(item)
    return kept


def _flatten(value: Value, depth: Value = 1) -> Value:
    levels = whole(depth)
    if levels < 0:
        raise CelError("level must be non-negative")
    result: list[Value] = []
    for item in items_of(value):
        inner = operations.as_items(item)
        if inner is not None and levels > 0:
            result += items_of(_flatten(item, levels - 1))
        else:
            result.append(item)
    return result


def _range(count: Value) -> Value:
    most = whole(count)
    if most > _MOST:
        raise CelError("lists.range: too many elements")
    return list(range(most))


def _slice(value: Value, start: Value, end: Value) -> Value:
    items, first, last = items_of(value), whole(start), whole(end)
    if first < 0 or last < 0:
        raise CelError(f"cannot slice({first}, {last}), negative indexes not supported")
    if first > last:
        raise CelError(f"cannot slice({first}, {last}), start index must be less than or equal to end index")
    if last > len(items):
        raise CelError(f"cannot slice({first}, {last}), list is length {len(items)}")
    return items[first:last]


def _end(index: int) -> Callable[[Value], Value]:
    def run(value: Value) -> Value:
        items = items_of(value)
        return Optional(present=True, value=items[index]) if items else NONE

    return run


def _sorted(value: Value) -> Value:
    return sorted(items_of(value), key=functools.cmp_to_key(operations.compare))


def _sorted_by(value: Value, keys: Value) -> Value:
    pairs = list(zip(items_of(value), items_of(keys), strict=True))
    order = functools.cmp_to_key(operations.compare)
    return [item for item, _ in sorted(pairs, key=lambda pair: order(pair[1]))]


def _holds_all(one: Value, other: Value) -> bool:
    items = items_of(one)
    return all(any(operations.equal(item, wanted) for item in items) for wanted in items_of(other))


def _intersects(one: Value, other: Value) -> Value:
    items = items_of(one)
    return any(any(operations.equal(item, wanted) for item in items) for wanted in items_of(other))


LISTS: Final[Mapping[str, Implementation]] = {
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "distinct": _distinct,
    "flatten": _flatten,
    "lists.range": _range,
    "slice": _slice,
    "first": _end(0),
    "last": _end(-1),
    "reverse": lambda value: list(reversed(items_of(value))),
    "sort": _sorted,
    "@sortByAssociatedKeys": _sorted_by,
    "sets.contains": _holds_all,
    "sets.equivalent": lambda one, other: _holds_all(one, other) and _holds_all(other, one),
    "sets.intersects": _intersects,
}
