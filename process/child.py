"""The one way to run a child process.

:func:`run_child` starts a program in a session of its own, feeds and drains it within bounds, ends it where it goes beyond
them, and comes back when nobody of it is left alive: not when it exits, not when it runs into its deadline or writes too
much, not when the caller is cancelled at any moment, and not when a sink has a bug.

Invariant: **the leader is reaped last.** Its end is seen through a pidfd and ``waitid(WNOWAIT)``, which leave it a zombie. A
zombie keeps its number, and the kernel gives no number away that a process, a group or a session bears. So as long as the
leader is not reaped, ``killpg(pid)`` and "session == pid" mean this run and nobody else. Only when the sweep has found
nobody any more does ``wait4`` reap it, which gives the usage of exactly this child. Nothing here may wait for "any child"
(``waitpid(-1)``), and nobody else in this process may either.

What happens when is decided by the pure machine in :mod:`wharfinger.process.ending`; this file only tells it what it sees,
and does what it says. Cancellation is one more event: a task outside of the shield sees it and tells the machine,
everything else runs inside, for a bounded time (grace, sweep, dying, flush).
"""

import math
import os
import secrets
import signal
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar, assert_never

import trio

from wharfinger.process.command import NO_SINKS, Command, Limits, Outcome, Sinks, Usage
from wharfinger.process.ending import (
    DYING_S,
    CancelAsked,
    Effect,
    Ended,
    Event,
    KillEverything,
    LeaderExited,
    OutputExceeded,
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
from wharfinger.process.output import CappedOutput, TailBuffer
from wharfinger.process.spawn import Spawned, spawn
from wharfinger.process.sweep import SweepResult, sweep

CHUNK_BYTES: Final = 64 * 1024
"""The largest piece that is read, written or handed to a sink at once."""
SWEEP_S: Final = 5.0
"""How long one sweep may go on; then whoever is left is reported, and stays in the ledger."""
SPAWN_TRIES: Final = 6
SPAWN_RETRY_S: Final = 0.01
"""A file that was written a moment ago counts as open for writing while any other thread is between fork and exec, which
inherits the descriptor for that long (ETXTBSY). First pause; each further one is twice as long."""


_T = TypeVar("_T")


@trio.lowlevel.enable_ki_protection  # Ctrl-C comes at a checkpoint, not between the start and what guards it
async def run_child(
    command: Command, limits: Limits, *, sinks: Sinks = NO_SINKS, ledger: ProcessLedger | None = None
) -> Outcome:
    """Run ``command`` within ``limits``; when this returns or raises, nobody of it is alive.

    How many run at once is the caller's to bound. The deadline counts from the moment the program runs.

    Resource handling: on every way out the child's group, session and marked descendants are killed, its pipes closed, and
    its row in ``ledger`` forgotten.

    Error handling: SpawnError where the program could not be started, LedgerError where that could not be journalled before,
    StuckError where it would not die of SIGKILL. What a sink raises comes out in an exception group.
    Cancelled comes out only when all are dead: after at most ``term_grace_s`` and what SWEEP_S, DYING_S and FLUSH_S allow.
    """
    child = await _start(command, ledger)
    run = _Run(child, command, limits, sinks)
    outcome: Outcome | None = None
    try:
        async with trio.open_nursery() as watch:
            watch.start_soon(run.watch_cancellation, name=f"cancellation of {command.argv[0]}")
            with trio.CancelScope(shield=True):
                try:
                    outcome = await run.to_end()
                finally:
                    await run.make_sure(ledger)
            watch.cancel_scope.cancel()
    finally:
        child.close()
        if run.stuck:  # even in place of Cancelled: a process that does not die must not go unnoticed
            raise StuckError(command.argv[0], child.mark.pid, DYING_S)
    if outcome is None:
        raise AssertionError("a run without an outcome was cancelled, and the watch has raised that")
    return outcome


async def _start(command: Command, ledger: ProcessLedger | None) -> Spawned:
    """Start the program in a worker thread.

    ``run_sync`` either raises Cancelled before the thread starts, or waits for it and returns what it returns, cancelled
    or not: a child that was started is never lost.
    """
    token = secrets.token_hex(16)
    for attempt in range(SPAWN_TRIES):
        try:
            return await _in_thread(lambda: spawn(command, token, ledger))
        except FileBusyError:
            if attempt == SPAWN_TRIES - 1:
                raise
        await trio.sleep(SPAWN_RETRY_S * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


async def _in_thread(function: Callable[[], _T]) -> _T:
    """Run something that blocks. Own limiter: callers bound how many run, and a shared one could be held by others."""
    return await trio.to_thread.run_sync(function, limiter=trio.CapacityLimiter(1))


class _Run:
    """The shell around the machine: tells it what happens to one child, and performs what it answers."""

    def __init__(self, child: Spawned, command: Command, limits: Limits, sinks: Sinks) -> None:
        self.stuck = False
        self._child = child
        self._command = command
        self._limits = limits
        self._sinks = sinks
        self._stdout = bytearray()
        self._cap = CappedOutput(limits.stdout_bytes)
        self._stderr = TailBuffer(limits.stderr_bytes)
        self._swept = SweepResult(0, 0)
        self._reaped = False
        # Bounded by nature: each of the five that post does so once, stdout once more for its limit.
        self._inbox: deque[Event] = deque()
        self._wake = trio.Event()
        self._timer = math.inf

    async def watch_cancellation(self) -> None:
        """Runs outside of the shield, so that it is the one who is cancelled."""
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            self._post(CancelAsked())
            raise

    async def to_end(self) -> Outcome | None:
        """Let the child live, and see to its end; None when it was cancelled or does not end."""
        async with trio.open_nursery() as tasks:
            tasks.start_soon(self._watch_leader, name="leader")
            tasks.start_soon(self._pump, self._child.stdout, self._take_stdout, name="stdout")
            tasks.start_soon(self._pump, self._child.stderr, self._take_stderr, name="stderr")
            if self._child.stdin is not None:
                tasks.start_soon(self._feed, self._child.stdin, name="stdin")
            final = await self._conduct()
            tasks.cancel_scope.cancel()  # a feeder nobody reads, or a pipe that somebody out of reach holds
        if isinstance(final, Stuck):
            self._give_up()
            return None
        returncode, usage = self._reap()
        if final.ending is None:
            return None
        return Outcome(
            ending=final.ending,
            returncode=returncode,
            stdout=bytes(self._stdout),
            stderr=self._stderr.value(),
            usage=usage,
            survivors_killed=self._swept.killed,
            survivors_left=self._swept.left,
        )

    async def make_sure(self, ledger: ProcessLedger | None) -> None:
        """What must hold on every way out, a bug in a sink and Ctrl-C included: all dead, the leader reaped."""
        if not self._reaped and not self.stuck:
            self._signal_group(signal.SIGKILL)
            await self._sweep()
            with trio.move_on_after(DYING_S):
                await wait_zombie(self._child.pidfd)
                self._reap()
            if not self._reaped:
                self._give_up()
        if ledger is not None and self._reaped and self._swept.left == 0:
            with suppress(LedgerError):  # a row too many does no harm: nobody has its token
                await _in_thread(lambda: ledger.forget(self._child.mark.token))

    async def _conduct(self) -> Ended | Stuck:
        """The loop between the machine and the world: an effect, an event, a step."""
        state, effects = begin(self._limits)
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
            case TerminateGroup():
                self._signal_group(signal.SIGTERM)
                self._signal_group(signal.SIGCONT)  # or who is stopped could not use the grace
            case KillEverything():
                self._timer = math.inf
                await self._sweep()
                self._post(Swept())
            case _:
                assert_never(effect)

    def _signal_group(self, number: signal.Signals) -> None:
        """The leader is not reaped, so the number is its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.mark.pid, number)

    async def _sweep(self) -> None:
        self._swept = await _in_thread(lambda: sweep([self._child.mark], SWEEP_S))

    def _post(self, event: Event) -> None:
        self._inbox.append(event)
        self._wake.set()

    async def _watch_leader(self) -> None:
        await wait_zombie(self._child.pidfd)
        self._post(LeaderExited())

    async def _pump(self, fd: int, take: Callable[[bytes], None]) -> None:
        """Drain one pipe to its end, whatever becomes of the bytes: a child that cannot write cannot clean up."""
        while chunk := await _read_some(fd):
            take(chunk)
        self._post(PipeClosed())

    def _take_stdout(self, chunk: bytes) -> None:
        told = self._cap.exceeded
        fitting = self._cap.admit(chunk)
        if self._cap.exceeded and not told:
            self._post(OutputExceeded())
        if fitting and self._sinks.stdout is not None:
            self._sinks.stdout(fitting)
        else:
            self._stdout += fitting

    def _take_stderr(self, chunk: bytes) -> None:
        self._stderr.add(chunk)
        if self._sinks.stderr is not None:
            self._sinks.stderr(chunk)

    async def _feed(self, fd: int) -> None:
        """Write the input, then close it. A child that ends or closes its stdin before has all it wants."""
        rest = memoryview(self._command.stdin)
        with suppress(BrokenPipeError):
            while rest:
                await trio.lowlevel.checkpoint()
                try:
                    rest = rest[os.write(fd, rest[:CHUNK_BYTES]) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(fd)
        self._child.close_stdin()

    def _reap(self) -> tuple[int, Usage]:
        """The leader is a zombie and nobody else is left: give its number back, and take its usage."""
        _, status, usage = os.wait4(self._child.mark.pid, 0)
        self._reaped = True
        self._child.popen.returncode = os.waitstatus_to_exitcode(status)
        # ru_maxrss is in KiB on Linux (getrusage(2)).
        return self._child.popen.returncode, Usage(usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024)

    def _give_up(self) -> None:
        """Leave the leader to a thread of its own that reaps it when the kernel lets it go; it ends with this process."""
        self.stuck = True
        threading.Thread(target=self._child.popen.wait, name=f"reaper of {self._child.mark.pid}", daemon=True).start()


async def wait_zombie(pidfd: int) -> None:
    """Wait until a child of this process has ended, all its threads included, and leave it a zombie."""
    ended = False
    while not ended:
        await trio.lowlevel.wait_readable(pidfd)
        ended = _is_zombie(pidfd)


def _is_zombie(pidfd: int) -> bool:
    return os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


async def _read_some(fd: int) -> bytes:
    """What is there, at most CHUNK_BYTES; nothing at the end. Cancelling loses nothing: it never comes after the read."""
    await trio.lowlevel.checkpoint()
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            await trio.lowlevel.wait_readable(fd)
