"""The fence around writes: a request that may change the cluster is sent only while the Lease is held.

A client asks the fence just before the first byte of a write is sent (``ClientOptions.before_write``), after all waits (for a
turn, a retry or a connection). A write may be delayed in this process for a long time, because the process was stopped, starved
or suspended. Such a write is not sent if another daemon may hold the Lease by then.

The permission ends when one of two clocks reaches the deadline of the Lease: the monotonic clock, or a clock that also counts
while the machine is suspended. No task has to run for the permission to end.
"""

import math
import time
from collections.abc import Callable

import trio

from wharfinger.cluster.api.errors import FencedError


def suspended_too() -> float:
    """Return the seconds since the machine started, including the time in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence:
    """The permission to write. Writes are refused until :meth:`permit` is called."""

    def __init__(
        self, clock: Callable[[], float] = trio.current_time, boot_clock: Callable[[], float] = suspended_too
    ) -> None:
        self._clock = clock
        self._boot_clock = boot_clock
        self._until = self._boot_until = -math.inf
        self._reason = "it is not held yet"

    def moment(self) -> tuple[float, float]:
        """Return the present time, in seconds, by the two clocks: the monotonic clock, and the clock that also counts while the
        machine is suspended.
        """
        return self._clock(), self._boot_clock()

    def permit(self, until: float, since: tuple[float, float] | None = None) -> None:
        """Permit writes until a time of the monotonic clock, in seconds.

        ``since`` is the time at which the renewal that permits the writes was sent, by both clocks; None means now. The
        permission gets shorter by the time for which the machine was suspended since then.
        """
        if until != self._until:
            clock, boot_clock = since or self.moment()
            self._until, self._boot_until = until, boot_clock + (until - clock)

    def close(self, reason: str) -> None:
        """Refuse all writes from now on; ``reason`` completes "this daemon does not hold the Lease: …"."""
        self._until = self._boot_until = -math.inf
        self._reason = reason

    def check(self, what: str) -> None:
        """Raise FencedError unless a write may be sent now. ``what`` describes the write in the error message."""
        if self._clock() < self._until and self._boot_clock() < self._boot_until:
            return
        reason = self._reason if self._until == -math.inf else "it was not renewed in time"
        raise FencedError(
            f"{what}: not sent, because this daemon does not hold the Lease: {reason}; the daemon that holds the Lease does this "
            "work"
        )
