"""The positions in a drawing: boxes in columns, edges as lines between them (a layered layout, after Sugiyama).

Pure: sizes and edges in, coordinates out, and equal input gives equal output. The columns are computed by
:mod:`wharfinger.debug.graph.layers` and the order within a column by :mod:`wharfinger.debug.graph.rows`. This module moves
each box towards the middle of its neighbors as far as the other boxes in its column allow (least squares, solved exactly by
the pool-adjacent-violators algorithm).

Unconnected parts of the graph are laid out separately and packed in rows (*shelves*), so a hundred packages without dependencies
form a block, not a tower.

Dependencies are on the left. All boxes of a column are as wide as its widest box. y grows downwards.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from wharfinger.debug.graph.layers import Edge, columns_of
from wharfinger.debug.graph.rows import Rows, order_rows

_ROW_GAP: Final = 14.0
_JOINT: Final = 10.0
"""The height of a joint (see `rows`): the space that a line needs where it passes between boxes."""
_COLUMN_GAP: Final = 80.0
_WIDEST_GAP: Final = 240.0
_PART_GAP: Final = 32.0
_ROUNDS: Final = 10
_ROUNDS_OF_MANY: Final = 4
_MANY: Final = 5_000
_SHAPE: Final = 1.5
"""The preferred ratio of width to height of the whole drawing."""


class Size(NamedTuple):
    """The size of a box."""

    width: float
    height: float


class Point(NamedTuple):
    """A point on an edge."""

    x: int
    y: int


class Box(NamedTuple):
    """A box; ``x`` and ``y`` are its upper left corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A box for each node, and a line for each edge from its source to its target. A loop (an edge from a node to
    itself) has no points.

    A line crosses the gap between two columns from point 0 to 1, from 2 to 3 and so on. Between these pairs it goes straight
    through a column.
    """

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[tuple[Point, ...], ...]


def lay_out(sizes: Sequence[Size], edges: Sequence[Edge]) -> Layout:
    """Lay out boxes of these sizes, connected by these edges."""
    boxes: dict[int, Box] = {}
    lines: dict[int, tuple[Point, ...]] = {}
    parts = [_part(nodes, sizes, edges, inside) for nodes, inside in _connected(len(sizes), edges)]
    width, height, places = _packed([(part.width, part.height) for part in parts])
    for part, place in zip(parts, places, strict=True):
        x, y = map(
            round, place
        )  # rounded once for all boxes and lines, so that each line still ends at the middle of its box
        for node, box in part.boxes.items():
            boxes[node] = Box(box.x + x, box.y + y, box.width, box.height)
        for at, points in part.lines.items():
            lines[at] = tuple(Point(px + x, py + y) for px, py in points)
    return Layout(
        math.ceil(width),
        math.ceil(height),
        tuple(boxes[node] for node in range(len(sizes))),
        tuple(lines.get(at, ()) for at in range(len(edges))),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """One connected part of the graph, laid out with its upper left corner at (0, 0)."""

    width: float
    height: float
    boxes: dict[int, Box]
    lines: dict[int, tuple[Point, ...]]


def _connected(count: int, edges: Sequence[Edge]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the nodes and the edges of each connected part; the largest first, single nodes last."""
    near: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        near[edge.source].append(edge.target)
        near[edge.target].append(edge.source)
    part = [-1] * count
    members: list[list[int]] = []
    for start in range(count):
        if part[start] < 0:
            part[start], found = len(members), [start]
            for node in found:
                for each in near[node]:
                    if part[each] < 0:
                        part[each] = len(members)
                        found.append(each)
            members.append(sorted(found))
    inside: defaultdict[int, list[int]] = defaultdict(list)
    for at, edge in enumerate(edges):
        inside[part[edge.source]].append(at)
    for number in sorted(range(len(members)), key=lambda each: (-len(members[each]), each)):
        yield members[number], inside[number]


def _part(nodes: Sequence[int], sizes: Sequence[Size], edges: Sequence[Edge], inside: Sequence[int]) -> _Part:
    number = {node: at for at, node in enumerate(nodes)}
    own = [Edge(number[edges[at].source], number[edges[at].target], edges[at].strong) for at in inside]
    column = columns_of(len(nodes), own)
    rows = order_rows(column, own)
    heights = [sizes[node].height for node in nodes]
    middle = _middles(rows, heights)
    widths = [
        max((sizes[nodes[each]].width for each in members if each < len(nodes)), default=0.0)
        for members in rows.columns
    ]
    starts = _starts(rows, widths)
    top = min(y - _height(each, heights) / 2 for each, y in enumerate(middle))
    boxes = {}
    for each, node in enumerate(nodes):
        at = column[each]
        y = middle[each] - heights[each] / 2 - top
        boxes[node] = Box(round(starts[at]), round(y), round(widths[at]), round(heights[each]))
    bottom = max(y + _height(each, heights) / 2 for each, y in enumerate(middle))
    columns = {each: at for at, members in enumerate(rows.columns) for each in members}
    lanes = _Lanes(columns, starts, widths, [y - top for y in middle])
    lines = {at: lanes.line(edge, route) for at, edge, route in zip(inside, own, rows.routes, strict=True)}
    return _Part(starts[-1] + widths[-1], bottom - top, boxes, lines)


def _height(each: int, heights: Sequence[float]) -> float:
    return heights[each] if each < len(heights) else _JOINT


