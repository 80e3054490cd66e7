"""One child from start to end: the trio shell around the machine in :mod:`wharfinger.process.ending`.

:class:`Run` reports to the machine what happens (the leader ended, a pipe closed, the end is asked for, time is over), and
performs the effects (a timer, SIGTERM to the group, kill everything). Its user decides which pipes are read, and what
becomes of the bytes: :mod:`wharfinger.process.child` collects the output of a command, :mod:`wharfinger.process.worker`
talks with a program that keeps running.

Invariant: **the leader is reaped last.** Its end is seen through a pidfd and ``waitid(WNOWAIT)``, which leave it a zombie. A
zombie keeps its number, and the kernel reuses no number that a process, a group or a session has. So as long as the leader
is not reaped, ``killpg(pid)`` and "session == pid" mean this run only. Only when the sweep has found no process any more
does ``wait4`` reap it, which gives the usage of exactly this child. Nothing here may wait for "any child" (``waitpid(-1)``),
and no other code in this process may either.

Runs that end at the same time are swept together (:mod:`wharfinger.process.shared_sweep`): ending a hundred runs costs as
much as ending a few, and a cancelled run is over a moment after its grace.
"""

import math
import os
import secrets
import signal
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar, assert_never

import trio

from wharfinger.process.command import Command, Limits, Usage
from wharfinger.process.ending import (
    DYING_S,
    CancelAsked,
    Effect,
    Ended,
    Event,
    HastenTimer,
    KillEverything,
    LeaderExited,
    PipeClosed,
    SetTimer,
    Stuck,
    Swept,
    TerminateGroup,
    TimerFired,
    begin,
    step,
)
from wharfinger.process.errors import FileBusyError, LedgerError, StuckError
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.shared_sweep import shared_sweep
from wharfinger.process.spawn import Child, Spawned, spawn
from wharfinger.process.sweep import SweepResult

CHUNK_BYTES: Final = 64 * 1024
"""The largest piece that is read or written at once."""
PUMPED_BYTES: Final = 16 * 1024
"""The largest piece that is passed to a sink: it may be thousands of lines, and no other task runs while the sink reads
them.
"""
BUSY_S: Final = 0.001
"""A sink that takes longer over a piece is given the next one only after a rest as long as that."""
SWEEP_S: Final = 5.0
"""The time limit of one sweep; processes that are then left are reported, and stay in the ledger."""
SPAWN_TRIES: Final = 6
SPAWN_RETRY_S: Final = 0.01
"""A file that was written a moment ago counts as open for writing while any other thread is between fork and exec, which
inherits the descriptor for that long (ETXTBSY). First pause; each further one is twice as long."""

_T = TypeVar("_T")


