"""The work queue of a controller, modeled on client-go's work queue: each key is in it at most once, and some keys are planned
for a later time.

Level-triggered and coalescing: if a key already waits, it is not added a second time, so the queue is bounded by the number of
different keys. A key is *in hand* from `take` to `done`. Meanwhile it is never handed to a second worker; if it is added again,
it is queued when `done` is called.

Invariants:

* No key both waits and is in hand. A key that waits, or was added while it was in hand, has no planned time.
* Every key added is handed out at least once after its latest `add`, in the order of arrival.
* If a key is planned for several times, the earliest time is used. Times are those of trio's clock.
"""

import heapq
from collections.abc import Hashable
from itertools import count
from typing import Final, Generic, TypeAlias, TypeVar

import trio

FIRST_PAUSE_S: Final = 0.05
LAST_PAUSE_S: Final = 30.0
_STALE: Final = 64
"""The largest number of outdated entries in the heap of planned times; if there are more, all of them are removed."""

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """A queue of keys to process. Any number of tasks may `take`; the task that took a key calls `done`."""

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
        """Queue ``key`` (again), to be processed as soon as it is its turn."""
        self._at.pop(key, None)
        if key in self._in_hand:
            self._again.add(key)
        else:
            self._waiting[key] = None
            self._wake.set()

    def add_later(self, key: Key, delay_s: float) -> None:
        """Queue ``key`` once ``delay_s`` has passed, unless it is processed before."""
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
        """Return the next key, which is being processed from now on. This is not a checkpoint if a key waits."""
        while True:
            next_due = self._add_due()
            if self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                self._in_hand.add(key)
                return key
            # No await between the check above and this line, so no `add` can be missed.
            self._wake = trio.Event() if self._wake.is_set() else self._wake
            with trio.move_on_at(next_due):
                await self._wake.wait()

    def done(self, key: Key) -> None:
        """Record that the work on the key has ended. If the key was added meanwhile, queue it again."""
        self._in_hand.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def failed(self, key: Key) -> float:
        """Requeue ``key`` after a delay, and return the delay. It doubles with each failure in a row, up to LAST_PAUSE_S."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause_s: float = min(FIRST_PAUSE_S * (1 << min(failures, 20)), LAST_PAUSE_S)
        self.add_later(key, pause_s)
        return pause_s

    def succeeded(self, key: Key) -> None:
        """Reset the count of failures of ``key``."""
        self._failures.pop(key, None)

    def statistics(self) -> dict[str, int]:
        """Return the numbers of keys that are due, of keys that are planned for later, and of keys whose last attempt failed."""
        return {
            "due": len(self._waiting) + len(self._again),
            "waiting": len(self._at),
            "failing": len(self._failures),
        }

    def _add_due(self) -> float:
        """Queue all keys that are due; return the time of the next one (infinity: none)."""
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
"""A queue of names."""
