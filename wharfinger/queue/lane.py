"""One lane at work: executes the runs that the machine starts, one after the other, and reports their results.

The shape. A lane is at work as long as it has something to do: from its first run, through every backoff, until it is empty or
parked. Then it is gone, and the trio task that did the work (`worker_pool`) with it or on to another lane. Between two runs there
is nothing but the machine's step; one cancel scope serves run after run, until a run of it was cancelled.

A run may not leave to the next one: a used-up cancel scope, the loop to itself (a checkpoint after every few runs, however
they ended, for tasks that have none), and context variables it has set (the lane goes on in a new trio task then).

The guard. A task that raises TaskFailed failed as expected. Any other exception is a bug in that task: it is logged with its
traceback, counted, shown in the dump, and parks that task; it neither ends the daemon nor goes unseen. What this module or
the machine does wrong is not guarded: that ends the daemon.
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

log = logging.getLogger(__name__)

MAX_ERROR_CHARS: Final = 4096

RUNS_BETWEEN_CHECKPOINTS: Final = 16
"""The number of runs after which other tasks get their turn, even if no run reached a checkpoint."""

_package: ContextVar[str] = ContextVar("package", default="")


def current_package() -> str:
    """Return the package on whose queue this code runs; empty outside of queues. For log records."""
    return _package.get()


@contextmanager
def acting_for(package: str) -> Iterator[None]:
    """Attribute the body's work to this package, though it is on no queue: its share of slots, its log records."""
    token = _package.set(package)
    try:
        yield
    finally:
        _package.reset(token)


@dataclass(slots=True)
class Counters:
    """The counts of events in all queues since the start."""

    retired: int = 0
    dropped: int = 0
    failures: int = 0
    bugs: int = 0


@dataclass(slots=True)
class Work:
    """The work that the machine knows as the number of a task."""

    task: Task
    scope: WorkScope
    lane: str
    on_done: Callable[[], None] | None


class LaneOwner(Protocol):
    """The queue a lane is part of, as its lane sees it."""

    @property
    def name(self) -> str:
        """The package."""
        ...

    @property
    def after(self) -> trio.Event | None:
        """Nothing runs before that (the queue that had this name before is still ending)."""
        ...

    def post(self, event: Event) -> None:
        """Let the machine step, and perform its decisions: the next run may have been given when this returns."""
        ...

    def next_wake(self, lane: str) -> float | None:
        """Return when to check again whether the lane's next run is due; None if it does not wait for that."""
        ...

    def left(self, lane: "LaneWork") -> None:
        """Record that the lane is no longer at work."""
        ...


class LaneWork:
    """One lane while it has something to do. `serve` is for a trio task; everything else is synchronous."""

    __slots__ = (
        "_called_off",
        "_clean",
        "_counters",
        "_draw",
        "_outcome",
        "_owner",
        "_scope",
        "_since_checkpoint",
        "_wake",
        "executing",
        "interrupted",
        "name",
        "run",
        "spoiled",
        "work",
    )

    def __init__(
        self, name: str, owner: LaneOwner, counters: Counters, draw: Callable[[], float], run: int, work: Work
    ) -> None:
        """Begin with the first run, and the ``work`` that is to be done in it."""
        self.name = name
        self.run = run  # given and not yet reported; 0 if there is none
        self.work = work
        self.executing = False  # whether that run has really begun
        self.interrupted = False  # whether it was cancelled since, and the scope is used up
        self.spoiled = False  # whether a run left something in the context, and the trio task is used up
        self._owner = owner
        self._counters = counters
        self._draw = draw
        self._called_off = False
        self._outcome: Failed | None = None
        self._clean: contextvars.Context | None = None
        self._scope: trio.CancelScope | None = None
        self._since_checkpoint = 0
        self._wake: trio.Event | None = None

    @property
    def label(self) -> str:
        """Return the name for the trio task."""
        return f"queue {self._owner.name}/{self.name}"

    # --- for the queue ---------------------------------------------------------------------------------------------------

    def give(self, run: int, work: Work) -> None:
        """Accept the next run. The machine starts it only after the one before it was reported."""
        self.run = run
        self.work = work
        self._called_off = False
        self.wake()

    def interrupt(self, cause: str) -> None:
        """Interrupt the run given; if it has not begun, it never will."""
        if self.executing and self._scope is not None:
            self.interrupted = True
            self._scope.cancel(reason=cause)
        else:
            self._called_off = True

    def wake(self) -> None:
        """Look again, if it sleeps: the task that it waited to try again may be gone."""
        if self._wake is not None:
            self._wake.set()

    # --- for the trio task -----------------------------------------------------------------------------------------------

    async def serve(self, scope: trio.CancelScope) -> None:
        """Run, inside ``scope``, until there is nothing to do; earlier if `interrupted` or `spoiled`.

        After `interrupted`, which may also end it with trio.Cancelled, `wind_up` comes outside of the scope; then serve again.
        """
        if self._clean is None:
            _package.set(self._owner.name)
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
        """Report the run that was interrupted, now that the scope is left."""
        self.interrupted = False
        self._report(self._outcome or Interrupted(self.run))

    def begin_anew(self) -> None:
        """Be served by a new trio task from here on."""
        self.spoiled = False
        self._clean = None

    def leave(self) -> None:
        """No trio task serves this lane any more."""
        self._owner.left(self)

    # --- inside ----------------------------------------------------------------------------------------------------------

    async def _run_on(self, clean: contextvars.Context) -> None:
        """Run after run, as long as they are given, end well and leave nothing behind."""
        self._outcome = None
        try:
            while self.run:
                if self._called_off:
                    self._report(Interrupted(self.run))
                    continue
                self.executing = True
                await self.work.task.execute()
                if self.interrupted:
                    break
                if self.work.on_done is None:
                    self._report(Finished(self.run))
                else:  # who hears of the success neither sees what the run left in its context nor leaves anything there
                    clean.copy().run(self._report, Finished(self.run))
                if contextvars.copy_context() != clean:
                    break
                await self._leave_turns()
        except* Exception as group:  # this is the guard; _judge logs bugs with their traceback
            if not self.executing:
                raise
            self._outcome = self._judge(group)
        if self._outcome is not None and not self.interrupted:
            self._report(self._outcome)
        if self._outcome is not None or self.interrupted:
            await self._leave_turns()

    async def _leave_turns(self) -> None:
        """Let other tasks run after every few runs, however these ended."""
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
        self._owner.post(event)

    def _judge(self, group: ExceptionGroup[Exception]) -> Failed:
        """Distinguish expected failures from bugs; a task with a nursery of its own may raise several at once."""
        name = self.work.task.name
        failures = list(_leaves(group))
        expected = [failure for failure in failures if isinstance(failure, TaskFailed)]
        if len(expected) == len(failures):
            message = "; ".join(failure.message for failure in expected)
            log.info("%s failed: %s", name, message)
            permanent = any(failure.permanent for failure in expected)
            return failed(self.run, message, self._counters, self._draw, permanent=permanent)
        bug = next(failure for failure in failures if not isinstance(failure, TaskFailed))
        log.error("%s: a bug in this task; it parks", name, exc_info=bug if len(failures) == 1 else group)
        self._counters.bugs += 1
        return failed(self.run, f"bug: {one_line(bug)}", self._counters, self._draw, permanent=True)


def failed(run: int, error: str, counters: Counters, draw: Callable[[], float], *, permanent: bool) -> Failed:
    """Report a run that failed now, and count it."""
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
