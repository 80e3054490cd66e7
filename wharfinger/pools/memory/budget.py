"""The memory budget of all pools: no process is started that would exceed it, and if it is exceeded, idle processes are ended.

Each pool joins the budget as a Holder, and asks it (`admits`, `has_room`) before it starts a process. A task measures all
processes every MEASURE_S while there are any: their sizes change, because a forked process gets a copy of each page that it
writes. A process that is not measured yet counts as TYPICAL. A process that is to be started counts as much as the largest idle
process of its pool: if less were reserved, it would be ended after the next measurement, and started again. While a pool has no
idle process, that size is halved every FORGET_S. Otherwise, one large process could forever prevent the start of smaller ones.

The processes that have been idle longest are ended first. Processes that run a hook are not ended, and neither are zygotes (the
processes that fork warm workers), which end with their pool.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import trio

from wharfinger.pools.memory.footprint import Footprint, footprint

log = logging.getLogger(__name__)

POOLS_SHARE: Final = 5
"""The default budget is the machine's memory divided by this number."""
MEASURE_S: Final = 5.0
"""The time between two measurements."""
EMPTY_S: Final = 60.0
"""The pause between measurements while the pools have no process. It ends early when a process is admitted."""
FORGET_S: Final = 60.0
"""The time, in seconds, after which the recorded size of a pool's largest idle process is halved. It is halved again after each
such time until the pool has an idle process again.
"""
TYPICAL: Final = 4 * 1024 * 1024
"""The size in bytes that a process is assumed to have until it is measured."""


@dataclass(frozen=True, slots=True)
class IdleProcess:
    """A process that waits for work. ``since`` is a time of trio's clock; ``end`` ends the process and must not block."""

    pid: int
    since: float
    end: Callable[[], None]


class Holder(Protocol):
    """A pool whose processes count towards the budget."""

    def busy_processes(self) -> Iterable[int]:
        """Return the ids of the processes that must not be ended."""
        ...

    def idle_processes(self) -> Iterable[IdleProcess]:
        """Return the processes that may be ended."""
        ...


def longest_idle(idle: Sequence[IdleProcess], sizes: Mapping[int, Footprint], excess: int) -> list[IdleProcess]:
    """Return the processes to end: those that have been idle longest, and only as many as needed to free ``excess`` bytes of
    private memory. Pure.
    """
    found: list[IdleProcess] = []
    for process in sorted(idle, key=lambda each: each.since):
        if excess <= 0:
            break
        if (size := sizes.get(process.pid)) is not None:
            found.append(process)
            excess -= size.private
    return found


class MemoryBudget:
    """The budget of all pools. Made by :func:`open_memory_budget`.

    ``refused`` counts the processes that were not admitted, ``ended`` those that were ended because the budget was exceeded.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.refused = 0
        self.ended = 0
        self._sizes: dict[int, Footprint] = {}
        self._largest: dict[Holder, tuple[int, float]] = {}
        self._holders: list[Holder] = []
        self._measured = trio.Event()
        self._admitted = trio.Event()

    @contextmanager
    def joined(self, holder: Holder) -> Iterator[None]:
        """Count the processes of a holder while the block runs."""
        self._holders.append(holder)
        try:
            yield
        finally:
            self._holders.remove(holder)
            self._largest.pop(holder, None)

    @property
    def used(self) -> int:
        """The bytes of all present processes, by their last measurements."""
        return self.size_of(self._processes())

    def size_of(self, pids: Iterable[int]) -> int:
        """Return the bytes of these processes, by their last measurements."""
        return sum(self._sizes[pid].total if pid in self._sizes else TYPICAL for pid in pids)

    def has_room(self, holder: Holder | None = None) -> bool:
        """Return whether one more process of the pool ``holder`` would fit into the budget. For a new pool,
        ``holder`` is None.
        """
        expected, _ = self._largest.get(holder, (TYPICAL, 0.0)) if holder is not None else (TYPICAL, 0.0)
        return self.used + expected <= self.limit_bytes

    def admits(self, holder: Holder | None = None) -> bool:
        """Return whether one more process of the pool ``holder`` may be started; None stands for a new pool. If it may not,
        count the refusal.
        """
        if self.has_room(holder):
            self._admitted.set()
            return True
        self.refused += 1
        return False

    def note_start(self) -> None:
        """Record that an admitted process has started, perhaps long after it was admitted, so that it is measured soon."""
        self._admitted.set()

    async def wait_measured(self) -> None:
        """Wait for the next measurement; a process that was refused may be admitted then."""
        await self._measured.wait()

    async def measure(self) -> None:
        """Measure the memory of all processes. If all together take more than the budget, end idle processes."""
        self._sizes = await trio.to_thread.run_sync(_measured, self._processes())
        used = self.used
        idle: list[IdleProcess] = []
        for holder in self._holders:
            own = [*holder.idle_processes()]
            idle += own
            self._note_largest(holder, [self._sizes[each.pid].total for each in own if each.pid in self._sizes])
        for process in longest_idle(idle, self._sizes, used - self.limit_bytes):
            log.info(
                "pools take %d MiB, which is more than %d MiB: idle process %d ends",
                used >> 20,
                self.limit_bytes >> 20,
                process.pid,
            )
            self.ended += 1
            process.end()
        self._measured.set()
        self._measured = trio.Event()

    def _note_largest(self, holder: Holder, found: Sequence[int]) -> None:
        """Record the largest size of a pool's idle processes. If the pool has had none for a while, halve the recorded size."""
        now = trio.current_time()
        if found:
            self._largest[holder] = max(TYPICAL, *found), now
        elif (size := self._largest.get(holder)) is not None and now - size[1] >= FORGET_S:
            self._largest[holder] = max(TYPICAL, size[0] // 2), now

    async def keep(self) -> None:
        """Measure repeatedly until cancelled. While there is no process, measure rarely, because each measurement wakes up an
        idle daemon.
        """
        while True:
            if not self._processes():
                with trio.move_on_after(EMPTY_S):
                    await self._admitted.wait()
            self._admitted = trio.Event()
            await trio.sleep(MEASURE_S)
            if self._holders:
                await self.measure()

    def _processes(self) -> list[int]:
        found: list[int] = []
        for holder in self._holders:
            found += holder.busy_processes()
            found += (process.pid for process in holder.idle_processes())
        return found


def _measured(pids: Iterable[int]) -> dict[int, Footprint]:
    """Return the present memory of each of these processes, without those that have ended. Blocking."""
    found = ((pid, footprint(pid)) for pid in pids)
    return {pid: size for pid, size in found if size is not None}


@asynccontextmanager
async def open_memory_budget(limit_bytes: int) -> AsyncGenerator[MemoryBudget]:
    """Keep the pools within this number of bytes while the block runs."""
    budget = MemoryBudget(limit_bytes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(budget.keep, name="memory of pools")
        try:
            yield budget
        finally:
            nursery.cancel_scope.cancel()
