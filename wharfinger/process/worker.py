"""A child that stays: started once, talked with over its stdin and stdout, dead with all its descendants when the block ends.

The same start, marks, ledger row, ending and sweep as :mod:`wharfinger.process.child`; the difference is that there is no
deadline and no output limit, because the user of the worker reads continuously, with the pipe's back-pressure, and bounds
what it reads. stderr is always drained: its tail is kept, and a sink may see it.

When a worker ends by itself, the processes that it started are ended, too: at most DRAIN_S later the rest is killed, so
``receive_some`` comes to an end and ``wait`` answers. Leaving the block closes its stdin and ends it: SIGTERM to its group,
the grace, SIGKILL to all.

There is no parent-death signal (:mod:`wharfinger.process.spawn` says why). A worker whose parent is killed reads the end of its
stdin; one that does not care about it is ended by the next start, through the ledger.
"""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.process.command import Command, Limits, OutputSink
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.output import TailBuffer
from wharfinger.process.run import Run, read_some, start, write_all

DRAIN_S: Final = 1.0
"""The time for which processes that a worker started may outlive it."""
STDERR_BYTES: Final = 64 * 1024
"""The number of last bytes of its stderr that are kept."""


class Worker:
    """A running worker. Made by :func:`open_worker`; of no use after its block.

    One task may send and one may receive at the same time. Raises trio.BusyResourceError where two do, and
    trio.ClosedResourceError after the block.
    """

    def __init__(self, run: Run, on_stderr: OutputSink | None) -> None:
        self.pid = run.child.mark.pid
        self._run = run
        self._on_stderr = on_stderr
        self._stderr = TailBuffer(STDERR_BYTES)
        self._left = trio.Event()
        self._over = trio.Event()

    async def send(self, data: bytes) -> None:
        """Write all of ``data`` to its stdin. Raises trio.BrokenResourceError where it has ended or closed its stdin.

        Cancelled in the middle, an unknown part of the data is written: nothing sensible can be sent after that.
        """
        stdin = self._open(self._run.child.stdin)
        try:
            await write_all(stdin, data)
        except BrokenPipeError as error:
            raise trio.BrokenResourceError("the worker does not read its input any more") from error

    async def receive_some(self, max_bytes: int) -> bytes:
        """Return output of the worker, at most ``max_bytes``; empty once the worker has ended or closed its stdout."""
        return await read_some(self._open(self._run.child.stdout), max_bytes)

    def stderr_tail(self) -> bytes:
        """Return the last that it wrote to stderr, at most STDERR_BYTES."""
        return self._stderr.value()

    async def wait(self) -> int:
        """Wait until the worker and all processes that it started have ended.

        Return its status as subprocess does (negative: the signal). Raises StuckError if it cannot be killed.
        """
        await self._over.wait()
        if self._run.returncode is None:
            raise self._run.stuck_error()
        return self._run.returncode

    @trio.lowlevel.enable_ki_protection  # as the block itself
    async def live(self, ledger: ProcessLedger | None) -> None:
        """Run the worker until it ends or is ended; for a task of :func:`open_worker`."""
        jobs = {"stderr": self._watch_stderr, "stdout": self._discard_stdout}
        try:
            await self._run.to_end(jobs, pipes=1, ledger=ledger)
        finally:
            self._over.set()

    def leave(self) -> None:
        """End the worker, because its block was left."""
        self._left.set()
        for fd in (self._run.child.stdin, self._run.child.stdout):
            if fd is not None:
                trio.lowlevel.notify_closing(fd)  # a task that still waits there raises ClosedResourceError
        self._run.child.close_stdin()
        self._run.ask_end()

    def _open(self, fd: int | None) -> int:
        if fd is None or self._left.is_set():
            raise trio.ClosedResourceError("the worker's block was left")
        return fd

    async def _watch_stderr(self) -> None:
        def take(chunk: bytes) -> None:
            self._stderr.add(chunk)
            if self._on_stderr is not None:
                self._on_stderr(chunk)

        await self._run.pump(self._run.child.stderr, take)

    async def _discard_stdout(self) -> None:
        """Discard its stdout while it is being ended: a child that cannot write cannot clean up."""
        await self._left.wait()
        while await read_some(self._run.child.stdout):
            pass


@asynccontextmanager
@trio.lowlevel.enable_ki_protection  # as in run_child
async def open_worker(
    command: Command,
    *,
    ledger: ProcessLedger | None = None,
    term_grace_s: float = 5.0,
    on_stderr: OutputSink | None = None,
    open_stdin: bool = True,
) -> AsyncGenerator[Worker, None]:
    """Start ``command`` and let it live for the block; ``command.stdin`` must be empty, since that is for ``send``.
    Without ``open_stdin`` its stdin is /dev/null, and ``send`` raises trio.ClosedResourceError.

    Resource handling: on every way out, the body's error and cancellation included, the worker, its group, its session and
    its marked descendants are dead, its pipes closed, and its row in ``ledger`` removed. That takes at most ``term_grace_s``
    and the time that :mod:`wharfinger.process.ending` allows for killing.

    Error handling: SpawnError and LedgerError before the block; StuckError at its end, even in place of Cancelled. The
    worker's own end is no error: ``receive_some`` and ``wait`` report it. Errors of the body and of ``on_stderr`` are raised
    in a group.
    """
    if command.stdin:
        raise AssertionError("a worker's input is sent while it runs")
    limits = Limits(
        wall_s=math.inf, stdout_bytes=0, term_grace_s=term_grace_s, cancel_grace_s=term_grace_s, drain_s=DRAIN_S
    )  # leaving the block is the way a worker ends, so it gets all of its grace
    child = await start(command, ledger, open_stdin=open_stdin)
    run = Run(child, command.argv[0], limits)
    worker = Worker(run, on_stderr)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(worker.live, ledger, name=f"worker {command.argv[0]}")
            try:
                yield worker
            finally:
                worker.leave()
    finally:
        child.close()
        if run.stuck:
            raise run.stuck_error()
