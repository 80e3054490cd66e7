"""The estimate of the highest possible cost of an expression, from the sizes of its values (``checker.Cost`` in cel-go)."""

from dataclasses import dataclass
from typing import NamedTuple

from wharfinger.control_plane.cel.checking.checker import Checked
from wharfinger.control_plane.cel.costs.cost_rules import COSTS, COSTS_OF_FUNCTIONS
from wharfinger.control_plane.cel.costs.sizes import (
    FREE,
    LIST_COST,
    MAP_COST,
    MOST,
    ONE,
    TEXT_COST,
    UNKNOWN,
    Operand,
    Path,
    Range,
)
from wharfinger.control_plane.cel.syntax.nodes import (
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
from wharfinger.control_plane.cel.values.schema_types import Declared
from wharfinger.control_plane.cel.values.types import DYN, Type, unwrapped


class Entry(NamedTuple):
    """The sizes of the keys and values of a map, or of the indices and elements of a list; ``kind`` is ``map`` or ``list``."""

    kind: str
    key: Range
    value: Range


@dataclass(slots=True)
class _Local:
    path: Path
    size: Range | None
    entry: Entry | None


def estimate(checked: Checked, root: Declared) -> int:
    """Return the highest possible cost of an expression."""
    return _Coster(checked, root).cost(checked.root).high


class _Coster:
    def __init__(self, checked: Checked, root: Declared) -> None:
        self._checked = checked
        self._root = root
        self._paths: dict[Node, Path] = {}
        self._sizes: dict[Node, Range] = {}
        self._entries: dict[Node, Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        """Return the cost of a node."""
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
        """Return the cost of one overload of a call, including the call's arguments, and the size of its result (None if the
        size is not known).
        """
        if overload in {"logical_and", "logical_or"}:
            return Range(costs[0].low, costs[0].plus(costs[1]).high), None
        if overload == "conditional":
            self._joined_entries(node, node.arguments[1], node.arguments[2])
            return costs[0].plus(costs[1].union(costs[2])), arguments[1].size.union(arguments[2].size)
        if overload in {"add_string", "add_bytes", "add_list"}:
            self._joined_entries(node, node.arguments[0], node.arguments[1])
            size = arguments[0].size.plus(arguments[1].size)
            return (ONE if overload == "add_list" else size.scaled(TEXT_COST)).plus(together), size
        rule = COSTS.get(overload) or COSTS_OF_FUNCTIONS.get(node.function)
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

    def _path(self, node: Node) -> Path:
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

    def declared_size(self, path: Path) -> Range | None:
        """Return the size that the schema declares at a path; None if the schema declares nothing there."""
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
        """Return the operand that represents each element of a list, or None if the operand is not a list."""
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
