"""The parts of a cost estimate for CEL expressions: sizes and costs as ranges, and the operands of calls."""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from wharfinger.control_plane.cel.syntax.nodes import Node
from wharfinger.control_plane.cel.values.types import Type

MOST: Final = 2**64 - 1
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
TEXT_COST: Final = 0.1
REGEX_COST: Final = 0.25
Path = tuple[str, ...]
"""A path in a schema: the names of fields, beginning with ``self``.

``@items`` and ``@indices`` stand for the items and indices of a list, ``@values`` and ``@keys`` for the values and keys of a
map.
"""


class Range(NamedTuple):
    """The lower and the upper limit of a size or a cost."""

    low: int
    high: int

    def plus(self, other: "Range") -> "Range":
        """Return the sum of two ranges."""
        return Range(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: "Range") -> "Range":
        """Return the product of two ranges."""
        return Range(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> "Range":
        """Return the range multiplied by a number, rounded up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Return the range that covers both ranges."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    return MOST if product >= 2.0**64 else math.ceil(product)


ONE: Final = Range(1, 1)
FREE: Final = Range(0, 0)
UNKNOWN: Final = Range(0, MOST)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a call: its type, its size (unlimited if unknown), and its path in the schema."""

    type: Type
    size: Range
    path: Path
    node: Node | None


class Elements(Protocol):
    """The interface of objects that return an operand for the elements of a list operand."""

    def element(self, operand: Operand) -> Operand | None:
        """Return the operand that represents each element, or None if the operand is not a list."""
