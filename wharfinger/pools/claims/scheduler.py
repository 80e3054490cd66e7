"""The claim scheduler of one pool: the trio shell around the machine in :mod:`wharfinger.pools.claims.machine`.

The task that reports an event also performs the step of the machine, immediately and without waiting. Only claims and recycling
take time, and each is a task of its own, so no step waits for a claim. One task reads the backend's changes
and watches the deadlines.

Shutdown. :meth:`PoolScheduler.shutdown` closes the pool: requests that wait are answered at once, and claims under way get
`CLOSING_S` to finish. Claims that are still under way after that are cancelled: their requests are answered, and their members
are recycled. The same happens to all claims under way if the block of :func:`open_pool_scheduler` is left by an exception. So
each accepted request gets exactly one answer.
"""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, assert_never

import trio

from wharfinger.pools.claims.backend import Backend, Claimed, ClaimError, ConflictError, Result, Spec
from wharfinger.pools.claims.events import (
    Abandoned,
    Answer,
    Answered,
    Closed,
    Conflicted,
    Effect,
    Enqueued,
    Event,
    Failed,
    Limits,
    Member,
    Recycle,
    StartClaim,
    Succeeded,
    TimePassed,
    Withdrawn,
)
from wharfinger.pools.claims.machine import accepts, next_deadline, position_of, step
from wharfinger.pools.claims.metrics import PoolMetrics, Snapshot, snapshot_of
from wharfinger.pools.claims.state import new_pool_state

CLOSING_S: Final = 10.0
"""The time in which claims that have begun can still finish after the pool was closed."""
RECYCLING_S: Final = 5.0
"""The time limit, in seconds, for recycling one member. A cancellation does not end the recycling earlier."""


class PoolFullError(Exception):
    """The pool takes no more requests now: its line is full, or it is closed. The caller may try again later."""


