"""The groups of parked nodes that are linked, and the nodes in them that wait for each other in a cycle.

The cost of every function is linear in the nodes and edges, apart from sorting. No function is recursive, so chains may have
any length. The order of each answer depends only on the ids.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from wharfinger.runtime.fixpoint.circles import shortest_cycle, strong_components
from wharfinger.runtime.fixpoint.model import Id

Lacks: TypeAlias = Mapping[Id, tuple[Id, ...]]
"""For each parked node, the ids on which it is parked. Nodes among these ids may be parked, too."""


def connected(lacks: Lacks) -> list[list[Id]]:
    """Return the parked nodes in groups. Two nodes are in one group if one lacks the other, if both lack the same
    id, or if such links connect them through other nodes.

    Each group is sorted, and the groups are sorted by their lowest member.
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
            for each in reached:  # grows during this loop
                fresh = [other for other in neighbours.get(each, ()) if other not in seen]
                seen.update(fresh)
                reached += dict.fromkeys(fresh)
            groups.append(sorted(each for each in reached if each in lacks))
    return groups


def bottoms(members: Iterable[Id], lacks: Lacks) -> list[list[Id]]:
    """Return the strongly connected components of ``members`` that lack no parked node outside of themselves; each component is
    sorted.

    ``members`` is a group of `connected`. The components are sorted by their lowest member. A node that lacks no parked node is
    a component of its own.
    """
    found: list[list[Id]] = []
    for component in strong_components(members, lambda who: (other for other in lacks[who] if other in lacks)):
        own = set(component)
        if all(other in own or other not in lacks for who in component for other in lacks[who]):
            found.append(sorted(component))
    return sorted(found)


def loop_from(who: Id, members: Iterable[Id], lacks: Lacks) -> tuple[Id, ...]:
    """Return a shortest cycle from ``who`` through ``members``: each node lacks the next one, the last lacks ``who``; empty
    if there is no cycle.
    """
    inside = set(members)
    return shortest_cycle(who, lambda each: (other for other in lacks[each] if other in inside))
