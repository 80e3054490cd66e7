"""The rules that estimate the costs of calls and the sizes of their results, by overload or by function.

A rule returns None if it does not apply to the call; the call then has a cost of 1, in addition to its arguments.
"""

import math
from collections.abc import Callable
from typing import Final

from wharfinger.control_plane.cel.costs.sizes import (
    FREE,
    LIST_COST,
    MOST,
    ONE,
    REGEX_COST,
    TEXT_COST,
    Elements,
    Operand,
    Range,
)
from wharfinger.control_plane.cel.syntax.nodes import Literal
from wharfinger.control_plane.cel.values.values import Uint

Found = tuple[Range, Range | None]
Rule = Callable[[Operand | None, list[Operand], Elements], Found | None]


def _fixed(cost: int) -> Rule:
    return lambda _target, _arguments, _coster: (Range(cost, cost), None)


def _of_target(factor: float, *, sized: bool) -> Rule:
    def rule(target: Operand | None, _arguments: list[Operand], _coster: Elements) -> Found | None:
        return None if target is None else (target.size.scaled(factor), target.size if sized else None)

    return rule


def _of_first(factor: float, *, sized: bool = False) -> Rule:
    def rule(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
        return (arguments[0].size.scaled(factor), arguments[0].size if sized else None) if arguments else None

    return rule


def _matches(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    if target is None:
        return None
    text = target.size.plus(ONE).scaled(TEXT_COST)
    return text.times(arguments[0].size.scaled(REGEX_COST)), None


def _finds(target: Operand | None, arguments: list[Operand], coster: Elements) -> Found | None:
    found = _matches(target, arguments, coster)
    return None if found is None or target is None else (found[0], Range(0, target.size.high))


def _contains(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    if target is None:
        return None
    return target.size.scaled(TEXT_COST).times(arguments[0].size.scaled(TEXT_COST)), None


def _compared(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    most = min(arguments[0].size.high, arguments[1].size.high)
    return Range(1 if most > 0 else 0, most).scaled(TEXT_COST), None


def _equal(target: Operand | None, arguments: list[Operand], coster: Elements) -> Found | None:
    first, second = arguments[0].type, arguments[1].type
    if first == second and first.name in {"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"}:
        return ONE, None
    if first == second and first.name == "kubernetes.NamedFormat":
        return Range(1, 64).scaled(TEXT_COST), None
    if first == second and first.name == "kubernetes.URL":
        return Range(1, arguments[1].size.high).scaled(TEXT_COST), None
    return _compared(target, arguments, coster)


def _in_list(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    return arguments[1].size.scaled(1), None


def _searched(target: Operand | None, _arguments: list[Operand], coster: Elements) -> Found | None:
    """Return the cost of a function that compares each element of its target once; None if the call has no target."""
    if target is None:
        return None
    element = coster.element(target)
    if element is None:
        return target.size.scaled(TEXT_COST), None
    each = ONE.plus(element.size.scaled(TEXT_COST)) if element.type.kind in {"string", "bytes"} else ONE
    return target.size.times(each), None


def _replaced(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    if target is None or len(arguments) < 2:
        return None
    size, what, by = target.size, arguments[0].size, arguments[1].size
    most, kept_most = 0, 0
    if what.low == 0:
        most, kept_most = min(size.high + 1, MOST), size.high
    elif by.high <= what.low:
        kept_most = size.high
    else:
        most = math.ceil(size.high / what.low)
    least, kept_least = 0, 0
    if what.high == 0:
        least, kept_least = min(size.low + 1, MOST), size.low
    elif what.high <= by.low:
        kept_least = size.low
    else:
        least = math.ceil(size.low / what.high)
    result = Range(least, most).times(by).plus(Range(kept_least, kept_most))
    return size.scaled(2 * TEXT_COST), result


def _split(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    if target is None:
        return None
    most = target.size.high
    last = arguments[1].node if len(arguments) > 1 else None
    if isinstance(last, Literal) and isinstance(last.value, int) and not isinstance(last.value, bool | Uint):
        most = last.value % (MOST + 1)
    return target.size.scaled(2 * TEXT_COST), Range(0, most)


def _joined(target: Operand | None, arguments: list[Operand], coster: Elements) -> Found | None:
    if target is None:
        return None
    element = coster.element(target)
    size = FREE if element is None else target.size.times(element.size)
    if arguments:
        between = Range(max(target.size.low - 1, 0), max(target.size.high - 1, 0))
        size = size.plus(arguments[0].size.times(between))
    return size.scaled(TEXT_COST), size


def _contained(more: Range, text: str) -> Rule:
    """Return the rule for a function that checks whether a network contains an address or another network.

    ``more`` is added to the cost. If the type of the argument is ``text``, the argument must be parsed first, which has an
    additional cost.
    """

    def rule(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
        cost = Range(8, 32).scaled(TEXT_COST).plus(more)
        if arguments[0].type.kind == text:
            cost = cost.plus(arguments[0].size.scaled(TEXT_COST))
        return cost, None

    return rule


def _validated(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    return arguments[0].size.scaled(TEXT_COST).scaled(128 * REGEX_COST), None


def _quoted(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    size = arguments[0].size
    return size.scaled(TEXT_COST), Range(size.low + 2, min(size.high * 2 + 2, MOST))


def _to_bytes(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    size = arguments[0].size
    return size.scaled(TEXT_COST), Range(size.low, size.high * 4 % (MOST + 1))


def _from_bytes(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    size = arguments[0].size
    return size.scaled(TEXT_COST), Range(size.low // 4, size.high)


def _made_list(factor: float, *, squared: bool = False) -> Rule:
    """Return the rule for a function whose result is a list as long as its target.

    With ``squared``, the rule charges for a list whose length is the square of the length of the target (or of the first
    argument, if there is one).
    """

    def rule(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
        source = arguments[0] if target is not None and arguments and squared else target
        if source is None:
            return None
        size = source.size.times(source.size) if squared else source.size
        return _allocated(factor, size)

    return rule


def _allocated(factor: float, size: Range) -> Found:
    return size.scaled(factor).plus(ONE).plus(Range(LIST_COST, LIST_COST)), size


def _sorted_list(target: Operand | None, arguments: list[Operand], coster: Elements) -> Found | None:
    source = arguments[0] if arguments else target
    if source is None:
        return None
    element = source.type.params[0].kind if source.type.params else ""
    return _made_list(2 + (TEXT_COST if element in {"string", "bytes"} else 0), squared=True)(source, [], coster)


def _literal_int(operand: Operand, other: int) -> int:
    node = operand.node
    value = node.value if isinstance(node, Literal) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else other


def _sliced(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    if target is None:
        return None
    count = (_literal_int(arguments[1], target.size.high) - _literal_int(arguments[0], 0)) % (MOST + 1)
    return _allocated(1, Range(count, count))


def _ranged(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    count = _literal_int(arguments[0], MOST)
    return _allocated(1, Range(count, count))


def _flattened(target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
    if target is None:
        return None
    return _allocated(float(_literal_int(arguments[0], MOST) if arguments else 1), target.size)


def _sets(factor: float) -> Rule:
    def rule(_target: Operand | None, arguments: list[Operand], _coster: Elements) -> Found | None:
        return arguments[0].size.times(arguments[1].size).scaled(factor).plus(ONE), None

    return rule


_ORDERS = [
    f"{name}_{kind}" for name in ("less", "less_equals", "greater", "greater_equals") for kind in ("string", "bytes")
]
COSTS: Final[dict[str, Rule]] = {
    "equals": _equal, "not_equals": _compared, **dict.fromkeys(_ORDERS, _compared), "in_list": _in_list,
    "matches_string": _matches, "contains_string": _contains, "starts_with_string": _of_first(TEXT_COST),
    "ends_with_string": _of_first(TEXT_COST), "string_to_bytes": _to_bytes, "bytes_to_string": _from_bytes,
    "strings_quote": _quoted, "string_format": _of_target(TEXT_COST, sized=False), "cidr_ip": _fixed(1),
}  # fmt: skip
"""The rules of single overloads."""
COSTS_OF_FUNCTIONS: Final[dict[str, Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _searched),
    "url": _of_first(TEXT_COST, sized=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _of_target(TEXT_COST, sized=True)),
    "replace": _replaced, "split": _split, "join": _joined, "find": _finds, "findAll": _finds,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _of_first(TEXT_COST)),
    "ip.isCanonical": _of_first(2 * TEXT_COST),
    "containsIP": _contained(FREE, "string"),
    "containsCIDR": _contained(Range(4, 16).scaled(TEXT_COST).plus(ONE), "string"),
    "validate": _validated, "distinct": _made_list(2, squared=True), "reverse": _made_list(1), "slice": _sliced,
    "lists.range": _ranged, "flatten": _flattened, "sort": _sorted_list, "@sortByAssociatedKeys": _sorted_list,
    "sets.contains": _sets(1), "sets.intersects": _sets(1), "sets.equivalent": _sets(2),
}  # fmt: skip
"""The rules of functions for which Kubernetes defines one cost for all overloads."""