class NoMemberError(Exception):
    """A request ended without a member; ``answer`` is the reason, and ``__cause__`` the error of a failed claim."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"no member of the pool was claimed: {answer}")
        self.answer = answer


@dataclass(eq=False, slots=True)
class Request(Generic[Spec, Result]):
    """A request for a member. ``answer`` is None until the request ends; ``result`` is the result of a claim that succeeded."""

    spec: Spec
    deadline: float = math.inf
    number: int = -1
    enqueued_at: float = math.nan
    answer: Answer | None = None
    result: Result | None = None
    uid: str = ""
    error: ClaimError | None = None
    answered: trio.Event = field(default_factory=trio.Event)


class PoolScheduler(Generic[Spec, Result]):
    """The scheduler of one pool. Made by :func:`open_pool_scheduler`; all methods are for the trio thread."""

    def __init__(self, backend: Backend[Spec, Result], limits: Limits) -> None:
        self._backend = backend
        self._state = new_pool_state(limits)
        self._requests: dict[int, Request[Spec, Result]] = {}
        self._next = 0
        self._work: trio.Nursery | None = None
        self._wake = trio.Event()
        self._changed = trio.Event()
        self._last_dispatch: float | None = None
        self._recycling = 0
        self.metrics = PoolMetrics(self._state.counters)

    def enqueue(self, request: Request[Spec, Result]) -> bool:
        """Accept a request, which is then answered exactly once. Return False if the pool is full or closed.

        A request that is not accepted gets no answer. The caller may enqueue it elsewhere, or here later.
        """
        if not accepts(self._state):
            self.metrics.refused += 1
            return False
        if request.number >= 0:
            raise ValueError("a request can be enqueued only once; make another request")
        request.number, self._next = self._next, self._next + 1
        request.enqueued_at = trio.current_time()
        self._requests[request.number] = request
        self._step(Enqueued(request.number, request.deadline))
        self._wake.set()  # the deadline of this request may be the next one
        return True

    def withdraw(self, request: Request[Spec, Result]) -> None:
        """Give up a request whose caller will not use a member. If a member was already claimed for the request, recycle it."""
        if request.number in self._requests:
            self._step(Withdrawn(request.number))
        elif request.answer is Answer.CLAIMED:
            self.metrics.counters.recycled += 1
            self._start_recycling(Recycle(request.uid))

    async def claim(self, spec: Spec, deadline: float = math.inf) -> Result:
        """Claim a member for the caller. If the call is cancelled, no member stays claimed.

        Raises PoolFullError, or NoMemberError if no member was claimed by ``deadline`` (a time of trio's clock).
        """
        request: Request[Spec, Result] = Request(spec, deadline)
        if not self.enqueue(request):
            raise PoolFullError("the pool is closed" if self._state.closed else "too many requests wait for the pool")
        try:
            await request.answered.wait()
        except trio.Cancelled:
            self.withdraw(request)
            raise
        if request.result is None or request.answer is not Answer.CLAIMED:
            raise NoMemberError(request.answer or Answer.CLOSED) from request.error
        return request.result

    def notify_idle(self) -> None:
        """Report that the backend has changes. Never waits; several calls cause only one read."""
        self._wake.set()

    def snapshot(self) -> Snapshot:
        """Return the pool's numbers, in constant time."""
        return snapshot_of(self._state, self._last_dispatch)

    def position(self, request: Request[Spec, Result]) -> int:
        """Return the place in line of a waiting request, 1 for the next one. Return 0 if the request was answered, or a member
        is being claimed for it. Takes linear time.
        """
        return position_of(self._state, request.number)

    async def wait_change(self) -> None:
        """Wait for the next event of the pool. To miss no event, call this after reading the state, with no checkpoint in
        between.
        """
        await self._changed.wait()

    async def shutdown(self) -> None:
        """Close the pool, and wait until all claims and recyclings have ended, but at most CLOSING_S."""
        self._step(Closed())
        with trio.move_on_after(CLOSING_S):
            while self._state.claims or self._recycling:
                await self._changed.wait()

    async def run(self) -> None:
        """Serve the pool until cancelled. Call this only once. When it returns or raises, all requests are answered."""
        try:
            async with trio.open_nursery() as self._work:
                while True:
                    self._wake = trio.Event()
                    for change in self._backend.changes():
                        self._step(change)
                    self._step(TimePassed(trio.current_time()))
                    with trio.move_on_at(next_deadline(self._state)):
                        await self._wake.wait()
        finally:
            with trio.CancelScope(shield=True):  # each recycling has a time limit of its own
                async with trio.open_nursery() as self._work:
                    self._step(Closed())
                    self._step(Abandoned())

    def _step(self, event: Event) -> None:
        self._state, effects = step(self._state, event)
        for effect in effects:
            self._perform(effect)
        self._signal_change()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Answered():
                self._answer(effect)
            case StartClaim():
                self._start_claim(effect)
            case Recycle():
                self._start_recycling(effect)
            case _:
                assert_never(effect)

    def _answer(self, effect: Answered) -> None:
        request = self._requests.pop(effect.request)
        request.answer = effect.answer
        if effect.answer is Answer.CLAIMED:
            self.metrics.claim_s.observe(trio.current_time() - request.enqueued_at)
        request.answered.set()

    def _start_claim(self, effect: StartClaim) -> None:
        request = self._requests[effect.request]
        now = self._last_dispatch = trio.current_time()
        if not request.uid:
            self.metrics.dispatch_s.observe(now - request.enqueued_at)
        request.uid = effect.member.uid
        self._tasks().start_soon(self._claim, request, effect.member, name=f"claim of {effect.member.uid}")

    def _tasks(self) -> trio.Nursery:
        if self._work is None:
            raise AssertionError("claims can be made only while run() reads the backend's changes")
        return self._work

    async def _claim(self, request: Request[Spec, Result], member: Member) -> None:
        event: Event
        try:
            claimed: Claimed[Result] = await self._backend.claim(member, request.spec)
        except ConflictError as error:
            request.error, event = error, Conflicted(request.number)
        except ClaimError as error:
            request.error, event = error, Failed(request.number)
        else:
            request.result, request.error, event = claimed.result, None, Succeeded(request.number, claimed.version)
        self._step(event)

    def _start_recycling(self, effect: Recycle) -> None:
        self._recycling += 1
        self._tasks().start_soon(self._recycle, effect.uid, name=f"recycling of {effect.uid}")

    async def _recycle(self, uid: str) -> None:
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + RECYCLING_S):
                await self._backend.recycle(uid)
        finally:
            self._recycling -= 1
            self._signal_change()

    def _signal_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


@asynccontextmanager
async def open_pool_scheduler(
    backend: Backend[Spec, Result], limits: Limits | None = None
) -> AsyncGenerator[PoolScheduler[Spec, Result]]:
    """Serve a pool while the block runs. Leaving the block shuts the pool down, and answers all requests."""
    scheduler = PoolScheduler(backend, limits or Limits())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scheduler.run, name="claim scheduler")
        try:
            yield scheduler
            await scheduler.shutdown()
        finally:
            nursery.cancel_scope.cancel()
