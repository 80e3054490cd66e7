"""What an expression may cost at most, by the sizes of what it speaks of (cel-go's ``checker.Cost``)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from wharfinger.cluster.control_plane.cel.checker import Checked
from wharfinger.cluster.control_plane.cel.nodes import (
    ACCUMULATOR,
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)
from wharfinger.cluster.control_plane.cel.schema_types import Declared
from wharfinger.cluster.control_plane.cel.types import DYN, Type, unwrapped
from wharfinger.cluster.control_plane.cel.values import Uint

MOST: Final = 2**64 - 1
LIST_COST: Final = 10
MAP_COST: Final = 30
_TEXT: Final = 0.1
_REGEX: Final = 0.25
_Path = tuple[str, ...]


class Range(NamedTuple):
    """The least and the most of a size or a cost."""

    low: int
    high: int

    def plus(self, other: "Range") -> "Range":
        """Together."""
        return Range(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: "Range") -> "Range":
        """One for each of the other."""
        return Range(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> "Range":
        """Times a number, rounded up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Either."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    return MOST if product >= 2.0**64 else math.ceil(product)


ONE: Final = Range(1, 1)
FREE: Final = Range(0, 0)
UNKNOWN: Final = Range(0, MOST)


class Entry(NamedTuple):
    """Sizes of the keys and values of a list (of which a key is an index) or a map."""

    kind: str
    key: Range
    value: Range


@dataclass(slots=True)
class _Local:
    path: _Path
    size: Range | None
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Operand:
    """What a call is given: its type, its size if known, and where it stands in the schema."""

    type: Type
    size: Range
    path: _Path
    node: Node | None


def estimate(checked: Checked, root: Declared) -> int:
    """The most that an expression can cost."""
    return _Coster(checked, root).cost(checked.root).high


