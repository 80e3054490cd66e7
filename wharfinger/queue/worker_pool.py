"""The trio tasks that serve all lanes. A trio task is started for a lane that has something to do, and is reused afterwards.

A trio task whose lane is done becomes idle, and then serves the next lane that begins in any queue. It is reused because starting
a trio task and entering a cancel scope costs more than the rest of a small task. (If the hooks of a thousand packages are bound
to the same event, each event makes a thousand small tasks.) At most MAX_IDLE trio tasks are idle; further ones end. Idle trio
tasks that were not needed for IDLE_S end as well, until FEW_IDLE remain. The reason is that a start of the daemon needs many trio
tasks at the same time, and afterwards few are needed.

A trio task has the context (``contextvars``) of the code that made the pool, and not of the code that enqueued a task, because
the trio task serves other lanes later.
"""

import contextvars
from typing import Final

import trio

from wharfinger.queue.lane import LaneWork

MAX_IDLE: Final = 1024
"""The largest number of idle trio tasks; together they take about 6 MB."""
FEW_IDLE: Final = 64
"""The number of idle trio tasks that are kept, however long they have no work."""
IDLE_S: Final = 2.0
"""The time after which superfluous trio tasks end, if they were idle for all of that time."""


class WorkerPool:
    """All trio tasks of lanes, busy and idle."""

    def __init__(self, nursery: trio.Nursery) -> None:
        """Make a pool that starts its trio tasks in ``nursery``, which the caller owns."""
        self._nursery = nursery
        self._context = contextvars.copy_context()
        self._idle: list[_Worker] = []
        self._least_idle = 0
        self._trimming = False
        self._dismissed = trio.Event()

    def begin(self, lane: LaneWork) -> None:
        """Let an idle trio task serve the lane; start a new task if none is idle."""
        if self._idle:
            self._idle.pop().take(lane)
            self._least_idle = min(self._least_idle, len(self._idle))
        else:
            self.begin_new(lane)

    def begin_new(self, lane: LaneWork) -> None:
        """Let a new trio task serve the lane, in the context of the pool."""
        self._context.run(self._start, lane)

    def keep(self, worker: "_Worker") -> bool:
        """Make a trio task idle, so that it is later given another lane or ended. Return False if it must end now."""
        if self._dismissed.is_set() or len(self._idle) >= MAX_IDLE:
            return False
        self._idle.append(worker)
        if len(self._idle) > FEW_IDLE and not self._trimming:
            self._trimming = True
            self._context.run(self._start_trimming)
        return True

    def lose(self, worker: "_Worker") -> None:
        """Forget an idle trio task that was cancelled from outside, so that it is given no lane."""
        if worker in self._idle:
            self._idle.remove(worker)
            self._least_idle = min(self._least_idle, len(self._idle))

    def dismiss(self) -> None:
        """End the idle trio tasks now, and each busy one when its lane is done."""
        self._dismissed.set()
        while self._idle:
            self._idle.pop().take(None)

    async def _trim(self) -> None:
        """End the idle trio tasks that were not needed for IDLE_S, until at most FEW_IDLE are idle."""
        while len(self._idle) > FEW_IDLE and not self._dismissed.is_set():
            self._least_idle = len(self._idle)
            with trio.move_on_after(IDLE_S):
                await self._dismissed.wait()
            for worker in self._idle[: max(0, self._least_idle - FEW_IDLE)]:
                self._idle.remove(worker)
                worker.take(None)
        self._trimming = False

    def _start_trimming(self) -> None:
        self._nursery.start_soon(self._trim, name="end of idle workers")

    def _start(self, lane: LaneWork) -> None:
        self._nursery.start_soon(_Worker(lane, self).work, name=lane.label)


class _Worker:
    """One trio task, which serves lane after lane."""

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
        """Serve lanes. End when this worker has no lane any more: another trio task has taken over its lane, the pool keeps no
        further idle worker, or `take` got None.
        """
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
        """Serve lane after lane. Return if the pool does not keep this trio task idle, if a run was interrupted (then the scope
        is cancelled), or if a run has changed the context of this trio task (then a new trio task serves the lane).
        """
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
                task.name = "queue (idle)"
                try:
                    await self._called.wait()
                except trio.Cancelled:
                    self._pool.lose(self)
                    raise