async def start(
    command: Command,
    ledger: ProcessLedger | None,
    *,
    limits: Limits | None = None,
    open_stdin: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Spawned:
    """Start the program in a worker thread, within those of ``limits`` that are the kernel's; ``prepare`` comes before, in it.

    ``run_sync`` either raises Cancelled before the thread starts, or waits for it and returns what it returns, cancelled
    or not: a child that was started is never lost. Raises SpawnError or LedgerError, and what ``prepare`` does.
    """
    token = secrets.token_hex(16)

    def begin() -> Spawned:
        if prepare is not None and attempt == 0:
            prepare()
        return spawn(command, token, ledger, limits=limits, open_stdin=open_stdin)

    for attempt in range(SPAWN_TRIES):
        try:
            return await in_thread(begin)
        except FileBusyError:
            if attempt == SPAWN_TRIES - 1:
                raise
        await trio.sleep(SPAWN_RETRY_S * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


async def in_thread(function: Callable[[], _T]) -> _T:
    """Run something that blocks. Own limiter: callers bound how many run, and a shared one could be held by others."""
    return await trio.to_thread.run_sync(function, limiter=trio.CapacityLimiter(1))


class Run:
    """One child that was started. ``returncode`` and ``usage`` are known once it is reaped, after all other processes are
    dead.

    ``stuck``: SIGKILL did not end it, and it was left to a thread that reaps it when the kernel lets it end.
    """

    def __init__(self, child: Child, program: str, limits: Limits) -> None:
        self.child = child
        self.program = program
        self.stuck = False
        self.returncode: int | None = None
        self.usage: Usage | None = None
        self.swept = SweepResult(0, 0)
        self._limits = limits
        # Bounded by nature: each who posts does so once, or once for each pipe.
        self._inbox: deque[Event] = deque()
        self._wake = trio.Event()
        self._timer = math.inf

    def post(self, event: Event) -> None:
        """Report to the machine what happened; ignored after its end."""
        self._inbox.append(event)
        self._wake.set()

    def ask_end(self) -> None:
        """End the run: SIGTERM, the grace time, then SIGKILL for all remaining processes. A second call does nothing."""
        self.post(CancelAsked())

    async def to_end(
        self, jobs: Mapping[str, Callable[[], Awaitable[None]]], *, pipes: int, ledger: ProcessLedger | None
    ) -> Ended | Stuck:
        """Do ``jobs`` while the child lives, and wait for its end; ``pipes`` of them post PipeClosed.

        When this returns or raises, all processes of the run are dead and its row in ``ledger`` is removed. Shielded from
        cancellation: ``ask_end`` ends it early, within a bounded time. Jobs that are not done at the end are cancelled.
        """
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as tasks:
                    tasks.start_soon(self._watch_leader, name="leader")
                    for name, job in jobs.items():
                        tasks.start_soon(job, name=name)
                    final = await self._conduct(pipes)
                    tasks.cancel_scope.cancel()  # a feeder without a reader, or a pipe that an unreachable process holds
                if isinstance(final, Stuck):
                    self._give_up()
                else:
                    self._reap()
            finally:
                await self._make_sure(ledger)
        return final

    async def pump(self, fd: int, take: Callable[[bytes], None]) -> None:
        """Drain one pipe to its end, even if the bytes are not wanted any more: a child that cannot write cannot clean up.

        A child that writes faster than its output can be processed waits, so that other tasks get half of the time.
        """
        while chunk := await read_some(fd, PUMPED_BYTES):
            begun = trio.current_time()
            take(chunk)
            if (taken_s := trio.current_time() - begun) > BUSY_S:
                await trio.sleep(taken_s)
        self.post(PipeClosed())

    def stuck_error(self) -> StuckError:
        """Return the error for a caller that finds the run ``stuck``."""
        return StuckError(self.program, self.child.mark.pid, DYING_S)

    async def _make_sure(self, ledger: ProcessLedger | None) -> None:
        """Guarantee the end of the run on every exit, also after a bug in a sink and after Ctrl-C: all dead, the leader
        reaped.
        """
        if self.returncode is None and not self.stuck:
            self._signal_group(signal.SIGKILL)
            await self._sweep()
            with trio.move_on_after(DYING_S):
                await wait_zombie(self.child.pidfd)
                self._reap()
            if self.returncode is None:
                self._give_up()
        if ledger is not None and self.returncode is not None and self.swept.left == 0:
            with suppress(LedgerError):  # a row too many does no harm: no process has its token
                await in_thread(lambda: ledger.forget(self.child.mark.token))

    async def _conduct(self, pipes: int) -> Ended | Stuck:
        """Run the loop between the machine and the world: an effect, an event, a step."""
        state, effects = begin(self._limits, pipes)
        while True:
            for effect in effects:
                await self._perform(effect)
            if isinstance(state, Ended | Stuck):
                return state
            state, effects = step(state, await self._next_event(), self._limits)

    async def _next_event(self) -> Event:
        if not self._inbox:
            self._wake = trio.Event()  # no await between the check and this line
            with trio.move_on_at(self._timer):
                await self._wake.wait()
        return self._inbox.popleft() if self._inbox else TimerFired()

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case SetTimer():
                self._timer = trio.current_time() + effect.seconds
            case HastenTimer():
                self._timer = min(self._timer, trio.current_time() + effect.seconds)
            case TerminateGroup():
                self._signal_group(signal.SIGTERM)
                self._signal_group(signal.SIGCONT)  # or who is stopped could not use the grace
            case KillEverything():
                self._timer = math.inf
                await self._sweep()
                self.post(Swept())
            case _:
                assert_never(effect)

    def _signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the group. The leader is not reaped, so the number is its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.mark.pid, number)

    async def _sweep(self) -> None:
        self.swept = await shared_sweep().sweep(self.child.mark, SWEEP_S)

    async def _watch_leader(self) -> None:
        await wait_zombie(self.child.pidfd)
        self.post(LeaderExited())

    def _reap(self) -> None:
        """Reap the leader, a zombie and the last of its run: give its number back, and record its usage."""
        _, status, usage = os.wait4(self.child.mark.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self.child.reaped(self.returncode)
        # ru_maxrss is in KiB on Linux (getrusage(2)).
        self.usage = Usage(usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024)

    def _give_up(self) -> None:
        """Leave the leader to a thread that reaps it when the kernel lets it end; the thread ends with this process."""
        self.stuck = True
        threading.Thread(target=self.child.reap_when_dead, name=f"reaper of {self.child.mark.pid}", daemon=True).start()


async def wait_zombie(pidfd: int) -> None:
    """Wait until a child of this process has ended, all its threads included, and leave it a zombie."""
    ended = False
    while not ended:
        await trio.lowlevel.wait_readable(pidfd)
        ended = _is_zombie(pidfd)


def _is_zombie(pidfd: int) -> bool:
    return os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


async def read_some(fd: int, max_bytes: int = CHUNK_BYTES) -> bytes:
    """Return the bytes that are there; empty at the end. Cancelling loses nothing: it never comes after the read."""
    await trio.lowlevel.checkpoint()
    while True:
        try:
            return os.read(fd, min(max_bytes, CHUNK_BYTES))
        except BlockingIOError:
            await trio.lowlevel.wait_readable(fd)


async def write_all(fd: int, data: bytes) -> None:
    """Write all of it. Raises BrokenPipeError if the reader is gone; if cancelled, a part of it may be written."""
    await trio.lowlevel.checkpoint()
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest[:CHUNK_BYTES]) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(fd)
        else:
            await trio.lowlevel.checkpoint()
