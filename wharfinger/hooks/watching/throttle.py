"""The limit on how often a hook may run (``settings``, spec hook-protocol §1.4): a token bucket. Pure.

Times are in seconds of a monotonic clock.
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True)
class Throttle:
    """A limit: ``burst`` runs may follow each other immediately, and one more run may begin for each ``interval`` that passes.

    This is a token bucket. It is stored as the time at which it will be full again, so no task has to refill it.
    """

    interval: timedelta
    burst: int
    _full_at: float = float("-inf")

    def wait_s(self, now: float) -> float:
        """Return the seconds that the next run must still wait; 0 if it may begin."""
        room = (self.burst - 1) * self.interval.total_seconds()
        return max(0.0, self._full_at - now - room)

    def take(self, now: float) -> None:
        """Count a run that begins. A run that did not wait is counted, too."""
        self._full_at = max(self._full_at, now) + self.interval.total_seconds()

    def give_back(self) -> None:
        """Give back the token of a run that did not begin after all."""
        self._full_at -= self.interval.total_seconds()
