"""The barrier between orders: a node may run once no node of a lower effective order is still waiting or running.

A tier is an id of the fixpoint engine without a body (DESIGN §7). A node parks on the highest tier below it that is not
released. So the release of a tier wakes only the nodes that wait for this tier, however many tiers there are. The nodes that
hold a tier (those of its order that are not released) are counted, so that adding or releasing a node needs no search.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rpds import HashTrieMap

from wharfinger.runtime.fixpoint.model import Id

_KIND: Final = "Tier"
_NONE: "Final[HashTrieMap[int, int]]" = HashTrieMap()


def tier_id(order: int) -> Id:
    """Return the id of the tier of an order, which messages show as well."""
    return Id(_KIND, "", str(order))


@dataclass(frozen=True, slots=True)
class Tiers:
    """The number of nodes that hold each effective order; orders without a holder are left out."""

    held: "HashTrieMap[int, int]" = _NONE

    def moved(self, before: int | None, after: int | None) -> "Tiers":
        """Count a node that held the order ``before`` and now holds ``after``; None: no order."""
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
        """Return whether no node holds an order, so that nothing runs or will run without an event."""
        return not self.held

    def is_held(self, order: int) -> bool:
        """Return whether any node holds an order."""
        return order in self.held

    def below(self, order: int) -> int | None:
        """Return the highest held order below ``order``, for which a node of ``order`` waits; None if no lower order is held."""
        return max((each for each in self._orders() if each < order), default=None)

    def _orders(self) -> Iterable[int]:
        return self.held.keys()
