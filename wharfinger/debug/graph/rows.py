"""The order of the nodes in each column, chosen so that few edges cross: the middle step of a layered drawing.

Pure. The nodes are numbers, and their columns are known. The method is Sugiyama's (1981). An edge across several columns passes
through a *joint* in each column between its ends.

Edges to the same node share their joints, so forty packages that need the same package form a tree with one trunk, not forty
lines. Joints are numbered after the nodes. There are at most MAX_JOINTS joints; if there would be more, the longest edges have
none.

The order is improved by barycenter sweeps in both directions. The order with the fewest crossings is kept. In a large graph,
crossings are not counted, and the order of the last sweep is kept.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.debug.graph.layers import Edge

MAX_JOINTS: Final = 10_000
_SWEEPS: Final = 12
_WORTH_COUNTING: Final = 8_000
"""If an edge has a joint in a column, each part of it counts as a piece. Above this number of pieces, crossings are not
counted, and the order of the last sweep is used."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The order of the nodes and joints in each column, and the joints of each edge. An edge across several columns has a joint
    in each column that it passes.

    ``columns`` are the nodes and joints of each column from the top. ``left`` and ``right`` are the neighbors of each node or
    joint in the next column on that side. ``routes`` are the joints that each edge passes from its source on; None for a loop,
    and for an edge that has no joints because there would be too many.
    """

    columns: tuple[tuple[int, ...], ...]
    left: tuple[tuple[int, ...], ...]
    right: tuple[tuple[int, ...], ...]
    routes: tuple[tuple[int, ...] | None, ...]


def order_rows(column: Sequence[int], edges: Sequence[Edge]) -> Rows:
    """Return the vertical order of the nodes in each column, and the joints of each edge. ``column`` has the column of each
    node.

    A joint is the point at which a long edge passes a column. The two ends of an edge must be in different columns, except for
    an edge from a node to itself.
    """
    joined = _Joined(column)
    spans = sorted(range(len(edges)), key=lambda at: abs(column[edges[at].source] - column[edges[at].target]))
    routes: list[tuple[int, ...] | None] = [None] * len(edges)
    for at in spans:
        routes[at] = joined.route(edges[at])
    columns = joined.by_column()
    best, fewest = [list(each) for each in columns], -1
    for sweep in range(_SWEEPS):
        _sweep(columns, joined.left if sweep % 2 == 0 else joined.right, leftwards=sweep % 2 == 1)
        crossings = _crossings(columns, joined.left) if joined.pieces <= _WORTH_COUNTING else 0
        if fewest < 0 or crossings < fewest or joined.pieces > _WORTH_COUNTING:
            best, fewest = [list(each) for each in columns], crossings
        if crossings == 0 and joined.pieces <= _WORTH_COUNTING:
            break
    return Rows(tuple(map(tuple, best)), tuple(map(tuple, joined.left)), tuple(map(tuple, joined.right)), tuple(routes))


class _Joined:
    """The nodes of a graph, with joints inserted into long edges, so that each piece of an edge leads from one column to the
    next.
    """

    def __init__(self, column: Sequence[int]) -> None:
        self.column = list(column)
        self.left: list[list[int]] = [[] for _ in column]
        self.right: list[list[int]] = [[] for _ in column]
        self.pieces = 0
        self._nodes = len(column)
        self._joints: dict[tuple[int, int], int] = {}
        self._pieces: set[tuple[int, int]] = set()
        self._full = False

    def route(self, edge: Edge) -> tuple[int, ...] | None:
        """Return the joints of an edge from its source on, creating missing ones; None for a loop, and once there are too many
        joints.
        """
        if edge.source == edge.target or self._full:
            return None
        low, high = sorted((edge.source, edge.target), key=lambda node: self.column[node])
        between = range(self.column[low] + 1, self.column[high])
        missing = sum((low, at) not in self._joints for at in between)
        if missing and len(self.column) - self._nodes + missing > MAX_JOINTS:
            self._full = True
            return None
        joints = tuple(self._joint(low, at) for at in between)
        for first, second in zip((low, *joints), (*joints, high), strict=True):
            if (first, second) not in self._pieces:
                self._pieces.add((first, second))
                self.left[second].append(first)
                self.right[first].append(second)
                self.pieces += 1
        return joints[::-1] if low == edge.target else joints

    def by_column(self) -> list[list[int]]:
        """Return the nodes and joints of each column, in the order of their numbers."""
        columns: list[list[int]] = [[] for _ in range(max(self.column, default=-1) + 1)]
        for node, at in enumerate(self.column):
            columns[at].append(node)
        return columns

    def _joint(self, low: int, at: int) -> int:
        joint = self._joints.get((low, at))
        if joint is None:
            joint = self._joints[low, at] = len(self.column)
            self.column.append(at)
            self.left.append([])
            self.right.append([])
        return joint


def _sweep(columns: list[list[int]], neighbours: Sequence[Sequence[int]], *, leftwards: bool) -> None:
    """Order the nodes of each column by the middle of their neighbors in the previous column; a node without such neighbors
    roughly keeps its place.
    """
    place: dict[int, float] = {}
    for members in reversed(columns) if leftwards else columns:
        middle = {}
        for at, node in enumerate(members):
            near = neighbours[node]
            middle[node] = sum(place[each] for each in near) / len(near) if near else (at + 0.5) / len(members)
        members.sort(key=middle.__getitem__)
        for at, node in enumerate(members):
            place[node] = (at + 0.5) / len(members)


def _crossings(columns: Sequence[Sequence[int]], left: Sequence[Sequence[int]]) -> int:
    """Count the crossings of edges between neighboring columns."""
    place = {node: at for members in columns for at, node in enumerate(members)}
    total = 0
    for members in columns:
        above: list[int] = []
        for node in members:
            ends = sorted(place[each] for each in left[node])
            total += sum(len(above) - bisect_right(above, end) for end in ends)
            for end in ends:
                insort(above, end)
    return total
