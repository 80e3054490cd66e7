"""The execution of one lane: the code here performs the runs that the queue's machine (`queue.machine`) starts, one after the
other, and reports their results to the machine.

*Lifetime.* A `LaneWork` exists as long as the lane has something to do: from its first run, through every backoff, until the
lane is empty or parked. Then the trio task that served it (`worker_pool`) ends or serves another lane. Between two runs there
is only the machine's step. All runs use the same cancel scope, until a run is cancelled; then a new scope is opened.

*Isolation.* A run does not affect the next one. A cancelled scope is replaced. A checkpoint follows every few runs, because tasks
may have no checkpoint of their own. If a run has changed context variables, the lane continues in a new trio task.

*Errors.* A task that raises TaskFailed has failed as expected. Any other exception is a bug in that task: it is logged with
its traceback, counted, shown in the dump, and parks the task; it does not end the daemon. An exception in this module or in
the machine ends the daemon.
"""

import contextvars
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

import trio

from wharfinger.queue.events import Event, Failed, Finished, Interrupted, RetryDue
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import Task, TaskFailed
from wharfinger.queue.tracing import Span, Trace

log = logging.getLogger(__name__)

MAX_ERROR_CHARS: Final = 4096

RUNS_BETWEEN_CHECKPOINTS: Final = 16
"""The number of runs after which a lane lets other trio tasks run, even if none of the runs reached a checkpoint."""

_package: ContextVar[str] = ContextVar("package", default="")


@dataclass(slots=True)
class Running:
    """The current run of a lane: its task, and the operation that the task belongs to. Both are "" between two runs.

    Each trio task has one such object, which is changed in place for each run. So the context of the trio task stays
    the same.
    """

    task: str = ""
    cause: str = ""
    span: Span | None = None


_running: ContextVar[Running | None] = ContextVar("running", default=None)


def current_package() -> str:
    """Return the package on whose queue the current code runs, or for which it acts (`acting_for`); empty if there is none."""
    return _package.get()


def current_task() -> str:
    """Return the task that the current code is part of, for log records; empty outside of queues."""
    running = _running.get()
    return running.task if running is not None else ""


def current_cause() -> str:
    """Return the operation that the current task belongs to, such as ``update of prod.shop``; "" outside of queues."""
    running = _running.get()
    return running.cause if running is not None else ""


def current_span() -> Span | None:
    """Return the span of the current run; None outside of queues, or if there are no traces."""
    running = _running.get()
    return running.span if running is not None else None


def package_in(context: contextvars.Context) -> str:
    """Return the name of the package to which the work in another context belongs; "" outside of queues."""
    return context.get(_package, "")


@contextmanager
def acting_for(package: str) -> Iterator[None]:
    """Attribute the slots and the log records of the block to this package, although no queue runs the block."""
    token = _package.set(package)
    try:
        yield
    finally:
        _package.reset(token)


@dataclass(slots=True)
class Counters:
    """The numbers of tasks that are done or dropped, and of runs that failed or had a bug, in all queues since the start."""

    retired: int = 0
    dropped: int = 0
    failures: int = 0
    bugs: int = 0


@dataclass(slots=True)
class Work:
    """A task with its operation and callback; the machine only knows the task's number."""

    task: Task
    scope: WorkScope
    lane: str
    on_done: Callable[[], None] | None


class LaneOwner(Protocol):
    """The interface through which a lane uses its queue."""

    @property
    def name(self) -> str:
        """The name of the package."""
        ...

    @property
    def after(self) -> trio.Event | None:
        """An event before which no task runs. It is set when an earlier queue of this name has ended; None if there is no such
        queue.
        """
        ...

    def post(self, event: Event) -> None:
        """Pass an event to the machine, and perform the machine's effects. When this returns, the lane may already have its next
        run.
        """
        ...

    def next_wake(self, lane: str) -> float | None:
        """Return the time at which to check again whether the lane's next run is due; None if the lane is not backing off."""
        ...

    def left(self, lane: "LaneWork") -> None:
        """Record that the lane's work has ended: no trio task serves it any more."""
        ...


