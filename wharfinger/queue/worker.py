"""The shell of one queue, which is the code around its machine (`queue.machine`): it performs the machine's effects, and finds
the task for each number that the machine uses.

Any code on the event loop may *post* an event. The machine steps at once, and its effects are performed before `post` returns. So
the state and the effects always agree, and no task has to be woken to perform the effects. Each lane that has something to do is
served by a trio task (`queue.lane`); posting the end of a run gives the lane its next run.

Effects are performed synchronously. CallDone is the only effect that calls code of the caller, namely ``on_done``. It is always
the only effect of its step, and is performed in the lane's trio task. So ``on_done`` may enqueue, cancel and unpark tasks, in
this queue or in any other.

A queue exists as long as it holds a task. Its end is reported to the trio tasks that wait for the end, and to the owner of all
queues (`queue.service`), which forgets the queue. The next task for this package begins a new queue.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import trio

from wharfinger.queue.dump import QueueDump, dump_queue
from wharfinger.queue.events import (
    CallDone,
    CancelRun,
    Completed,
    Dropped,
    Effect,
    Enqueued,
    Event,
    Retired,
    ScopeCancelled,
    StartTask,
)
from wharfinger.queue.lane import Counters, LaneWork, Work, failed, one_line
from wharfinger.queue.machine import step
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.state import Parked, QueueState, Rules, is_backing_off, is_idle, next_wake
from wharfinger.queue.task import Task
from wharfinger.queue.tracing import Trace
from wharfinger.queue.worker_pool import WorkerPool

log = logging.getLogger(__name__)


Observe: TypeAlias = Callable[[str, int, QueueState, Event, QueueState, tuple[Effect, ...]], None]
"""A callback for each step: it gets the name and the number of the queue, the state before the event, the event, the state after
it, and the effects.
"""


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The parts that all queues share, such as the pool of trio tasks, and the callbacks for each step and for a queue's end."""

    rules: Rules
    draw: Callable[[], float]
    counters: Counters
    pool: WorkerPool
    over: Callable[["QueueWorker"], None]
    observe: Observe | None = None
    trace: Trace | None = None


class _ScopeUse:
    """A listener for the cancellation of a scope that has tasks in this queue, with the number of these tasks."""

    __slots__ = ("number", "stop_listening", "tasks", "worker")

    def __init__(self, worker: "QueueWorker", scope: WorkScope, number: int) -> None:
        self.worker = worker
        self.number = number  # the scope's number in the machine
        self.tasks = 0
        self.stop_listening = scope.on_cancel(self)

    def __call__(self, cause: str) -> None:
        self.worker.post(ScopeCancelled(self.number, cause))


