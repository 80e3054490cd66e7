"""The queue of keys that controllers must reconcile, with the most urgent controllers first.

A single task does all the work, one key at a time. A key is queued at most once for each controller. The controllers are
numbered, and among the controllers with due keys, the one with the lowest number runs first. The controller of Pods has a lower
number than the controller of ReplicaSets, because a ReplicaSet counts its Pods; the controller of Deployments has a higher
number, because a Deployment counts the Pods of its ReplicaSets. So the counts of an object are usually written once, while
kube-controller-manager may write them many times.
"""

import heapq
import logging
from itertools import count
from typing import Final

import trio

from wharfinger.control_plane.storage.interface import Key

log: Final = logging.getLogger(__name__)
OWN_WAKES: Final = 50
"""The number of times that the work on a key may queue the same key again within :data:`WINDOW_S`; then the key must wait."""
WINDOW_S: Final = 1.0
FIRST_PAUSE_S: Final = 0.05
LAST_PAUSE_S: Final = 30.0
_STALE: Final = 64
"""The maximum number of outdated entries in the heap of keys that are due later. If there are more, all of them are removed."""

Item = tuple[int, Key]


class WorkQueue:
    """The queued keys of each controller; a controller is identified by its number.

    Times are by trio's clock. A key that is queued repeatedly is due at the earliest of its times.
    """

    def __init__(self, controllers: int) -> None:
        self._due: list[dict[Key, None]] = [{} for _ in range(controllers)]
        self._at: dict[Item, float] = {}
        self._times: list[tuple[float, int, Item]] = []
        self._serials = count()
        self._failures: dict[Item, int] = {}
        self._in_progress: Item | None = None
        self._own_wakes: dict[Item, tuple[int, float]] = {}
        """For each key, how often the work on the key has itself queued the key again, and when this count began.

        The entry of a key is removed when anything else queues the key.
        """
        self._wake = trio.Event()

    @property
    def due(self) -> bool:
        """True if any key is due now."""
        return any(self._due)

    def add(self, controller: int, key: Key) -> None:
        """Queue ``key`` for now. If the work on this key has queued the same key too often (:data:`OWN_WAKES`), queue it for
        later.
        """
        item = (controller, key)
        if item != self._in_progress:
            self._own_wakes.pop(item, None)
        elif key not in self._due[controller] and (pause_s := self._pause(item)):
            self.add_later(controller, key, pause_s)
            return
        self._at.pop(item, None)
        self._due[controller][key] = None
        self._wake.set()

    def _pause(self, item: Item) -> float:
        """Count once more that the work on a key has queued the same key again. Return the seconds for which the key must wait
        because of this; 0 if this does not happen often.
        """
        now = trio.current_time()
        wakes, since = self._own_wakes.get(item, (0, now))
        if now >= since + WINDOW_S:
            wakes, since = 0, now
        self._own_wakes[item] = (wakes + 1, since)
        if wakes < OWN_WAKES:
            return 0.0
        if wakes == OWN_WAKES:  # log only once
            key = item[1]
            what = f"{key.collection.plural} {key.place.removeprefix('/')}"
            log.warning(
                "%s: delayed, because its own writes triggered it %d times within %g s", what, OWN_WAKES, WINDOW_S
            )
        return since + WINDOW_S - now

    def add_later(self, controller: int, key: Key, delay_s: float) -> None:
        """Queue ``key`` after ``delay_s``, unless it is due earlier."""
        item, time = (controller, key), trio.current_time() + delay_s
        if key in self._due[controller] or self._at.get(item, time + 1) <= time:
            return
        self._at[item] = time
        heapq.heappush(self._times, (time, next(self._serials), item))
        if len(self._times) > len(self._at) + _STALE:
            self._times = [entry for entry in self._times if self._at.get(entry[2]) == entry[0]]
            heapq.heapify(self._times)
        self._wake.set()

    async def take(self) -> Item:
        """Return the next key and its controller; if a key is due, the call is not a checkpoint."""
        while True:
            next_due = self._add_due()
            for controller, keys in enumerate(self._due):
                if keys:
                    key = next(iter(keys))
                    del keys[key]
                    self._in_progress = controller, key
                    return controller, key
            # There is no await between the check above and this line, so an `add` cannot be missed.
            self._wake = trio.Event()
            with trio.move_on_at(next_due):
                await self._wake.wait()

    def failed(self, controller: int, key: Key) -> float:
        """Queue ``key`` after a pause that doubles with each failure in a row; return the pause in seconds."""
        self._end_work(controller, key)
        failures = self._failures.get((controller, key), 0)
        self._failures[controller, key] = failures + 1
        pause_s = min(FIRST_PAUSE_S * (1 << min(failures, 20)), LAST_PAUSE_S)
        self.add_later(controller, key, pause_s)
        return pause_s

    def succeeded(self, controller: int, key: Key) -> None:
        """Forget the failures of a key."""
        self._end_work(controller, key)
        self._failures.pop((controller, key), None)

    def _end_work(self, controller: int, key: Key) -> None:
        """End the work on a key. Reset the count of its repetitions in a row, unless the work has queued the same key again."""
        self._in_progress = None
        if key not in self._due[controller] and (controller, key) not in self._at:
            self._own_wakes.pop((controller, key), None)

    def statistics(self) -> dict[str, int]:
        """Return how many keys are due now, how many are due later, and for how many the latest reconciliation failed."""
        return {"due": sum(map(len, self._due)), "waiting": len(self._at), "failing": len(self._failures)}

    def _add_due(self) -> float:
        """Queue the keys that are now due, and return the time at which the next key is due (infinity if there is none)."""
        now = trio.current_time()
        while self._times:
            time, _, item = self._times[0]
            if self._at.get(item) == time:
                if time > now:
                    return time
                self.add(*item)
            heapq.heappop(self._times)
        return float("inf")