def _starts(rows: Rows, widths: Sequence[float]) -> list[float]:
    """Return the left side of each column; a gap is wider if more pieces of edges cross it."""
    starts = [0.0]
    for at in range(1, len(widths)):
        pieces = sum(len(rows.left[each]) for each in rows.columns[at])
        starts.append(starts[-1] + widths[at - 1] + min(_COLUMN_GAP + 3.0 * pieces, _WIDEST_GAP))
    return starts


def _middles(rows: Rows, heights: Sequence[float]) -> list[float]:
    """Return the y of the middle of every node and joint."""
    middle = [0.0] * len(rows.left)
    for members in rows.columns:
        offsets = _offsets(members, heights)
        for each, offset in zip(members, offsets, strict=True):
            middle[each] = offset - offsets[-1] / 2
    rounds = _ROUNDS if len(middle) <= _MANY else _ROUNDS_OF_MANY
    for number in range(1, rounds + 1):
        last = number == rounds
        for members in rows.columns:
            _settle(members, rows, heights, middle, left=True, right=last)
        for members in reversed(rows.columns):
            _settle(members, rows, heights, middle, left=last, right=True)
    return middle


def _offsets(members: Sequence[int], heights: Sequence[float]) -> list[float]:
    """Return, for each member of a column, the smallest possible distance of its middle from the middle of the first member."""
    offsets = [0.0]
    for above, below in pairwise(members):
        both_joints = above >= len(heights) and below >= len(heights)
        gap = 0.0 if both_joints else _ROW_GAP
        offsets.append(offsets[-1] + (_height(above, heights) + _height(below, heights)) / 2 + gap)
    return offsets


def _settle(
    members: Sequence[int], rows: Rows, heights: Sequence[float], middle: list[float], *, left: bool, right: bool
) -> None:
    """Move the nodes and joints of a column as near to their neighbors as possible without changing their order. Joints of long
    lines have the largest weight, so these lines become straight.
    """
    offsets = _offsets(members, heights)
    ideal: list[tuple[float, float]] = []
    for each, offset in zip(members, offsets, strict=True):
        joint, total, weight = each >= len(heights), 0.0, 0.0
        for near in (*(rows.left[each] if left else ()), *(rows.right[each] if right else ())):
            pull = 1.0 + 3.0 * joint + 3.0 * (near >= len(heights)) * joint
            total += pull * middle[near]
            weight += pull
        ideal.append((total / weight - offset, weight) if weight else (middle[each] - offset, 0.1))
    for each, offset, at in zip(members, offsets, _monotone(ideal), strict=True):
        middle[each] = at + offset


def _monotone(ideal: Iterable[tuple[float, float]]) -> Iterator[float]:
    """Yield the non-decreasing sequence that is nearest to the wanted numbers, by weighted least squares (the
    pool-adjacent-violators algorithm).
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in ideal:
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, heavy, count = pools.pop()
            both = heavy + pool[1]
            pool = ((mean * heavy + pool[0] * pool[1]) / both, both, count + pool[2])
        pools.append(pool)
    for value, _, count in pools:
        for _ in range(count):
            yield value


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The geometry of the columns, between which lines are drawn. A line bends at *joints* in the columns that it passes.
    ``column`` maps every node and joint to its column.
    """

    column: Mapping[int, int]
    starts: Sequence[float]
    widths: Sequence[float]
    middle: Sequence[float]

    def line(self, edge: Edge, route: tuple[int, ...] | None) -> tuple[Point, ...]:
        """Return the points of an edge's line. It begins and ends at the sides of the two boxes that face each other. ``route``
        has the joints of the edge.
        """
        if edge.source == edge.target:
            return ()
        leftwards = self.column[edge.target] < self.column[edge.source]
        points = [self._point(edge.source, right=not leftwards)]
        for joint in route or ():
            points.append(self._point(joint, right=leftwards))
            points.append(self._point(joint, right=not leftwards))
        points.append(self._point(edge.target, right=leftwards))
        return tuple(points)

    def _point(self, each: int, *, right: bool) -> Point:
        column = self.column[each]
        return Point(round(self.starts[column] + self.widths[column] * right), round(self.middle[each]))


def _packed(parts: Sequence[tuple[float, float]]) -> tuple[float, float, list[tuple[float, float]]]:
    """Pack all parts in rows (*shelves*); return the total width and height, and the position of each part.

    Parts are placed from left to right; on a shelf they may also be placed below each other.
    """
    area = sum((width + _PART_GAP) * (height + _PART_GAP) for width, height in parts)
    limit = max([math.sqrt(area * _SHAPE), *(width for width, _ in parts)])
    places: dict[int, tuple[float, float]] = {}
    top = x = y = shelf = stack = 0.0
    for number in sorted(range(len(parts)), key=lambda each: (-parts[each][1], each)):
        width, height = parts[number]
        if stack and y + height <= top + shelf and width <= stack:
            places[number] = (x, y)
            y += height + _ROW_GAP
            continue
        if stack:
            x += stack + _PART_GAP
        if x + width > limit or not shelf:
            top, x, shelf = (top + shelf + _PART_GAP if shelf else 0.0), 0.0, height
        places[number], stack, y = (x, top), width, top + height + _ROW_GAP
    right = max((places[each][0] + parts[each][0] for each in places), default=0.0)
    return right, top + shelf, [places[each] for each in range(len(parts))]
