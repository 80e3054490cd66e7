"""The limit on concurrent requests, shared by all tasks of a client.
:mod:`~wharfinger.cluster.traffic.pace_machine` computes the limit.

    async with pacer.turn() as turn:
        ...                      # the request, and the waits that the server asked for
        turn.refused()           # or turn.answered(seconds)

A turn is the permission to send one request. Turns are given in the order in which they were requested.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.traffic import pace_machine as core

FLOOR: Final = 4
"""The lowest limit on requests that are under way: so many are allowed even if the server refuses all requests."""


@dataclass(frozen=True, slots=True)
class PaceStatistics:
    """The state of a pacer. ``refused`` counts answers that asked for fewer requests.

    ``average_s`` is the moving average of the timed answers, in seconds.
    """

    limit: int
    ceiling: int
    under_way: int
    waiting: int
    refused: int
    average_s: float


class Turn:
    """The permission to send one request and its repetitions. :meth:`Pacer.turn` makes it for the task that sends the
    request.
    """

    __slots__ = ("_pacer", "is_held")

    def __init__(self, pacer: "Pacer") -> None:
        self._pacer = pacer
        self.is_held = True

    async def renew(self) -> None:
        """If more turns are held than the limit permits, give this turn back, and wait for a new one. Called between two
        attempts of a request.
        """
        if self._pacer.is_exceeded:
            self.is_held = False
            await self._pacer.exchange()
            self.is_held = True

    def refused(self) -> None:
        """Report that the server asked for fewer requests."""
        self._pacer.refused()

    def answered(self, took_s: float | None) -> None:
        """Report an answer. ``took_s`` is its time in seconds; None if the time says nothing about the server's load."""
        self._pacer.answered(took_s)


class Pacer:
    """The limit on the concurrent requests of one client. The limit adapts to the server, but never exceeds ``ceiling``."""

    def __init__(self, ceiling: int) -> None:
        self._pace = core.start(ceiling, min(FLOOR, ceiling))
        self._limiter = trio.CapacityLimiter(ceiling)
        self._refused = 0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Turn, None]:
        """Wait until the client may send one more request, and hold this permission (the *turn*) for as long as the
        block runs.
        """
        await self._limiter.acquire()
        turn = Turn(self)
        try:
            yield turn
        finally:
            if turn.is_held:
                self._limiter.release()

    @property
    def is_exceeded(self) -> bool:
        """Return whether more requests are in progress than the limit permits. This happens after the limit was lowered."""
        return self._limiter.available_tokens < 0

    async def exchange(self) -> None:
        """Give back the turn of this task, and wait for a new one. If the wait is cancelled, the task holds no turn any
        more.
        """
        self._limiter.release()
        await self._limiter.acquire()

    def refused(self) -> None:
        """Record that the server asked for fewer requests."""
        self._refused += 1
        self._step(core.Refused(trio.current_time()))

    def answered(self, took_s: float | None) -> None:
        """Record an answer. ``took_s`` is its time in seconds; None if the time says nothing about the server's load."""
        busy = self._limiter.available_tokens <= 0
        self._step(core.Answered(trio.current_time(), took_s, busy))

    def statistics(self) -> PaceStatistics:
        """Return the present state of the pacer, for metrics."""
        found = self._limiter.statistics()
        return PaceStatistics(
            limit=self._pace.at_once,
            ceiling=self._pace.ceiling,
            under_way=found.borrowed_tokens,
            waiting=found.tasks_waiting,
            refused=self._refused,
            average_s=self._pace.average_s,
        )

    def _step(self, event: core.Event) -> None:
        before, self._pace = self._pace.at_once, core.step(self._pace, event)
        if self._pace.at_once != before:
            self._limiter.total_tokens = self._pace.at_once
