"""Which of what is parked belongs together, and who waits for each other in a circle.

All of it costs what there are of nodes and edges, and their sorting. Nothing recurses, so that a chain of any length is no deeper
than a short one, and every answer is in an order that depends on the ids alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from wharfinger.runtime.fixpoint.model import Id

Lacks: TypeAlias = Mapping[Id, tuple[Id, ...]]
"""For each that is parked, what it is parked on: parked too, or not."""

_CLOSED: Final = 2**63


def connected(lacks: Lacks) -> list[list[Id]]:
    """The parked, by what they have to do with each other: each group is linked through ids that its members lack.

    Each group is sorted, and the groups are by their lowest member.
    """
    neighbours: dict[Id, list[Id]] = {}
    for who, lacked in lacks.items():
        for other in lacked:
            neighbours.setdefault(who, []).append(other)
            neighbours.setdefault(other, []).append(who)
    seen: set[Id] = set()
    groups: list[list[Id]] = []
    for who in sorted(lacks):
        if who not in seen:
            seen.add(who)
            reached = [who]
            for each in reached:  # grows
                fresh = [other for other in neighbours.get(each, ()) if other not in seen]
                seen.update(fresh)
                reached += dict.fromkeys(fresh)
            groups.append(sorted(each for each in reached if each in lacks))
    return groups


def bottoms(members: Iterable[Id], lacks: Lacks) -> list[list[Id]]:
    """The strongly connected components among ``members`` that lack nothing outside themselves which is parked; each is sorted.

    They are by their lowest member. One that lacks nothing that is parked is a component of its own.
    """
    found: list[list[Id]] = []
    for component in _strong(members, lacks):
        own = set(component)
        if all(other in own or other not in lacks for who in component for other in lacks[who]):
            found.append(sorted(component))
    return sorted(found)


def loop_from(who: Id, members: Iterable[Id], lacks: Lacks) -> tuple[Id, ...]:
    """A shortest circle from ``who`` through ``members``: each lacks the next, the last lacks ``who``. Nothing, if none is."""
    inside = set(members)
    came_from: dict[Id, Id] = {}
    reached = [who]
    for each in reached:  # grows, nearest first
        for other in lacks[each]:
            if other == who:
                path = [each]
                while path[-1] != who:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if other in inside and other not in came_from:
                came_from[other] = each
                reached.append(other)
    return ()


def _strong(members: Iterable[Id], lacks: Lacks) -> Iterator[list[Id]]:
    """Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972) on a stack of its own."""
    lowest: dict[Id, int] = {}
    """The earliest, by number, that is known to be in the same component; _CLOSED where the component is known."""
    open_: list[Id] = []
    for start in members:
        if start in lowest:
            continue
        lowest[start] = len(lowest)
        open_.append(start)
        path = [(start, lowest[start], iter(lacks[start]))]
        while path:
            who, number, rest = path[-1]
            for other in rest:
                if other not in lacks:
                    continue
                known = lowest.get(other)
                if known is None:
                    lowest[other] = len(lowest)
                    open_.append(other)
                    path.append((other, lowest[other], iter(lacks[other])))
                    break
                lowest[who] = min(lowest[who], known)
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[who])
                if lowest[who] == number:
                    component = _closed(who, open_)
                    lowest.update(dict.fromkeys(component, _CLOSED))
                    yield component


def _closed(who: Id, open_: list[Id]) -> list[Id]:
    component = [open_.pop()]
    while component[-1] != who:
        component.append(open_.pop())
    return component