class _Coster:
    def __init__(self, checked: Checked, root: Declared) -> None:
        self._checked = checked
        self._root = root
        self._paths: dict[Node, _Path] = {}
        self._sizes: dict[Node, Range] = {}
        self._entries: dict[Node, Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        """What a node costs."""
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[node] = local.path if local else (node.name,)
            return ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Fold):
            return self._bind(node) if node.bind else self._fold(node)
        return FREE

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _select(self, node: Select) -> Range:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if self._type(node.operand).kind in {"map", "struct", "param"}:
            cost = cost.plus(ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return cost

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.arguments[0]).plus(ONE)
            self._copy(node, node.arguments[0])
            return cost
        costs = [self.cost(argument) for argument in node.arguments]
        overloads = self._checked.overloads.get(node, ())
        if not overloads:
            return FREE
        total = FREE if node.target is None else self.cost(node.target)
        together = FREE
        for cost in costs:
            together = together.plus(cost)
        target = None if node.target is None else self._operand(node.target)
        arguments = [self._operand(argument) for argument in node.arguments]
        found = Range(MOST, 0)
        size: Range | None = None
        for overload in overloads:
            cost, result = self._one(node, overload, target, arguments, costs, together)
            found = found.union(cost)
            if result is not None:
                size = result if size is None else size.union(result)
            if overload in {"index_list", "index_map"}:
                entry = self._entry(node.arguments[0])
                size = None if entry is None else entry.value
                self._paths[node] = (
                    *self._path(node.arguments[0]),
                    "@items" if overload == "index_list" else "@values",
                )
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node] = size
        return total.plus(found)

    def _one(
        self,
        node: Call,
        overload: str,
        target: Operand | None,
        arguments: list[Operand],
        costs: list[Range],
        together: Range,
    ) -> tuple[Range, Range | None]:
        """What one overload of a call costs with its arguments, and the size of what it gives."""
        if overload in {"logical_and", "logical_or"}:
            return Range(costs[0].low, costs[0].plus(costs[1]).high), None
        if overload == "conditional":
            self._joined_entries(node, node.arguments[1], node.arguments[2])
            return costs[0].plus(costs[1].union(costs[2])), arguments[1].size.union(arguments[2].size)
        if overload in {"add_string", "add_bytes", "add_list"}:
            self._joined_entries(node, node.arguments[0], node.arguments[1])
            size = arguments[0].size.plus(arguments[1].size)
            return (ONE if overload == "add_list" else size.scaled(_TEXT)).plus(together), size
        rule = _COSTS.get(overload) or _COSTS_OF_FUNCTIONS.get(node.function)
        found = None if rule is None else rule(target, arguments, self)
        if found is None:
            return ONE.plus(together), None
        return found[0].plus(together), found[1]

    def _joined_entries(self, node: Node, one: Node, other: Node) -> None:
        first, second = self._entry(one), self._entry(other)
        if first is not None and second is not None:
            self._entries[node] = Entry(first.kind, first.key.union(second.key), first.value.union(second.value))

    def _list(self, node: ListNode) -> Range:
        cost = Range(LIST_COST, LIST_COST)
        size = Range(MOST if node.elements else 0, 0)
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            size = size.union(self._size(element) or UNKNOWN)
        self._entries[node] = Entry("list", ONE, size)
        return cost

    def _map(self, node: MapNode) -> Range:
        cost = Range(MAP_COST, MAP_COST)
        keys = values = Range(MOST if node.entries else 0, 0)
        for key, value, _ in node.entries:
            cost = cost.plus(self.cost(key)).plus(self.cost(value))
            keys = keys.union(self._size(key) or UNKNOWN)
            values = values.union(self._size(value) or UNKNOWN)
        self._entries[node] = Entry("map", keys, values)
        return cost

    def _fold(self, node: Fold) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.start))
        self._push(node.accumulator, _Local(self._path(node.start), self._size(node.start), self._entry(node.start)))
        for name, local in zip(node.names, self._loop_locals(node), strict=True):
            self._push(name, local)
        loop = self.cost(node.condition).plus(self.cost(node.step))
        for name in node.names:
            self._locals[name].pop()
        cost = cost.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._size(node.range) or UNKNOWN
        if isinstance(node.start, Literal):
            self._sizes[node] = self._size(node.start) or ONE
        elif isinstance(node.start, ListNode | MapNode):
            self._sizes[node] = count
            entry = self._entry(node.step)
            if entry is not None:
                self._entries[node] = entry
        return cost.plus(count.times(loop))

    def _loop_locals(self, node: Fold) -> list[_Local]:
        entry = self._entry(node.range)
        kind = entry.kind if entry else self._type(node.range).kind
        path = self._path(node.range)
        in_list = kind == "list"
        value = _Local((*path, "@items" if in_list else "@values"), entry.value if entry else None, None)
        key = _Local((*path, "@indices" if in_list else "@keys"), entry.key if entry else None, None)
        if len(node.names) == 2:
            return [key, value]
        return [value if in_list else key]

    def _bind(self, node: Fold) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.start))
        self._push(node.accumulator, _Local(self._path(node.start), self._size(node.start), self._entry(node.start)))
        cost = cost.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._copy(node, node.result)
        return cost

    def _type(self, node: Node) -> Type:
        return self._checked.types.get(node, DYN)

    def _path(self, node: Node) -> _Path:
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.path
        return self._paths.get(node, ())

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        own = () if path and path[0] == ACCUMULATOR else path
        return Operand(self._type(node), self._size(node) or UNKNOWN, own, node)

    def _copy(self, node: Node, source: Node) -> None:
        size, entry = self._size(source), self._entry(source)
        if size is not None:
            self._sizes[node] = size
        if entry is not None:
            self._entries[node] = entry

    def _size(self, node: Node) -> Range | None:
        if node in self._sizes:
            return self._sizes[node]
        own = _own_size(node)
        if own is not None:
            return own
        size = self.declared_size(self._path(node))
        if size is not None:
            self._sizes[node] = size
            return size
        if _is_scalar(self._type(node)):
            return ONE
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.size
        return None

    def declared_size(self, path: _Path) -> Range | None:
        """The size of what stands at a path of the schema."""
        at: Declared | None = self._root
        if not path:
            return None
        for step in path[1:]:
            if at is None:
                return None
            at = {"@items": at.element, "@values": at.element, "@keys": at.key}.get(step) or at.fields.get(step)
        return None if at is None else Range(0, at.most)

    def _entry(self, node: Node) -> Entry | None:
        if node in self._entries:
            return self._entries[node]
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.entry

    def element(self, operand: Operand) -> Operand | None:
        """What stands for the elements of a list."""
        if not operand.type.params:
            return None
        path = (*operand.path, "@items") if operand.path else ()
        return Operand(operand.type.params[0], self.declared_size(path) or UNKNOWN, path, None)


