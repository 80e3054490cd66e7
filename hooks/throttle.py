"""How often a hook may run: a token bucket (spec hook-protocol §2.7). Pure; the clock's reading comes in, in seconds."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class Throttle:
    """One run each ``interval``, and up to ``burst`` at once after a pause; 0 s is no bound, a burst of 0 counts as 1."""

    interval: timedelta
    burst: int
    _tokens: float = field(init=False)
    _at: float | None = None

    def __post_init__(self) -> None:
        """Full at first."""
        self._tokens = float(max(1, self.burst))

    def wait_s(self, now: float) -> float:
        """How long until the next run may begin; 0.0 if it may now."""
        if self.interval <= timedelta():
            return 0.0
        return max(0.0, (1.0 - self._refilled(now)) * self.interval.total_seconds())

    def take(self, now: float) -> None:
        """A run begins."""
        if self.interval > timedelta():
            self._tokens, self._at = self._refilled(now) - 1.0, now

    def _refilled(self, now: float) -> float:
        if self._at is None:
            return self._tokens
        gained = max(0.0, now - self._at) / self.interval.total_seconds()
        return min(float(max(1, self.burst)), self._tokens + gained)