class LaneWork:
    """One lane while it has something to do. A trio task calls `serve`; all other methods are synchronous."""

    __slots__ = (
        "_called_off",
        "_clean",
        "_counters",
        "_draw",
        "_outcome",
        "_owner",
        "_running",
        "_scope",
        "_since_checkpoint",
        "_trace",
        "_wake",
        "executing",
        "interrupted",
        "name",
        "run",
        "spoiled",
        "work",
    )

    def __init__(
        self,
        name: str,
        owner: LaneOwner,
        counters: Counters,
        draw: Callable[[], float],
        run: int,
        work: Work,
        trace: Trace | None = None,
    ) -> None:
        """Begin with the first run, which performs ``work``."""
        self.name = name
        self.run = run  # the run that was given and not yet reported; 0 if there is none
        self.work = work
        self.executing = False  # whether that run has begun
        self.interrupted = False  # whether that run was cancelled; its scope cannot be used again
        self.spoiled = False  # whether a run changed the context, so that a new trio task is needed
        self._owner = owner
        self._counters = counters
        self._draw = draw
        self._trace = trace
        self._called_off = False
        self._outcome: Failed | None = None
        self._clean: contextvars.Context | None = None
        self._scope: trio.CancelScope | None = None
        self._running = Running()
        self._since_checkpoint = 0
        self._wake: trio.Event | None = None

    @property
    def label(self) -> str:
        """Return the name for the trio task that serves the lane."""
        return f"queue {self._owner.name}/{self.name}"

    # --- for the queue ---------------------------------------------------------------------------------------------------

    def give(self, run: int, work: Work) -> None:
        """Accept the next run. The machine starts a run only after the previous one was reported."""
        self.run = run
        self.work = work
        self._called_off = False
        self.wake()

    def interrupt(self, cause: str) -> None:
        """Interrupt the current run; if it has not begun yet, it does not begin."""
        if self.executing and self._scope is not None:
            self.interrupted = True
            self._scope.cancel(reason=cause)
        else:
            self._called_off = True

    def wake(self) -> None:
        """Wake the lane if it is waiting: it may have a new run, or the task that it would retry may have left the queue."""
        if self._wake is not None:
            self._wake.set()

    # --- for the trio task -----------------------------------------------------------------------------------------------

    async def serve(self, scope: trio.CancelScope) -> None:
        """Perform runs inside ``scope`` until there is nothing to do, or until `interrupted` or `spoiled` is set.

        If `interrupted` is set, the caller leaves the scope, calls `wind_up`, and then calls `serve` again; in this case,
        `serve` may also raise trio.Cancelled.
        """
        if self._clean is None:
            _package.set(self._owner.name)
            _running.set(self._running)
            self._clean = contextvars.copy_context()
        self._scope = scope
        if self._owner.after is not None:
            await self._owner.after.wait()
        while contextvars.copy_context() == self._clean:
            if self.run:
                await self._run_on(self._clean)
                if self.interrupted:
                    return
            elif (until := self._owner.next_wake(self.name)) is not None:
                await self._sleep(until)
            else:
                return
        self.spoiled = True

    def wind_up(self) -> None:
        """Report the end of the interrupted run. The caller has left the run's cancel scope before."""
        self.interrupted = False
        self._report(self._outcome or Interrupted(self.run))

    def begin_anew(self) -> None:
        """Reset the lane, so that a new trio task can serve it."""
        self.spoiled = False
        self._clean = None

    def leave(self) -> None:
        """Report to the queue that no trio task serves this lane any more."""
        self._owner.left(self)

    # --- inside ----------------------------------------------------------------------------------------------------------

    async def _run_on(self, clean: contextvars.Context) -> None:
        """Perform one run after the other. Return when there is no next run, or when a run has failed, was interrupted, or has
        changed the context.
        """
        self._outcome = None
        try:
            while self.run:
                if self._called_off:
                    self._report(Interrupted(self.run))
                    continue
                self.executing = True
                self._running.task, self._running.cause = self.work.task.name, self.work.scope.name
                if self._trace is None:
                    await self.work.task.execute()
                else:
                    await self._traced(self._trace)
                if self.interrupted:
                    break
                if self.work.on_done is None:
                    self._report(Finished(self.run))
                # Report in a copy of the clean context: the callback sees no changes by the run, and its own changes are dropped.
                else:
                    clean.copy().run(self._report, Finished(self.run))
                if contextvars.copy_context() != clean:
                    break
                await self._let_others_run()
        except* Exception as group:  # _judge logs bugs with their traceback
            if not self.executing:
                raise
            self._outcome = self._judge(group)
        if self._outcome is not None and not self.interrupted:
            self._report(self._outcome)
        if self._outcome is not None or self.interrupted:
            await self._let_others_run()

    async def _traced(self, trace: Trace) -> None:
        """Perform the run within a span of its own."""
        running = self._running
        with trace(self._owner.name, running.task, running.cause) as span:
            running.span = span
            try:
                await self.work.task.execute()
            finally:
                running.span = None

    async def _let_others_run(self) -> None:
        """Let other trio tasks run after every RUNS_BETWEEN_CHECKPOINTS runs, whether these succeeded or not."""
        self._since_checkpoint += 1
        if self._since_checkpoint >= RUNS_BETWEEN_CHECKPOINTS:
            self._since_checkpoint = 0
            await trio.lowlevel.checkpoint()

    async def _sleep(self, until: float) -> None:
        self._wake = trio.Event()
        with trio.CancelScope(deadline=until):
            await self._wake.wait()
        self._wake = None
        now = trio.current_time()
        if now >= until:
            self._owner.post(RetryDue(now))

    def _report(self, event: Event) -> None:
        self.run = 0
        self.executing = False
        self._running.task = self._running.cause = ""
        self._owner.post(event)

    def _judge(self, group: ExceptionGroup[Exception]) -> Failed:
        """Return the failure to report, and log bugs. A task with a nursery may raise a group of several exceptions."""
        name = self.work.task.name
        failures = list(_leaves(group))
        expected = [failure for failure in failures if isinstance(failure, TaskFailed)]
        if len(expected) == len(failures):
            message = "; ".join(failure.message for failure in expected)
            log.info("%s failed: %s", name, message)
            permanent = any(failure.permanent for failure in expected)
            return failed(self.run, message, self._counters, self._draw, permanent=permanent)
        bug = next(failure for failure in failures if not isinstance(failure, TaskFailed))
        log.error("%s: a bug in this task; it is parked", name, exc_info=bug if len(failures) == 1 else group)
        self._counters.bugs += 1
        return failed(self.run, f"bug: {one_line(bug)}", self._counters, self._draw, permanent=True)


def failed(run: int, error: str, counters: Counters, draw: Callable[[], float], *, permanent: bool) -> Failed:
    """Count a failed run, and return its event."""
    counters.failures += 1
    return Failed(run, error[:MAX_ERROR_CHARS], permanent, trio.current_time(), draw())


def one_line(error: Exception) -> str:
    """Return an exception as one line for a dump."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
