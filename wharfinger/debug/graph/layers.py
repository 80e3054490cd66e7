"""The column of each node in a drawing of a graph: a dependency is in a column to the left of its dependents.

Pure, on numbered nodes. Such columns do not exist for a graph with cycles. Therefore all nodes are first put in one line, targets
before sources as far as possible. An edge whose source is before its target in the line is treated as if it were reversed. The
strongly connected components are in the line in the order of Tarjan's algorithm. Inside a component, only the strong edges (see
`Edge`) determine the order, so a strong edge is reversed only if strong edges form a cycle themselves.

Then each node goes into the column right after its last dependency. The node is moved to the column right before its first
dependent if the move shortens more edges than it lengthens.

The time is linear in nodes and edges. There is no recursion, so a chain of ten thousand nodes is fine. The result depends only
on the numbers of the nodes and on the edges.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Edge(NamedTuple):
    """An edge from the node number ``source`` to the node number ``target``. A cycle is broken at an edge that is not
    ``strong``, if the cycle has such an edge.
    """

    source: int
    target: int
    strong: bool = True


def columns_of(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return the column of each of ``count`` nodes, counted from 0, with no empty column between.

    The ends of an edge are never in the same column, except those of a loop.
    """
    place = {node: at for at, node in enumerate(line_of(count, edges))}
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target, _ in edges:
        if source != target:
            first, second = (target, source) if place[target] < place[source] else (source, target)
            before[second].append(first)
            after[first].append(second)
    column = [0] * count
    for node in place:
        column[node] = max((column[each] + 1 for each in before[node]), default=0)
    for node in reversed(place):
        if len(after[node]) > len(before[node]):
            column[node] = min(column[each] for each in after[node]) - 1
    used = {each: at for at, each in enumerate(sorted(set(column)))}
    return [used[each] for each in column]


def line_of(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return all nodes in a line: targets come before their sources, except where a cycle prevents that."""
    every: list[list[int]] = [[] for _ in range(count)]
    strong: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        every[edge.source].append(edge.target)
        if edge.strong:
            strong[edge.source].append(edge.target)
    line: list[int] = []
    for component in _components(every):
        line += component if len(component) == 1 else _targets_first(component, strong)
    return line


def _targets_first(component: Sequence[int], nexts: Sequence[Sequence[int]]) -> list[int]:
    """Return the members, each after its targets, except where a cycle prevents that. The search begins at the lowest number."""
    members, seen, line = set(component), set[int](), list[int]()
    for start in sorted(component):
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(nexts[start]))]
        while path:
            node, rest = path[-1]
            following = next((each for each in rest if each in members and each not in seen), None)
            if following is None:
                path.pop()
                line.append(node)
            else:
                seen.add(following)
                path.append((following, iter(nexts[following])))
    return line


def _components(nexts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components (Tarjan, 1972), each after the components that it points at."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    pending: list[int] = []
    on_pending: set[int] = set()
    for start in range(len(nexts)):
        if start in index:
            continue
        path: list[tuple[int, Iterator[int]]] = []
        following: int | None = start
        while following is not None or path:
            if following is not None:
                index[following] = low[following] = len(index)
                pending.append(following)
                on_pending.add(following)
                path.append((following, iter(nexts[following])))
            node, rest = path[-1]
            following = None
            for each in rest:
                if each not in index:
                    following = each
                    break
                if each in on_pending:
                    low[node] = min(low[node], index[each])
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    component = _popped(pending, node)
                    on_pending.difference_update(component)
                    yield component


def _popped(pending: list[int], last: int) -> list[int]:
    component = [pending.pop()]
    while component[-1] != last:
        component.append(pending.pop())
    return sorted(component)
