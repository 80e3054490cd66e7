"""Cycles in a graph: strongly connected components, the component of one node, and the shortest cycle through a node.

`strong_components` is Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972) with an explicit stack: even
a chain of thousands of nodes needs no recursion, and every node and every edge is visited once. `circle_of` walks along the
edges and against them at the same time, and stops when the shorter of the two walks ends. So a node to which no other node
points costs almost nothing, however many nodes its own edges lead to.

Pure. The caller passes the edges as functions, and they are never stored.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)
"""The type of the nodes."""
Edges: TypeAlias = Callable[[T], Iterable[T]]
"""A function that returns the neighbors of a node in one direction: the nodes it points to, or the nodes that point to it."""

_DONE: Final = 2**63


def strong_components(names: Iterable[T], targets: Edges[T]) -> list[list[T]]:
    """Return the components of ``names``, each after the components that it points to; targets that are not in ``names`` are
    ignored.
    """
    wanted = dict.fromkeys(names)
    search = _Search(wanted, targets)
    for name in wanted:
        search.visit(name)
    return search.components


def circle_of(name: T, targets: Edges[T], sources: Edges[T]) -> set[T]:
    """Return the component of ``name``: the node itself, and all nodes that it reaches both by ``targets`` and by their inverse,
    ``sources``.
    """
    below, above = {name}, {name}
    down, up = _steps(below, targets), _steps(above, sources)
    while True:
        if next(down, None) is None:
            pointing: dict[T, list[T]] = {each: [] for each in below}
            for each in below:
                for target in targets(each):
                    pointing[target].append(each)
            return _reached(name, pointing.__getitem__)
        if next(up, None) is None:
            return _reached(name, lambda each: (target for target in targets(each) if target in above))


def shortest_cycle(start: T, targets: Edges[T]) -> tuple[T, ...]:
    """Return the shortest cycle through ``start``: each node points to the next, the last to the first; empty if there is
    none.

    If several cycles are equally short, return the cycle whose nodes ``targets`` yields first.
    """
    came_from: dict[T, T] = {}
    reached = [start]
    for name in reached:  # grows during this loop, the nearest nodes first
        for each in targets(name):
            if each == start:
                path = [name]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if each not in came_from:
                came_from[each] = name
                reached.append(each)
    return ()


def finished(names: Iterable[T], targets: Edges[T]) -> list[T]:
    """Return ``names``, and all nodes that they lead to, in depth-first postorder: each node after the nodes that it points to,
    except along edges that close a cycle.
    """
    found: set[T] = set()
    left: list[T] = []
    path: list[tuple[T, Iterator[T]]] = []

    def enter(name: T) -> None:
        found.add(name)
        path.append((name, iter(targets(name))))

    for start in names:
        if start not in found:
            enter(start)
        while path:
            name, rest = path[-1]
            further = next((each for each in rest if each not in found), None)
            if further is None:
                left.append(name)
                path.pop()
            else:
                enter(further)
    return left


def _steps(found: set[T], edges: Edges[T]) -> Iterator[bool]:
    """Walk on from the nodes in ``found``, and add each new node to ``found``. Yield after every edge, so that the caller can
    stop the walk.
    """
    to_see = list(found)
    while to_see:
        for each in edges(to_see.pop()):
            if each not in found:
                found.add(each)
                to_see.append(each)
            yield True


def _reached(start: T, edges: Edges[T]) -> set[T]:
    found = {start}
    for _ in _steps(found, edges):
        pass
    return found


class _Search(Generic[T]):
    def __init__(self, wanted: Iterable[T], targets: Edges[T]) -> None:
        self.components: list[list[T]] = []
        self._wanted = set(wanted)
        self._targets = targets
        self._lowest: dict[T, int] = {}
        """For each visited node, the lowest number of a node that is known to be in the same component; _DONE once the
        component is complete. Nodes are numbered in the order in which they are visited.
        """
        self._open: list[T] = []
        self._path: list[tuple[T, int, Iterator[T]]] = []

    def visit(self, name: T) -> None:
        if name in self._lowest:
            return
        self._enter(name)
        while self._path:
            name, number, rest = self._path[-1]
            for each in rest:
                known = self._lowest.get(each)
                if known is not None:
                    self._lowest[name] = min(self._lowest[name], known)
                elif each in self._wanted:
                    self._enter(each)
                    break
            else:
                self._leave(name, number)

    def _enter(self, name: T) -> None:
        number = self._lowest[name] = len(self._lowest)
        self._open.append(name)
        self._path.append((name, number, iter(self._targets(name))))

    def _leave(self, name: T, number: int) -> None:
        self._path.pop()
        lowest = self._lowest[name]
        if lowest == number:
            component: list[T] = []
            while not component or component[-1] != name:
                component.append(self._open.pop())
                self._lowest[component[-1]] = _DONE
            self.components.append(component)
        else:
            parent = self._path[-1][0]
            self._lowest[parent] = min(self._lowest[parent], lowest)
