"""Which of what is parked belongs together, and who waits for each other in a circle.

All of it costs what there are of nodes and edges, and their sorting. Nothing recurses, so that a chain of any length is no deeper
than a short one, and every answer is in an order that depends on the ids alone.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from wharfinger.runtime.fixpoint.circles import shortest_cycle, strong_components
from wharfinger.runtime.fixpoint.model import Id

Lacks: TypeAlias = Mapping[Id, tuple[Id, ...]]
"""For each that is parked, what it is parked on: parked too, or not."""


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
    """The strongly connected components of ``members`` that lack nothing outside themselves which is parked; each is sorted.

    ``members`` are a group of `connected`. By lowest member; one that lacks nothing that is parked is a component of its own.
    """
    found: list[list[Id]] = []
    for component in strong_components(members, lambda who: (other for other in lacks[who] if other in lacks)):
        own = set(component)
        if all(other in own or other not in lacks for who in component for other in lacks[who]):
            found.append(sorted(component))
    return sorted(found)


def loop_from(who: Id, members: Iterable[Id], lacks: Lacks) -> tuple[Id, ...]:
    """A shortest circle from ``who`` through ``members``: each lacks the next, the last lacks ``who``. Nothing, if none is."""
    inside = set(members)
    return shortest_cycle(who, lambda each: (other for other in lacks[each] if other in inside))
