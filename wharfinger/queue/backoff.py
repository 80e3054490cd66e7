"""The delay before a failed task runs again: capped exponential backoff with jitter (spec/runtime §3).

Pure: the caller passes the random number. The jitter keeps a thousand packages that failed together (for example because a
registry was down) from retrying together. The cap applies to the delay including its jitter, so ``max_s`` is the longest wait.
The number of retries is not limited; a permanent failure is not retried, but the machine (`queue.machine`) parks its task.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Delays in seconds. After ``n`` failures in a row, the delay is ``initial_s * factor ** (n - 1)``, but at most
    ``max_s / (1 + jitter)``. This delay is then changed at random by up to the fraction ``jitter``. So no delay exceeds
    ``max_s``.
    """

    initial_s: float = 15.0
    factor: float = 1.5
    max_s: float = 60.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a policy under which a delay could be zero, negative, shrinking or unbounded."""
        if not 0 < self.initial_s <= self.max_s < math.inf:
            raise ValueError(
                f"backoff: expected 0 < initial_s <= max_s < infinity, found {self.initial_s} and {self.max_s}"
            )
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"backoff: expected a finite factor of at least 1, found {self.factor}")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"backoff: expected a jitter in [0, 1), found {self.jitter}")

    def delay(self, failures: int, draw: float) -> float:
        """Return the seconds to wait after the ``failures``-th failure in a row (from 1); ``draw`` is uniform in [0, 1)."""
        if failures < 1 or not 0 <= draw < 1:
            raise ValueError(f"backoff: expected failures >= 1 and a draw in [0, 1), found {failures} and {draw}")
        ceiling = self.max_s / (1 + self.jitter)
        return min(self._plain(failures - 1), ceiling) * (1 + self.jitter * (2 * draw - 1))

    def _plain(self, steps: int) -> float:
        try:
            return self.initial_s * self.factor**steps
        except OverflowError:
            return math.inf
