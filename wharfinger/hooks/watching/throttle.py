"""How often a hook may run (``settings``, spec hook-protocol §1.4): a token bucket. Pure; moments are a steady clock's, in s."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True)
class Throttle:
    """At most ``burst`` runs at once, and one more for each ``interval`` that passes.

    Kept as the one moment at which the bucket will be full again, so that nothing has to tick.
    """

    interval: timedelta
    burst: int
    _full_at: float = float("-inf")

    def wait_s(self, now: float) -> float:
        """How long the next run must still wait; 0 where it may begin."""
        room = (self.burst - 1) * self.interval.total_seconds()
        return max(0.0, self._full_at - now - room)

    def take(self, now: float) -> None:
        """A run begins. One that did not wait is counted all the same."""
        self._full_at = max(self._full_at, now) + self.interval.total_seconds()

    def give_back(self) -> None:
        """A run that was to begin did not."""
        self._full_at -= self.interval.total_seconds()
