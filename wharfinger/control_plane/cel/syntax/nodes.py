"""The tree of an expression.

``at`` is the position of a node in the text. For a call of a function, it is the position of the opening parenthesis; for a
binary operator, the position of the operator.
"""

from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True, eq=False)
class Node:
    """Any part of an expression."""

    at: int


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A constant: a bool, int, :class:`~wharfinger.control_plane.cel.values.values.Uint`, float, text, bytes or None."""

    value: object


@dataclass(slots=True, eq=False)
class Ident(Node):
    """An identifier."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """A selection ``operand.field``; ``test`` is true if it stands for ``has(operand.field)``."""

    operand: Node
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A call of a function, of a function with a target (``target.function(arguments)``), or of an operator such as ``_+_``."""

    function: str
    arguments: list[Node]
    target: Node | None = None


@dataclass(slots=True, eq=False)
class ListNode(Node):
    """A list ``[a, ?b]``; ``optional`` are the indices of optional elements."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """A map ``{a: b, ?c: d}``: keys, values, and whether each entry is optional."""

    entries: list[tuple[Node, Node, bool]]


@dataclass(slots=True, eq=False)
class StructNode(Node):
    """An object ``Name{field: value}``; ``places`` are the positions of the fields' colons."""

    name: str
    fields: list[tuple[str, Node, bool]]
    places: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Fold(Node):
    """A loop over a range with an accumulator, made by a macro."""

    range: Node
    names: tuple[str, ...]
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node
    bind: bool = field(default=False)
    """True if the fold only binds a value to a name; its loop is then empty."""


ACCUMULATOR: Final = "@result"


def children(node: Node) -> list[Node]:
    """Return the direct parts of a node."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return ([] if node.target is None else [node.target]) + node.arguments
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, StructNode):
        return [value for _, value, _ in node.fields]
    if isinstance(node, Fold):
        return [node.range, node.start, node.condition, node.step, node.result]
    return []
