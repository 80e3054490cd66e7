"""Fair limits for expensive work: downloads, renders, hook runs, loads and calls of the cluster's API, over all packages.

    async with slots.use(Kind.RENDER):
        manifest = await render(chart)

Queues determine the order of the work of one package. Slots limit the amount of work of all packages, and are shared fairly: a
namespace with five hundred packages and a namespace with two packages take turns. The rules are in
:mod:`wharfinger.queue.slots_machine`.

Rules for callers: a slot is for work that does not wait for other work with a slot. A task that holds a slot for a download, a
render, a hook run or a load may also use slots for API calls. A task that holds a slot for an API call must not wait for
another slot. Any other request for a second slot could cause a deadlock under load, so it is refused immediately (RuntimeError),
even if slots are free. These rules also apply to tasks in nurseries of the holder, but not to work that the holder has started
elsewhere, such as a service, or a task on a queue.

If work other than an API call holds its slot for SLOW_S and then raises (it failed, timed out or was cancelled), its package
becomes slow: until its next success of that kind, it shares a quarter of the slots of that kind with all other slow packages.

Invariants: a cancelled waiter leaves the line before it can be granted a slot, so no granted slot is lost. Slots are returned
even if the block raises. Waking one waiter costs nothing for the others. There is no background task and no timer.
"""

from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import trio

from wharfinger.queue.lane import current_package
from wharfinger.queue.slots_machine import (
    Asked,
    Granted,
    Kind,
    Outcome,
    Returned,
    SlotLimits,
    Withdrawn,
    count_waiting,
    fresh,
    step,
    waits_for,
)

SLOW_S: Final = 10.0
"""The time, in seconds, after which a failure counts as slow, because the work has delayed others."""


@dataclass(frozen=True, slots=True)
class KindStatistics:
    """The slots of one kind: their number, the number in use, and the number of waiting requests."""

    limit: int
    used: int
    waiting: int


@dataclass(frozen=True, slots=True)
class SlotsStatistics:
    """The slots for work, which all kinds except API calls share, and the slots of each kind."""

    work_limit: int
    work_used: int
    kinds: dict[Kind, KindStatistics]


class Slots:
    """The slots of one daemon. Only for the event loop's thread."""

    def __init__(self, limits: SlotLimits) -> None:
        self._counter = _Counter(limits)

    def use(self, kind: Kind, package: str = "", *, source: str = "") -> AbstractAsyncContextManager[None]:
        """Hold a slot of this kind while the block runs; entering the block waits for it.

        ``package`` is the package whose share is used; the default is the package on whose queue this runs, or else the daemon
        itself. ``source`` is the host on which the work depends, such as a registry, which has a share of its own. Entering is
        not a checkpoint if a slot is free. Entering raises RuntimeError if the caller already holds a slot with which it must not
        wait for a slot of this kind.
        """
        return _Use(self._counter, kind, package or current_package(), source)

    def statistics(self) -> SlotsStatistics:
        """Return the numbers of slots in use and of waiting requests."""
        state = self._counter.state
        kinds = {
            kind: KindStatistics(slots.limit, slots.used, count_waiting(slots)) for kind, slots in state.kinds.items()
        }
        return SlotsStatistics(state.work.limit, state.work.used, kinds)

    def waiting(self, package: str) -> tuple[Kind, ...]:
        """Return the kinds of slots for which a package waits, each once."""
        return waits_for(self._counter.state, package)


class _Counter:
    """The state of the state machine in `slots_machine`, and the trio tasks that wait for slots."""

    def __init__(self, limits: SlotLimits) -> None:
        self.state = fresh(limits)
        self._last_request = 0
        self._waiters: dict[int, trio.lowlevel.Task] = {}

    async def acquire(self, kind: Kind, package: str, source: str) -> None:
        request = self._last_request = self._last_request + 1
        self.state, granted = step(self.state, Asked(request, kind, package, source))
        if granted:
            return

        def withdraw(_raise_cancel: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            del self._waiters[request]
            self.state, granted = step(self.state, Withdrawn(request, kind, package))
            self._wake(granted)
            return trio.lowlevel.Abort.SUCCEEDED

        # From here the task is either granted its slots or cancelled, never both: trio takes whichever comes first.
        self._waiters[request] = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(withdraw)

    def release(self, kind: Kind, package: str, source: str, outcome: Outcome) -> None:
        self.state, granted = step(self.state, Returned(kind, package, source, outcome))
        self._wake(granted)

    def _wake(self, granted: tuple[Granted, ...]) -> None:
        for effect in granted:
            trio.lowlevel.reschedule(self._waiters.pop(effect.request))


class _Use:
    """One use of a slot. This is a class and not a generator, for speed, because every API call uses a slot."""

    __slots__ = ("_package", "_since", "_source", "counter", "held", "kind", "outer", "task")

    def __init__(self, counter: _Counter, kind: Kind, package: str, source: str) -> None:
        self.counter = counter
        self.kind = kind
        self.held = False
        self.outer: _Use | None = None
        self.task: trio.lowlevel.Task | None = None
        self._package = package
        self._source = source
        self._since = 0.0

    async def __aenter__(self) -> None:
        outer = _innermost.get()
        # If a task outlives the block in which it was started, its context still refers to the `_Use` of that block, whose slot
        # was returned.
        while outer is not None and not outer.held:
            outer = outer.outer
        if outer is not None and outer.forbids(self):
            raise RuntimeError(
                f"{self._package or 'the daemon'} holds a slot of {outer.kind} and requests a slot of "
                f"{self.kind}: two holders that wait for each other's slots could wait forever; release the first slot before"
            )
        await self.counter.acquire(self.kind, self._package, self._source)
        if self.kind is not Kind.API:
            self._since = trio.current_time()
        self.held = True
        self.outer = outer
        self.task = trio.lowlevel.current_task()
        _innermost.set(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.held = False
        _innermost.set(self.outer)
        self.counter.release(self.kind, self._package, self._source, self._outcome(failed=error is not None))

    def _outcome(self, *, failed: bool) -> Outcome:
        if not failed:
            return Outcome.DONE
        # The duration of an API call does not depend on its package, and the daemon itself is never slow.
        judged = self.kind is not Kind.API and self._package
        return Outcome.SLOW if judged and trio.current_time() - self._since >= SLOW_S else Outcome.FAILED

    def forbids(self, wanted: "_Use") -> bool:
        """Return whether the holder of this slot must not wait for the slot ``wanted``, because that could cause a deadlock.
        A task in a nursery of the holder counts as the holder; for any other task, return False.
        """
        if self.counter is not wanted.counter or (wanted.kind is Kind.API and self.kind is not Kind.API):
            return False
        task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
        while task is not None and task is not self.task:
            task = task.parent_nursery.parent_task if task.parent_nursery is not None else None
        return task is not None


_innermost: Final[ContextVar[_Use | None]] = ContextVar("slot in use", default=None)
