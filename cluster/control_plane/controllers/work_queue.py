"""What a controller has yet to look at: each object at most once, some of them not before a time.

Pure: times come from the caller. An object that is added while it waits for a later time is due now; one that is added
while it is being looked at is due again afterwards.
"""

import heapq
from collections import OrderedDict
from typing import Final

from wharfinger.cluster.resource import ObjectKey

FIRST_BACKOFF_S: Final = 0.05
LAST_BACKOFF_S: Final = 30.0


class WorkQueue:
    """Keys in order of arrival, delays, and the failures in a row of each key. Bounded by the number of objects."""

    def __init__(self) -> None:
        self._due: OrderedDict[ObjectKey, None] = OrderedDict()
        self._at: dict[ObjectKey, float] = {}
        self._times: list[tuple[float, ObjectKey]] = []
        self._failures: dict[ObjectKey, int] = {}

    def add(self, key: ObjectKey) -> None:
        """Due now."""
        self._at.pop(key, None)
        self._due[key] = None

    def add_at(self, key: ObjectKey, time: float) -> None:
        """Due at a time, unless it is due earlier."""
        if key in self._due or self._at.get(key, time + 1) <= time:
            return
        self._at[key] = time
        heapq.heappush(self._times, (time, key))

    def failed(self, key: ObjectKey, now: float) -> float:
        """Due again after a pause that doubles with each failure in a row; the pause in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause: float = min(FIRST_BACKOFF_S * (1 << min(failures, 20)), LAST_BACKOFF_S)
        self.add_at(key, now + pause)
        return pause

    def succeeded(self, key: ObjectKey) -> None:
        """Its failures are forgotten."""
        self._failures.pop(key, None)

    def pop(self, now: float) -> ObjectKey | None:
        """The next key that is due, or None."""
        while self._times and self._times[0][0] <= now:
            time, key = heapq.heappop(self._times)
            if self._at.get(key) == time:
                del self._at[key]
                self._due[key] = None
        return self._due.popitem(last=False)[0] if self._due else None

    def next_time(self) -> float | None:
        """When the next key that has to wait is due, or None where none waits."""
        while self._times and self._at.get(self._times[0][1]) != self._times[0][0]:
            heapq.heappop(self._times)
        return self._times[0][0] if self._times else None

    def statistics(self) -> dict[str, int]:
        """How many keys are due, wait for a time, and failed last time."""
        return {"due": len(self._due), "waiting": len(self._at), "failing": len(self._failures)}
