"""The trio tasks that do the work of all lanes: started when a lane has something to do, and kept for a while afterwards.

To start a trio task and enter a cancel scope costs more than all the rest of a small task, and a thousand packages whose
hooks listen to the same event have a small task each for every event. So a trio task whose lane is done becomes idle, and is
given the next lane that begins, of whichever queue. At most MAX_IDLE are idle, however many packages there are; any further
one ends. This is all that idle queues cost.

A trio task has the context of the code that made the pool, not of the code that enqueued: it must not live on as part of a
request.
"""

import contextvars
from typing import Final

import trio

from wharfinger.queue.lane import LaneWork

MAX_IDLE: Final = 1024
"""Trio tasks that may rest: some 3 MB at most."""


class WorkerPool:
    """All trio tasks of lanes, busy and idle."""

    def __init__(self, nursery: trio.Nursery) -> None:
        """They live in ``nursery``, of which the caller is the owner."""
        self._nursery = nursery
        self._context = contextvars.copy_context()
        self._idle: list[_Worker] = []
        self._dismissed = False

    def begin(self, lane: LaneWork) -> None:
        """Have the lane served."""
        if self._idle:
            self._idle.pop().take(lane)
        else:
            self.begin_new(lane)

    def begin_new(self, lane: LaneWork) -> None:
        """Have the lane served by a new trio task, with nothing in its context."""
        self._context.run(self._start, lane)

    def keep(self, worker: "_Worker") -> bool:
        """Return whether a trio task may become idle; if so, it is given a lane later, or ended."""
        if self._dismissed or len(self._idle) >= MAX_IDLE:
            return False
        self._idle.append(worker)
        return True

    def lose(self, worker: "_Worker") -> None:
        """Forget an idle trio task that was ended from outside: no lane may be given to it."""
        if worker in self._idle:
            self._idle.remove(worker)

    def dismiss(self) -> None:
        """End the idle workers, and each of the others when its lane is done."""
        self._dismissed = True
        while self._idle:
            self._idle.pop().take(None)

    def _start(self, lane: LaneWork) -> None:
        self._nursery.start_soon(_Worker(lane, self).work, name=lane.label)


class _Worker:
    """One trio task: serves lane after lane."""

    __slots__ = ("_called", "_lane", "_pool")

    def __init__(self, lane: LaneWork, pool: WorkerPool) -> None:
        self._lane: LaneWork | None = lane
        self._pool = pool
        self._called = trio.Event()

    def take(self, lane: LaneWork | None) -> None:
        """Give an idle worker its next lane, or None, which ends it."""
        self._lane = lane
        self._called.set()

    async def work(self) -> None:
        """Serve lanes until there is none and no room to rest."""
        try:
            while self._lane is not None:
                with trio.CancelScope() as scope:
                    await self._serve_in(scope)
                if self._lane is not None:
                    self._lane.wind_up()
        finally:
            if self._lane is not None:
                self._lane.leave()

    async def _serve_in(self, scope: trio.CancelScope) -> None:
        """Serve lane after lane, until there is none, or the scope or this trio task are used up."""
        task = trio.lowlevel.current_task()
        while (lane := self._lane) is not None:
            task.name = lane.label
            await lane.serve(scope)
            if lane.interrupted:
                return
            self._lane = None
            if lane.spoiled:
                lane.begin_anew()
                self._pool.begin_new(lane)
                return
            lane.leave()
            del lane
            self._called = trio.Event()
            if self._pool.keep(self):
                task.name = "queue (at rest)"
                try:
                    await self._called.wait()
                except trio.Cancelled:
                    self._pool.lose(self)
                    raise
