"""One queue's trio task: performs what the machine decides, and tells it what came of that.

The shape. Anybody on the event loop may *post* an event (`post`): the machine steps there and then, so the answer and the
state are exact, and the effects go into a list. Only the worker performs effects, in order: a run is started from here and
so has this task's context (the package's name in the log), whoever enqueued it; and a callback that posts from inside an
effect only makes the list longer. Each run is a child task under a CancelScope of its own; its outcome comes back as an
event with the run's number.

The guard. A task that raises TaskFailed failed as expected. Any other exception is a bug in that task: it is logged with its
traceback, counted, shown in the dump, and parks that task; it neither ends the daemon nor goes unseen. What this module or
the machine does wrong is not guarded: that ends the daemon.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, assert_never

import trio

from wharfinger.queue.dump import QueueDump, dump_queue
from wharfinger.queue.machine import (
    DUPLICATE,
    CallDone,
    CancelRun,
    Completed,
    Dropped,
    Effect,
    Enqueued,
    Event,
    Failed,
    Finished,
    Interrupted,
    Retired,
    RetryDue,
    ScopeCancelled,
    StartTask,
    step,
)
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.state import QueueState, Rules, is_completing, is_idle, is_over, next_wake
from wharfinger.queue.task import Task, TaskFailed

log = logging.getLogger(__name__)

MAX_ERROR_CHARS: Final = 4096

_package: ContextVar[str] = ContextVar("package", default="")


def current_package() -> str:
    """The package whose queue this code runs on; empty outside of queues. For log records."""
    return _package.get()


@dataclass(slots=True)
class Counters:
    """What happened in all queues since the start."""

    retired: int = 0
    dropped: int = 0
    failures: int = 0
    bugs: int = 0


@dataclass(frozen=True, slots=True)
class _Handle:
    """What the machine knows as a number."""

    task: Task
    scope: WorkScope
    on_done: Callable[[], None] | None


@dataclass(slots=True)
class _ScopeUse:
    """A scope as long as it has tasks here: its number for the machine, and how to stop listening to it."""

    number: int
    tasks: int
    stop_listening: Callable[[], None]


class QueueWorker:
    """One queue. `run` is its task; everything else is synchronous."""

    def __init__(
        self, name: str, rules: Rules, draw: Callable[[], float], counters: Counters, after: trio.Event | None
    ) -> None:
        """``after``: begin only then (the queue that had this name before is still ending)."""
        self.name = name
        self.ended = trio.Event()
        self.state = QueueState(rules)
        self._draw = draw
        self._counters = counters
        self._after = after
        self._effects: deque[Effect] = deque()
        self._handles: dict[int, _Handle] = {}
        self._scopes: dict[WorkScope, _ScopeUse] = {}
        self._runs: dict[int, trio.CancelScope] = {}
        self._last_number = 0
        self._wake = trio.Event()
        self._changed = trio.Event()

    # --- for everybody ---------------------------------------------------------------------------------------------------

    def enqueue(
        self, task: Task, scope: WorkScope, *, lane: str, unique: bool, on_done: Callable[[], None] | None
    ) -> bool:
        """Offer a task; see `Queues.enqueue`."""
        if scope.cancelled:
            log.debug("%s: %s not queued: %s", self.name, task.name, scope.cause)
            return False
        use = self._scopes.get(scope)
        number = use.number if use else self._new_number()
        event = Enqueued(self._new_number(), task.name, number, trio.current_time(), lane, unique)
        effects = self._step(event)
        if effects and effects[0] in (Dropped(event.task, DUPLICATE), Dropped(event.task, self.state.closing or "")):
            log.debug("%s: %s not queued: %s", self.name, task.name, self.state.closing or DUPLICATE)
            return False
        if use is None:
            stop = scope.on_cancel(lambda cause: self.post(ScopeCancelled(number, cause)))
            use = self._scopes[scope] = _ScopeUse(number, 0, stop)
        use.tasks += 1
        self._handles[event.task] = _Handle(task, scope, on_done)
        self._take_on(effects)
        return True

    def post(self, event: Event) -> None:
        """Let the machine step; what it decides is performed by the worker, soon and in order."""
        self._take_on(self._step(event))

    @property
    def running(self) -> int:
        """How many runs have begun and not ended."""
        return len(self._runs)

    def dump(self) -> QueueDump:
        """What is in it."""
        return dump_queue(self.name, self.state, trio.current_time(), self._runs.keys())

    async def wait_idle(self) -> None:
        """Return once nothing will happen by itself: it is empty, or parked."""
        while not (is_idle(self.state) and not self._effects):
            await self._changed.wait()

    # --- the worker ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Perform until the queue was closed and everything has left it."""
        _package.set(self.name)
        try:
            if self._after is not None:
                await self._after.wait()
            async with trio.open_nursery() as runs:
                while True:
                    while self._effects:
                        self._perform(self._effects.popleft(), runs)
                    self._changed.set()
                    self._changed = trio.Event()
                    if is_over(self.state):
                        break
                    # No await between the loops above and the wait: what is posted from here on sets this event.
                    self._wake = trio.Event()
                    due = next_wake(self.state)
                    with trio.CancelScope(deadline=math.inf if due is None else due):
                        await self._wake.wait()
                    if due is not None and due <= trio.current_time():
                        self.post(RetryDue(trio.current_time()))
        finally:
            self.ended.set()

    def _step(self, event: Event) -> tuple[Effect, ...]:
        self.state, effects = step(self.state, event)
        return effects

    def _take_on(self, effects: tuple[Effect, ...]) -> None:
        self._effects.extend(effects)
        self._wake.set()

    def _new_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _perform(self, effect: Effect, runs: trio.Nursery) -> None:
        match effect:
            case StartTask(number, run):
                handle = self._handles[number]
                self._runs[run] = trio.CancelScope()
                runs.start_soon(self._execute, run, handle.task, name=f"{self.name}: {handle.task.name}")
            case CancelRun(run, cause):
                if run in self._runs:
                    self._runs[run].cancel(reason=cause)
            case CallDone(number, run):
                # Since the run succeeded, its scope may have been cancelled: then nobody is told.
                if is_completing(self.state, run):
                    self._call_done(run, self._handles[number])
            case Retired(number):
                self._counters.retired += 1
                self._forget(number)
            case Dropped(number, cause):
                self._counters.dropped += 1
                log.debug("%s: superseded: %s", self._handles[number].task.name, cause)
                self._forget(number)
            case _:
                assert_never(effect)

    def _call_done(self, run: int, handle: _Handle) -> None:
        try:
            if handle.on_done is not None:
                handle.on_done()
        except Exception as error:
            log.exception("%s: a bug in what follows its success; the task parks", handle.task.name)
            self._counters.bugs += 1
            self.post(self._failed(run, f"bug after success: {_one_line(error)}", permanent=True))
        else:
            self.post(Completed(run))

    def _forget(self, number: int) -> None:
        scope = self._handles.pop(number).scope
        use = self._scopes[scope]
        use.tasks -= 1
        if use.tasks == 0:
            use.stop_listening()
            del self._scopes[scope]

    # --- a run -----------------------------------------------------------------------------------------------------------

    async def _execute(self, run: int, task: Task) -> None:
        scope = self._runs[run]
        outcome: Event | None = None
        try:
            with scope:
                # Entering a scope that was cancelled before does not stop what comes before the next checkpoint.
                if not scope.cancel_called:
                    await task.execute()
        except* Exception as group:  # noqa: BLE001 - this is the guard; _judge logs bugs with their traceback
            outcome = self._judge(run, task, group)
        finally:
            del self._runs[run]
        self.post(outcome or (Interrupted(run) if scope.cancel_called else Finished(run)))

    def _judge(self, run: int, task: Task, group: ExceptionGroup[Exception]) -> Failed:
        """Tell failures that were to be expected from bugs; a task with a nursery of its own may have several at once."""
        failures = list(_leaves(group))
        expected = [failure for failure in failures if isinstance(failure, TaskFailed)]
        if len(expected) == len(failures):
            message = "; ".join(failure.message for failure in expected)
            log.info("%s failed: %s", task.name, message)
            return self._failed(run, message, permanent=any(failure.permanent for failure in expected))
        bug = next(failure for failure in failures if not isinstance(failure, TaskFailed))
        log.error("%s: a bug in this task; it parks", task.name, exc_info=bug if len(failures) == 1 else group)
        self._counters.bugs += 1
        return self._failed(run, f"bug: {_one_line(bug)}", permanent=True)

    def _failed(self, run: int, error: str, *, permanent: bool) -> Failed:
        self._counters.failures += 1
        return Failed(run, error[:MAX_ERROR_CHARS], permanent, trio.current_time(), self._draw())


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")
