"""What a controller has yet to look at: each key at most once, some of them not before a time (client-go's work queue in spirit).

Level-triggered and coalescing: adding a key that waits already adds nothing, so the queue is bounded by the number of objects.
A key in hand is never handed to a second worker; if it is added meanwhile, it comes again once it is done.

* ``waiting`` and ``in hand`` are disjoint; ``again`` is a subset of ``in hand``; a key that waits or comes again has no time.
* Every key added is handed out at least once after its latest `add`, in the order of arrival.
* Of several times the earliest counts. Times are trio's clock.
"""

import heapq
from collections.abc import Hashable
from itertools import count
from typing import Final, Generic, TypeAlias, TypeVar

import trio

FIRST_PAUSE_S: Final = 0.05
LAST_PAUSE_S: Final = 30.0
_STALE: Final = 64
"""Times that count no more are swept out when they are this many more than those that do."""

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """Keys to look at. Any number of tasks may `take`; whoever took a key says `done`."""

    def __init__(self) -> None:
        self._waiting: dict[Key, None] = {}
        self._in_hand: set[Key] = set()
        self._again: set[Key] = set()
        self._at: dict[Key, float] = {}
        self._times: list[tuple[float, int, Key]] = []
        self._serials = count()
        self._failures: dict[Key, int] = {}
        self._wake = trio.Event()

    def add(self, key: Key) -> None:
        """Look at ``key`` (again), as soon as it is its turn."""
        self._at.pop(key, None)
        if key in self._in_hand:
            self._again.add(key)
        else:
            self._waiting[key] = None
            self._wake.set()

    def add_later(self, key: Key, delay_s: float) -> None:
        """Look at ``key`` once ``delay_s`` has passed, unless it is looked at before."""
        time = trio.current_time() + delay_s
        if key in self._waiting or key in self._again or self._at.get(key, time + 1) <= time:
            return
        self._at[key] = time
        heapq.heappush(self._times, (time, next(self._serials), key))
        if len(self._times) > len(self._at) + _STALE:
            self._times = [entry for entry in self._times if self._at.get(entry[2]) == entry[0]]
            heapq.heapify(self._times)
        self._wake.set()

    async def take(self) -> Key:
        """The next key, taken in hand; no checkpoint where one waits."""
        while True:
            next_due = self._add_due()
            if self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                self._in_hand.add(key)
                return key
            # No await between the check above and this line: an `add` cannot be missed.
            self._wake = trio.Event() if self._wake.is_set() else self._wake
            with trio.move_on_at(next_due):
                await self._wake.wait()

    def done(self, key: Key) -> None:
        """The key is no longer in hand."""
        self._in_hand.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def failed(self, key: Key) -> float:
        """Look at ``key`` again after a pause that doubles with each failure in a row; the pause in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause_s: float = min(FIRST_PAUSE_S * (1 << min(failures, 20)), LAST_PAUSE_S)
        self.add_later(key, pause_s)
        return pause_s

    def succeeded(self, key: Key) -> None:
        """Its failures are forgotten."""
        self._failures.pop(key, None)

    def statistics(self) -> dict[str, int]:
        """How many keys are due, wait for a time, and failed last time."""
        return {
            "due": len(self._waiting) + len(self._again),
            "waiting": len(self._at),
            "failing": len(self._failures),
        }

    def _add_due(self) -> float:
        """Add what is due; the time of what is due next (infinity: nothing)."""
        now = trio.current_time()
        while self._times:
            time, _, key = self._times[0]
            if self._at.get(key) == time:
                if time > now:
                    return time
                self.add(key)
            heapq.heappop(self._times)
        return float("inf")


WorkKeys: TypeAlias = WorkQueue[str]
"""Names to look at."""