def _own_size(node: Node) -> Range | None:
    if isinstance(node, Literal):
        count = len(node.value) if isinstance(node.value, str | bytes) else 1
        return Range(count, count)
    if isinstance(node, ListNode):
        return Range(len(node.elements), len(node.elements))
    return Range(len(node.entries), len(node.entries)) if isinstance(node, MapNode) else None


def _is_scalar(kind: Type) -> bool:
    inner, is_optional = unwrapped(kind)
    if is_optional:
        return _is_scalar(inner)
    return kind.kind in {"bool", "double", "duration", "int", "timestamp", "uint"}


_Found = tuple[Range, Range | None]
_Rule = Callable[[Operand | None, list[Operand], _Coster], _Found | None]


def _fixed(cost: int) -> _Rule:
    return lambda _target, _arguments, _coster: (Range(cost, cost), None)


def _of_target(factor: float, *, sized: bool) -> _Rule:
    def rule(target: Operand | None, _arguments: list[Operand], _coster: _Coster) -> _Found | None:
        return None if target is None else (target.size.scaled(factor), target.size if sized else None)

    return rule


def _of_first(factor: float, *, sized: bool = False) -> _Rule:
    def rule(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
        return (arguments[0].size.scaled(factor), arguments[0].size if sized else None) if arguments else None

    return rule


def _matches(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    if target is None:
        return None
    text = target.size.plus(ONE).scaled(_TEXT)
    return text.times(arguments[0].size.scaled(_REGEX)), None


def _finds(target: Operand | None, arguments: list[Operand], coster: _Coster) -> _Found | None:
    found = _matches(target, arguments, coster)
    return None if found is None or target is None else (found[0], Range(0, target.size.high))


def _contains(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    if target is None:
        return None
    return target.size.scaled(_TEXT).times(arguments[0].size.scaled(_TEXT)), None


def _compared(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    most = min(arguments[0].size.high, arguments[1].size.high)
    return Range(1 if most > 0 else 0, most).scaled(_TEXT), None


def _equal(target: Operand | None, arguments: list[Operand], coster: _Coster) -> _Found | None:
    first, second = arguments[0].type, arguments[1].type
    if first == second and first.name in {"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"}:
        return ONE, None
    if first == second and first.name == "kubernetes.NamedFormat":
        return Range(1, 64).scaled(_TEXT), None
    if first == second and first.name == "kubernetes.URL":
        return Range(1, arguments[1].size.high).scaled(_TEXT), None
    return _compared(target, arguments, coster)


def _in_list(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    return arguments[1].size.scaled(1), None


def _searched(target: Operand | None, _arguments: list[Operand], coster: _Coster) -> _Found | None:
    """One comparison for each element."""
    if target is None:
        return None
    element = coster.element(target)
    if element is None:
        return target.size.scaled(_TEXT), None
    each = ONE.plus(element.size.scaled(_TEXT)) if element.type.kind in {"string", "bytes"} else ONE
    return target.size.times(each), None


def _replaced(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
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
    return size.scaled(2 * _TEXT), result


def _split(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    if target is None:
        return None
    most = target.size.high
    last = arguments[1].node if len(arguments) > 1 else None
    if isinstance(last, Literal) and isinstance(last.value, int) and not isinstance(last.value, bool | Uint):
        most = last.value % (MOST + 1)
    return target.size.scaled(2 * _TEXT), Range(0, most)


def _joined(target: Operand | None, arguments: list[Operand], coster: _Coster) -> _Found | None:
    if target is None:
        return None
    element = coster.element(target)
    size = FREE if element is None else target.size.times(element.size)
    if arguments:
        between = Range(max(target.size.low - 1, 0), max(target.size.high - 1, 0))
        size = size.plus(arguments[0].size.times(between))
    return size.scaled(_TEXT), size


def _contained(more: Range, text: str) -> _Rule:
    """Whether an address or a network is in another."""

    def rule(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
        cost = Range(8, 32).scaled(_TEXT).plus(more)
        if arguments[0].type.kind == text:
            cost = cost.plus(arguments[0].size.scaled(_TEXT))
        return cost, None

    return rule


def _validated(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    return arguments[0].size.scaled(_TEXT).scaled(128 * _REGEX), None


def _quoted(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    size = arguments[0].size
    return size.scaled(_TEXT), Range(size.low + 2, min(size.high * 2 + 2, MOST))


def _to_bytes(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    size = arguments[0].size
    return size.scaled(_TEXT), Range(size.low, size.high * 4 % (MOST + 1))


def _from_bytes(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    size = arguments[0].size
    return size.scaled(_TEXT), Range(size.low // 4, size.high)


def _made_list(factor: float, *, squared: bool = False) -> _Rule:
    """What makes a list of the size of its target, or compares all of it with all of it."""

    def rule(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
        source = arguments[0] if target is not None and arguments and squared else target
        if source is None:
            return None
        size = source.size.times(source.size) if squared else source.size
        return _allocated(factor, size)

    return rule


def _allocated(factor: float, size: Range) -> _Found:
    return size.scaled(factor).plus(ONE).plus(Range(LIST_COST, LIST_COST)), size


def _sorted_list(target: Operand | None, arguments: list[Operand], coster: _Coster) -> _Found | None:
    source = arguments[0] if arguments else target
    if source is None:
        return None
    element = source.type.params[0].kind if source.type.params else ""
    return _made_list(2 + (_TEXT if element in {"string", "bytes"} else 0), squared=True)(source, [], coster)


def _literal_int(operand: Operand, other: int) -> int:
    node = operand.node
    value = node.value if isinstance(node, Literal) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else other


def _sliced(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    if target is None:
        return None
    count = (_literal_int(arguments[1], target.size.high) - _literal_int(arguments[0], 0)) % (MOST + 1)
    return _allocated(1, Range(count, count))


def _ranged(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    count = _literal_int(arguments[0], MOST)
    return _allocated(1, Range(count, count))


def _flattened(target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
    if target is None:
        return None
    return _allocated(float(_literal_int(arguments[0], MOST) if arguments else 1), target.size)


def _sets(factor: float) -> _Rule:
    def rule(_target: Operand | None, arguments: list[Operand], _coster: _Coster) -> _Found | None:
        return arguments[0].size.times(arguments[1].size).scaled(factor).plus(ONE), None

    return rule


_ORDERS = [
    f"{name}_{kind}" for name in ("less", "less_equals", "greater", "greater_equals") for kind in ("string", "bytes")
]
_COSTS: Final[dict[str, _Rule]] = {
    "equals": _equal, "not_equals": _compared, **dict.fromkeys(_ORDERS, _compared), "in_list": _in_list,
    "matches_string": _matches, "contains_string": _contains, "starts_with_string": _of_first(_TEXT),
    "ends_with_string": _of_first(_TEXT), "string_to_bytes": _to_bytes, "bytes_to_string": _from_bytes,
    "strings_quote": _quoted, "string_format": _of_target(_TEXT, sized=False), "cidr_ip": _fixed(1),
}  # fmt: skip
"""By overload."""
_COSTS_OF_FUNCTIONS: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _searched),
    "url": _of_first(_TEXT, sized=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _of_target(_TEXT, sized=True)),
    "replace": _replaced, "split": _split, "join": _joined, "find": _finds, "findAll": _finds,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _of_first(_TEXT)),
    "ip.isCanonical": _of_first(2 * _TEXT),
    "containsIP": _contained(FREE, "string"),
    "containsCIDR": _contained(Range(4, 16).scaled(_TEXT).plus(ONE), "string"),
    "validate": _validated, "distinct": _made_list(2, squared=True), "reverse": _made_list(1), "slice": _sliced,
    "lists.range": _ranged, "flatten": _flattened, "sort": _sorted_list, "@sortByAssociatedKeys": _sorted_list,
    "sets.contains": _sets(1), "sets.intersects": _sets(1), "sets.equivalent": _sets(2),
}  # fmt: skip
"""By function, where Kubernetes says for all of its overloads."""