class QueueWorker:
    """The worker of one queue. It exists from the first task of the queue until the queue is empty."""

    __slots__ = (
        "_crashed",
        "_ended",
        "_lanes",
        "_last_number",
        "_quiet",
        "_scopes",
        "_shared",
        "_works",
        "after",
        "name",
        "number",
        "state",
    )

    def __init__(self, name: str, shared: SharedParts, after: trio.Event | None, number: int = 0) -> None:
        """Begin a queue. If an earlier queue of the same name has not ended yet, no task of this queue runs until ``after`` is
        set, which happens at the end of the earlier queue.

        ``number`` distinguishes queues of the same name for the observer.
        """
        self.name = name
        self.number = number
        self.after = after
        self.state = QueueState(shared.rules)
        self._shared = shared
        self._works: dict[int, Work] = {}
        self._scopes: dict[WorkScope, _ScopeUse] = {}
        self._lanes: dict[str, LaneWork] = {}
        self._last_number = 0
        self._crashed = False
        self._quiet: trio.Event | None = None
        self._ended: trio.Event | None = None

    # --- for all callers-------------------------------------------------------------------------------------------------

    def enqueue(
        self, task: Task, scope: WorkScope, *, lane: str, unique: bool, on_done: Callable[[], None] | None
    ) -> bool:
        """Append a task to a lane (see `Queues.enqueue`), and return False if the task was refused. The scope must not be
        cancelled yet.
        """
        number = self._last_number = self._last_number + 1
        use = self._scopes.get(scope)
        known = -number if use is None else use.number
        event = Enqueued(number, task.name, known, trio.current_time(), lane, unique, on_done is not None)
        effects = self._step(event)
        if effects and isinstance(effects[0], Dropped):
            log.debug("%s: %s not queued: %s", self.name, task.name, effects[0].cause)
            return False
        if use is None:
            use = self._scopes[scope] = _ScopeUse(self, scope, known)
        use.tasks += 1
        self._works[number] = Work(task, scope, lane, on_done)
        if effects:
            self._perform(effects)
        return True

    def post(self, event: Event) -> None:
        """Pass an event to the machine, and perform the machine's effects before returning."""
        effects = self._step(event)
        if effects:
            self._perform(effects)
        if self._quiet is not None or not self.state.lanes:
            self._settle()

    @property
    def running(self) -> int:
        """Return the number of runs that have begun but not ended."""
        return sum(lane.executing for lane in self._lanes.values())

    def dump(self) -> QueueDump:
        """Return a snapshot of the queue."""
        executing = {lane.run for lane in self._lanes.values() if lane.executing}
        return dump_queue(self.name, self.state, trio.current_time(), executing)

    def ended(self) -> trio.Event:
        """Return an event that is set once the queue holds no task and none of its lanes has a trio task."""
        if self._ended is None:
            self._ended = trio.Event()
        return self._ended

    async def wait_idle(self) -> None:
        """Wait until the queue is idle: it is empty, or all its lanes are parked."""
        while not (is_idle(self.state) or self._crashed):
            if self._quiet is None:
                self._quiet = trio.Event()
            await self._quiet.wait()

    # --- for its lanes ---------------------------------------------------------------------------------------------------

    def next_wake(self, lane: str) -> float | None:
        """Return the time at which to check again whether the lane's next run is due; None if the lane is not backing off."""
        return next_wake(self.state) if is_backing_off(self.state, lane) else None

    def left(self, lane: LaneWork) -> None:
        """Remove a lane that no trio task serves any more.

        If the lane still has a head that is not parked, its trio task was ended from outside or by a bug in the code of queues;
        in both cases the daemon is ending.
        """
        del self._lanes[lane.name]
        found = self.state.lanes.get(lane.name)
        self._crashed |= found is not None and not isinstance(found.head, Parked)
        self._settle()

    # --- performing ------------------------------------------------------------------------------------------------------

    def _step(self, event: Event) -> tuple[Effect, ...]:
        before = self.state
        self.state, effects = step(before, event)
        if self._shared.observe is not None:
            self._shared.observe(self.name, self.number, before, event, self.state, effects)
        return effects

    def _perform(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Retired():
                    self._shared.counters.retired += 1
                    self._forget(effect.task)
                case StartTask():
                    self._start(effect.run, self._works[effect.task])
                case CallDone():
                    self._call_done(effect.run, self._works[effect.task])
                case CancelRun():
                    for lane in self._lanes.values():
                        if lane.run == effect.run:
                            lane.interrupt(effect.cause)
                case Dropped():
                    self._shared.counters.dropped += 1
                    work = self._forget(effect.task)
                    log.debug("%s: %s: dropped: %s", self.name, work.task.name, effect.cause)
                    if (sleeping := self._lanes.get(work.lane)) is not None:
                        sleeping.wake()
                case _:
                    assert_never(effect)

    def _start(self, run: int, work: Work) -> None:
        lane = self._lanes.get(work.lane)
        if lane is not None:
            lane.give(run, work)
        else:
            lane = LaneWork(work.lane, self, self._shared.counters, self._shared.draw, run, work, self._shared.trace)
            self._lanes[work.lane] = lane
            self._shared.pool.begin(lane)

    def _call_done(self, run: int, work: Work) -> None:
        try:
            if work.on_done is not None:
                work.on_done()
        except Exception as error:
            log.exception("%s: the task succeeded, but its callback has a bug; the task is parked", work.task.name)
            counters = self._shared.counters
            counters.bugs += 1
            text = f"bug after success: {one_line(error)}"
            self.post(failed(run, text, counters, self._shared.draw, permanent=True))
        else:
            self.post(Completed(run))

    def _forget(self, number: int) -> Work:
        work = self._works.pop(number)
        use = self._scopes[work.scope]
        use.tasks -= 1
        if use.tasks == 0:
            use.stop_listening()
            del self._scopes[work.scope]
        return work

    def _settle(self) -> None:
        """If the queue is idle, wake the tasks that wait for that. If it has ended, wake the tasks that wait for its end."""
        if self._quiet is not None and (self._crashed or is_idle(self.state)):
            self._quiet.set()
            self._quiet = None
        if not self._lanes and (self._crashed or not self.state.lanes):
            if self._ended is not None:
                self._ended.set()
            self._shared.over(self)
