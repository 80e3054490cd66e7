"""Runs one controller: notes what changed, looks at one object at a time, and tries again what failed.

Errors of the cluster or of an object's shape concern that object only: they are logged and it is looked at again, later
each time. So no controller can stop another, and nothing is given up for good.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Protocol

import trio

from wharfinger.cluster.control_plane.controllers.object_cache import Change
from wharfinger.cluster.errors import ClusterError, ConflictError
from wharfinger.cluster.resource import ObjectKey
from wharfinger.cluster.work_queue import WorkQueue
from wharfinger.formats.errors import FormatError

log: Final = logging.getLogger(__name__)

Clock = Callable[[], datetime]


class Controller(Protocol):
    """What a worker runs. ``name`` is for logs."""

    name: str

    def affected(self, change: Change) -> Iterable[ObjectKey]:
        """The objects to look at after a change."""
        ...

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Look at an object (it may be gone) and do what is to be done; seconds until to look again, if ever."""
        ...


class Worker:
    """One controller's queue and task."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._queue = WorkQueue[ObjectKey]()

    def notice(self, change: Change) -> None:
        """Take note of a change."""
        for key in self._controller.affected(change):
            self._queue.add(key)

    async def run(self, ready: trio.Event) -> None:
        """Work until cancelled, from the moment ``ready`` is set."""
        await ready.wait()
        while True:
            key = await self._queue.take()
            await self._look_at(key)
            self._queue.done(key)
            await trio.lowlevel.checkpoint()

    def statistics(self) -> dict[str, int]:
        """The queue's."""
        return self._queue.statistics()

    async def _look_at(self, key: ObjectKey) -> None:
        try:
            again_s = await self._controller.reconcile(key)
        except (ClusterError, FormatError) as error:
            pause = self._queue.failed(key)
            level = logging.DEBUG if isinstance(error, ConflictError) else logging.WARNING
            log.log(level, "%s: %s: %s; trying again in %.2f s", self._controller.name, key, error, pause)
        else:
            self._queue.succeeded(key)
            if again_s is not None:
                self._queue.add_later(key, again_s)


class Ages:
    """Since when objects are as they are, by trio's clock: simulated delays start when something was first seen."""

    def __init__(self) -> None:
        self._since: dict[ObjectKey, tuple[str, float]] = {}

    def age(self, key: ObjectKey, state: str) -> float:
        """Seconds since the object was first seen in this state; another state starts anew."""
        now = trio.current_time()
        known = self._since.get(key)
        if known is None or known[0] != state:
            known = self._since[key] = (state, now)
        return now - known[1]

    def forget(self, key: ObjectKey) -> None:
        """The object is gone."""
        self._since.pop(key, None)
