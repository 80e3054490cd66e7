"""Knots, and the choice of the edges that are kept in them. Nodes that name each other in a cycle are a knot.

Members of any-of and none-of groups are placed before the node that names them. Outside of cycles this is always possible. In a
cycle, which only soft edges can close, some of these edges must be dropped, and the choice must not depend on the sequence of
events. All hard edges of the knot are kept. Then the any-of edges are considered in sorted order, and after them the none-of
edges: an edge is kept unless its member already depends on the node that names the member. If an any-of edge was dropped, its
member is *late* in the knot. If a none-of edge was dropped, the node that excludes the member is a *refuser* of the member.
:mod:`wharfinger.runtime.scheduler.gates` decides a knot as a whole, with a rule for each case.

The choice depends only on the nodes of the knot. Nodes have positions, which are adjusted when an edge is added (Pearce and
Kelly, A dynamic topological sort algorithm for directed acyclic graphs, 2007), so an edge that agrees with the positions
costs almost nothing.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from wharfinger.runtime.fixpoint.circles import finished

Pairs = Mapping[str, Collection[str]]
"""A map from nodes to the nodes that each of them names."""


@dataclass(frozen=True, slots=True)
class Knot:
    """The nodes of one knot, in the order in which they are decided; ``position`` has the place of each node in this order.

    ``kept`` has the any-of members that come before the node that names them, ``late`` the any-of members that come after a
    node that names them. ``refused_by`` has, for a node, the nodes before it that exclude it, sorted.
    """

    members: tuple[str, ...]
    position: Mapping[str, int]
    kept: Mapping[str, frozenset[str]]
    late: frozenset[str]
    refused_by: Mapping[str, tuple[str, ...]]


def tie(hard: Pairs, any_of: Pairs, none_of: Pairs, order: Callable[[str], int]) -> Knot:
    """Return the knot whose members are the keys of ``hard``; edges to other nodes are ignored.

    No node may name itself, and hard edges must not close a cycle. ``order`` returns the declared order of a node. Nodes
    whose sequence is not determined by edges are sorted by this order, then by name.
    """
    line = _Line(hard, any_of, none_of)
    kept: dict[str, set[str]] = {}
    late = set()
    for name, member in _inside(any_of, hard):
        if line.put(member, name):
            kept.setdefault(name, set()).add(member)
        else:
            late.add(member)
    refused_by: dict[str, list[str]] = {}
    for name, member in _inside(none_of, hard):
        if not line.put(member, name):
            refused_by.setdefault(member, []).append(name)
    members = placed(line.before, order)
    return Knot(
        members,
        {name: index for index, name in enumerate(members)},
        {name: frozenset(found) for name, found in kept.items()},
        frozenset(late),
        {name: tuple(found) for name, found in refused_by.items()},
    )


def placed(before: Pairs, order: Callable[[str], int]) -> tuple[str, ...]:
    """Return the keys of ``before`` in topological order (Kahn's algorithm): each comes after the nodes that its value lists.
    Keys that may come next at the same time are sorted by order, then by name.
    """
    after: dict[str, list[str]] = {name: [] for name in before}
    missing = dict.fromkeys(before, 0)
    for name, found in before.items():
        for each in found:
            after[each].append(name)
            missing[name] += 1
    ready = [(order(name), name) for name, count in missing.items() if not count]
    heapq.heapify(ready)
    line = []
    while ready:
        _, name = heapq.heappop(ready)
        line.append(name)
        for each in after[name]:
            missing[each] -= 1
            if not missing[each]:
                heapq.heappush(ready, (order(each), each))
    return tuple(line)


def _inside(pairs: Pairs, knot: Pairs) -> Iterable[tuple[str, str]]:
    """Return a pair for each edge inside the knot: a node and a node that it names. The pairs are sorted."""
    return sorted((name, each) for name in knot for each in pairs[name] if each in knot)


class _Line:
    """A topological order of nodes that stays valid while edges are added."""

    def __init__(self, hard: Pairs, any_of: Pairs, none_of: Pairs) -> None:
        self.before: dict[str, set[str]] = {
            name: {each for each in found if each in hard} for name, found in hard.items()
        }
        self._after: dict[str, set[str]] = {name: set() for name in hard}
        for name, found in self.before.items():
            for each in found:
                self._after[each].add(name)
        # Any initial order that the hard edges allow is correct. If it also agrees with most soft edges, few nodes have to be
        # moved.
        soft = {name: [each for each in (*any_of[name], *none_of[name]) if each in hard] for name in hard}
        walk = finished(sorted(hard), lambda name: (*self.before[name], *soft[name]))
        near = {name: index for index, name in enumerate(walk)}
        self._at = {name: index for index, name in enumerate(placed(self.before, near.__getitem__))}

    def put(self, first: str, then: str) -> bool:
        """Add an edge so that ``first`` comes before ``then``; return False, without a change, if ``first`` depends on
        ``then``.
        """
        low, high = self._at[then], self._at[first]
        if high > low:
            building = self._reached(first, self.before, lambda at: at >= low, then)
            if then in building:
                return False
            built_on = self._reached(then, self._after, lambda at: at <= high, first)
            at = self._at.__getitem__
            moved = [*sorted(building, key=at), *sorted(built_on, key=at)]
            self._at.update(zip(moved, sorted(map(at, moved)), strict=True))
        self.before[then].add(first)
        self._after[first].add(then)
        return True

    def _reached(self, start: str, edges: Pairs, wanted: Callable[[int], bool], sought: str) -> set[str]:
        """Return the nodes that can be reached from ``start`` through nodes for whose positions ``wanted`` is true. Stop early
        if the node ``sought`` is found.
        """
        found, to_see = {start}, [start]
        while to_see and sought not in found:
            new = [each for each in edges[to_see.pop()] if each not in found and wanted(self._at[each])]
            found.update(new)
            to_see += new
        return found
