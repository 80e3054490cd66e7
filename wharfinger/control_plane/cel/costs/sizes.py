"""Sizes and costs as ranges, and what a call is given."""

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
"""Names of fields from ``self`` on, and ``@items`` and so on for what they hold."""


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


@dataclass(frozen=True, slots=True)
class Operand:
    """What a call is given: its type, its size if known, and where it stands in the schema."""

    type: Type
    size: Range
    path: Path
    node: Node | None


class Elements(Protocol):
    """Knows what stands for the elements of a list."""

    def element(self, operand: Operand) -> Operand | None:
        """The elements, None where the operand is no list."""
