"""The orders of the scheduler that have not been performed yet: one entry for each package, in the order they were first
named.

Performing an order may send an event to the scheduler, which may return more orders. A new order for a package replaces its
waiting one: the last verdict, and the last order to run or to disable it. So there is never more than one entry for a package,
and no outdated order is performed (spec/runtime §13 item 1: no bound that could block, no lock).
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never

from wharfinger.runtime.scheduler.events import Decided, Disable, Effect, Schedule


@dataclass(frozen=True, slots=True)
class PackageOrders:
    """The orders for one package: report the decision, then run or disable the package; None means that there is no such
    order.
    """

    name: str
    decided: Decided | None = None
    order: Schedule | Disable | None = None


@dataclass(slots=True)
class Orders:
    """The orders that wait, with at most one entry for each package."""

    _waiting: deque[str] = field(default_factory=deque)
    _entries: dict[str, PackageOrders] = field(default_factory=dict)

    def put(self, effects: Iterable[Effect]) -> None:
        """Add an order; it replaces an earlier one about the same node."""
        for effect in effects:
            entry = self._entries.get(effect.name)
            if entry is None:
                entry = PackageOrders(effect.name)
                self._waiting.append(effect.name)
            match effect:
                case Decided(allowed=allowed):
                    # The reason for a waiting Disable no longer holds. If another one holds, a later Disable follows.
                    order = None if allowed and isinstance(entry.order, Disable) else entry.order
                    self._entries[effect.name] = PackageOrders(effect.name, effect, order)
                case Schedule() | Disable():
                    self._entries[effect.name] = replace(entry, order=effect)
                case _:
                    assert_never(effect)

    def take(self) -> PackageOrders | None:
        """Remove and return the oldest entry; None if there is none."""
        return self._entries.pop(self._waiting.popleft()) if self._waiting else None
