"""The barriers between orders: a node may run once all nodes of lower effective orders are released. A node is released if it
is active, if its run has failed, or if it waits, directly or not, for a package whose run has failed.

For the fixpoint engine, a tier is an id that no node has: nodes wait for it, and the scheduler reports its release to the
engine. A node *holds* the tier of its order until the node is released. A tier without holders is released. A node is parked on
the highest unreleased tier below its own order. So the release of a tier wakes only the nodes that wait for this tier, however
many tiers there are. The holders of each tier are counted, so that adding or releasing a node needs no search.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rpds import HashTrieMap

from wharfinger.runtime.fixpoint.model import Id

_KIND: Final = "Tier"
_NONE: "Final[HashTrieMap[int, int]]" = HashTrieMap()


def tier_id(order: int) -> Id:
    """Return the id for which nodes wait in the fixpoint engine until the tier of an order is released."""
    return Id(_KIND, "", str(order))


@dataclass(frozen=True, slots=True)
class Tiers:
    """The number of nodes that hold each tier. The keys are the effective orders of the tiers; tiers without holders are left
    out.
    """

    held: "HashTrieMap[int, int]" = _NONE

    def moved(self, before: int | None, after: int | None) -> "Tiers":
        """Return the numbers of holders after a node has moved from the tier of the order ``before`` to the tier of the order
        ``after``.

        If ``before`` is None, the node held no tier before. If ``after`` is None, it holds no tier now.
        """
        if before == after:
            return self
        held = self.held
        if before is not None:
            count = held[before] - 1
            held = held.insert(before, count) if count else held.remove(before)
        if after is not None:
            held = held.insert(after, (held.get(after) or 0) + 1)
        return Tiers(held)

    @property
    def at_rest(self) -> bool:
        """Return whether no tier has holders. If so, no node runs, and none will begin to run before the next event."""
        return not self.held

    def is_held(self, order: int) -> bool:
        """Return whether the tier of an order has holders: nodes of this order that are not released yet."""
        return order in self.held

    def below(self, order: int) -> int | None:
        """Return the tier that a node of ``order`` waits for: the highest lower tier that has holders. Return None if no lower
        tier has holders.
        """
        return max((each for each in self._orders() if each < order), default=None)

    def _orders(self) -> Iterable[int]:
        return self.held.keys()
