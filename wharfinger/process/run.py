"""One child from start to end: the trio code around the pure state machine in :mod:`wharfinger.process.ending`.

:class:`Run` reports events to the machine (for example that the leader has ended, or that the timer has expired), and performs
its effects (a timer, SIGTERM to the group, SIGKILL to all processes). The caller decides which pipes are read and
how the bytes are used: :mod:`wharfinger.process.child` collects the output of a command, :mod:`wharfinger.process.worker`
communicates with a program that keeps running.

Invariant: **the leader is reaped last.** Its end is detected with a pidfd and ``waitid(WNOWAIT)``, which leave it a zombie. A
zombie keeps its pid, and the kernel reuses no number that a process, a group or a session has. So as long as the leader is not
reaped, ``killpg(pid)`` and "session == pid" can only refer to this run. Before ``wait4`` reaps the leader and returns its
resource usage, a *sweep* kills all processes of the run, until it finds no other process or reaches its time limit. No code in
this process may wait for "any child" (``waitpid(-1)``), which could reap a leader.

Runs that end at the same time are swept together (:mod:`wharfinger.process.shared_sweep`): ending a hundred runs costs about
as much as ending a few, and a cancelled run is over shortly after its grace.
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
    CancelRequested,
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
"""The maximum number of bytes that one call reads or writes."""
PUMPED_BYTES: Final = 16 * 1024
"""The size in bytes of the largest piece of output that is passed to a sink. A piece may contain thousands of lines, and no
other task runs while the sink processes them.
"""
BUSY_S: Final = 0.001
"""If a sink takes longer than this, in seconds, for a piece of output, the run pauses before it passes the next piece to the
sink. The pause is as long as the sink took.
"""
SWEEP_S: Final = 5.0
"""The time limit of one sweep, which ends the processes that a run has left behind. Processes that still remain are counted in
the outcome, and the ledger keeps the run.
"""
SPAWN_TRIES: Final = 6
SPAWN_RETRY_S: Final = 0.01
"""The pause before the first retry after ETXTBSY; each further pause is twice as long.

A program that was written a moment ago still counts as open for writing while another child of this process is between fork
and exec, because that child has inherited the descriptor.
"""

_T = TypeVar("_T")


async def start(
    command: Command,
    ledger: ProcessLedger | None,
    *,
    limits: Limits | None = None,
    open_stdin: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Spawned:
    """Call ``prepare``, then start the program, both in a worker thread. Of ``limits``, only those that the kernel enforces are
    used.

    A child that was started is never lost: ``run_sync`` either raises Cancelled before its thread starts, or waits for the
    thread and returns its result even if the task is cancelled. Raises SpawnError or LedgerError, and the errors of ``prepare``.
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
    raise AssertionError("the last attempt neither returned nor raised")


async def in_thread(function: Callable[[], _T]) -> _T:
    """Run a blocking function in a thread of its own, outside of trio's shared limit; the callers limit the number of such
    threads.
    """
    return await trio.to_thread.run_sync(function, limiter=trio.CapacityLimiter(1))


class Run:
    """One child that was started. The child is reaped after all other processes of the run have been killed; ``returncode`` and
    ``usage`` are known then. ``stuck`` is True if SIGKILL did not end the child in time; then a thread reaps it when the kernel
    lets it end.
    """

    def __init__(self, child: Child, program: str, limits: Limits) -> None:
        self.child = child
        self.program = program
        self.stuck = False
        self.returncode: int | None = None
        self.usage: Usage | None = None
        self.swept = SweepResult(0, 0)
        self._limits = limits
        # No bound is needed: each sender posts one event, or one for each pipe.
        self._inbox: deque[Event] = deque()
        self._wake = trio.Event()
        self._timer = math.inf

    def post(self, event: Event) -> None:
        """Report an event to the machine; ignored after the end of the run."""
        self._inbox.append(event)
        self._wake.set()

    def request_end(self) -> None:
        """End the run: SIGTERM, the grace time, then SIGKILL for all remaining processes. A second call does nothing."""
        self.post(CancelRequested())

    async def to_end(
        self, jobs: Mapping[str, Callable[[], Awaitable[None]]], *, pipes: int, ledger: ProcessLedger | None
    ) -> Ended | Stuck:
        """Do ``jobs`` while the child lives, and wait for its end; ``pipes`` is the number of jobs that post PipeClosed.

        When this returns or raises, all processes of the run are dead and its row in ``ledger`` is removed. The only exception
        is a process that cannot be killed: it keeps the row. The wait is shielded from cancellation; ``request_end`` ends the
        run early, within a bounded time. Jobs that are not done at the end are cancelled.
        """
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as tasks:
                    tasks.start_soon(self._watch_leader, name="leader")
                    for name, job in jobs.items():
                        tasks.start_soon(job, name=name)
                    final = await self._conduct(pipes)
                    # A job may still wait to write to a pipe without a reader, or to read from a pipe that is still open in a
                    # process that was not found.
                    tasks.cancel_scope.cancel()
                if isinstance(final, Stuck):
                    self._give_up()
                else:
                    self._reap()
            finally:
                await self._ensure_ended(ledger)
        return final

    async def pump(self, fd: int, take: Callable[[bytes], None]) -> None:
        """Drain one pipe to its end, even if the bytes are not wanted any more: a child that cannot write cannot clean up.

        A child that writes faster than its output can be processed has to wait, so that other tasks get half of the time.
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

    async def _ensure_ended(self, ledger: ProcessLedger | None) -> None:
        """On every exit, also after a bug in a sink and after Ctrl-C, kill all processes of the run and reap the leader. If no
        process is left, delete the run's row in ``ledger``.
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
            with suppress(LedgerError):  # a remaining row does no harm: no process has its token
                await in_thread(lambda: ledger.forget(self.child.mark.token))

    async def _conduct(self, pipes: int) -> Ended | Stuck:
        """Run the loop of the machine: perform its effects, wait for the next event, and pass it to `step`."""
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
                self._signal_group(signal.SIGCONT)  # otherwise a stopped process could not use the grace
            case KillEverything():
                self._timer = math.inf
                await self._sweep()
                self.post(Swept())
            case _:
                assert_never(effect)

    def _signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process group of the run. The group's leader is not reaped yet, so no other group can have the
        same number.
        """
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.mark.pid, number)

    async def _sweep(self) -> None:
        self.swept = await shared_sweep().sweep(self.child.mark, SWEEP_S)

    async def _watch_leader(self) -> None:
        await wait_zombie(self.child.pidfd)
        self.post(LeaderExited())

    def _reap(self) -> None:
        """Reap the leader, which is a zombie and the last process of its run, and record its exit code and usage."""
        _, status, usage = os.wait4(self.child.mark.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self.child.reaped(self.returncode)
        # ru_maxrss is in KiB on Linux (getrusage(2)).
        self.usage = Usage(usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024)

    def _give_up(self) -> None:
        """Start a thread that reaps the leader of the process group once the kernel lets it end. The thread ends with this
        process.
        """
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
    """Return the available bytes; empty at the end of the pipe. A cancellation loses no bytes, because Cancelled is never raised
    after the read.
    """
    await trio.lowlevel.checkpoint()
    while True:
        try:
            return os.read(fd, min(max_bytes, CHUNK_BYTES))
        except BlockingIOError:
            await trio.lowlevel.wait_readable(fd)


async def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``. Raises BrokenPipeError if the reader is gone. If the call is cancelled, a part may have been
    written.
    """
    await trio.lowlevel.checkpoint()
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest[:CHUNK_BYTES]) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(fd)
        else:
            await trio.lowlevel.checkpoint()
