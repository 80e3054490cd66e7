"""The effects of the scheduler that have not been carried out yet: one entry for each package, the oldest entry first.

While an effect is carried out, an event may be sent to the scheduler, which may return more effects. An entry has the last
decision about its package, and the last request to run or to disable the package; a new decision or request replaces the waiting
one. So there is never more than one entry for a package, and no outdated effect is carried out (spec/runtime §13 item 1: no
limit that could block, no lock).
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never

from wharfinger.runtime.scheduler.events import Decided, Disable, Effect, Schedule


@dataclass(frozen=True, slots=True)
class PackageOrders:
    """The effects for one package. ``decided`` is a decision to report, and ``order`` is a request to run or to disable the
    package; each is None if there is no such effect. The decision is reported before the request is carried out.
    """

    name: str
    decided: Decided | None = None
    order: Schedule | Disable | None = None


@dataclass(slots=True)
class PendingDecisions:
    """The effects that have not been carried out yet, with at most one entry for each package."""

    _waiting: deque[str] = field(default_factory=deque)
    _entries: dict[str, PackageOrders] = field(default_factory=dict)

    def put(self, effects: Iterable[Effect]) -> None:
        """Add effects. A new decision, or a new request to run or to disable, replaces the earlier one for the same package."""
        for effect in effects:
            entry = self._entries.get(effect.name)
            if entry is None:
                entry = PackageOrders(effect.name)
                self._waiting.append(effect.name)
            match effect:
                case Decided(allowed=allowed):
                    # If the package may be on again, a Disable that waits is dropped, because its reason no longer holds. If
                    # there is another reason, another Disable follows.
                    order = None if allowed and isinstance(entry.order, Disable) else entry.order
                    self._entries[effect.name] = PackageOrders(effect.name, effect, order)
                case Schedule() | Disable():
                    self._entries[effect.name] = replace(entry, order=effect)
                case _:
                    assert_never(effect)

    def take(self) -> PackageOrders | None:
        """Remove and return the oldest entry; None if there is none."""
        return self._entries.pop(self._waiting.popleft()) if self._waiting else None
