"""A child that keeps running during a ``with`` block. The caller talks to it over its stdin and stdout. At the end of the block,
the child and all its descendants are dead.

A worker is started, marked, recorded in the ledger, ended and swept like a child of :mod:`wharfinger.process.child`. A worker
has no deadline, because it runs until its block is left. It has no output limit, because it can write only as fast as the
caller reads. stderr is always drained: its tail is kept, and a sink may receive it.

If a worker exits by itself, the processes that it started are killed at most DRAIN_S later, so that ``receive_some`` reaches
the end of the output and ``wait`` returns. Leaving the block closes the worker's stdin and ends the worker: its group gets
SIGTERM, and after the grace all its processes get SIGKILL.

There is no parent-death signal (:mod:`wharfinger.process.spawn` explains why). If the parent is killed, the worker reads the
end of its stdin and should exit. If it does not exit, the daemon kills it at its next start, because the ledger names it.
"""

import fcntl
import math
import select
import sys
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.process.command import Command, Limits, OutputSink, Usage
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.output import TailBuffer
from wharfinger.process.run import Run, read_some, start, write_all

DRAIN_S: Final = 1.0
"""The time, in seconds, after the exit of a worker until the processes that it started are killed."""
_SETTLE_S: Final = 0.0005
STDERR_BYTES: Final = 64 * 1024
"""The number of bytes that are kept from the end of a worker's stderr."""


class Worker:
    """A running worker. Made by :func:`open_worker`, and usable only in its block.

    One task may send and one may receive at the same time. Raises trio.BusyResourceError if two tasks send or two tasks receive,
    and trio.ClosedResourceError after the block.
    """

    def __init__(self, run: Run, on_stderr: OutputSink | None) -> None:
        self.pid = run.child.mark.pid
        self._run = run
        self._on_stderr = on_stderr
        self._stderr = TailBuffer(STDERR_BYTES)
        self._left = trio.Event()
        self._input_ended = False
        self._over = trio.Event()

    async def send(self, data: bytes) -> None:
        """Write all of ``data`` to the worker's stdin. Raises trio.BrokenResourceError if the worker has closed its stdin, or
        has ended.

        If a call is cancelled, an unknown part of the data was written, so the caller must not send further data.
        """
        stdin = self._open(None if self._input_ended else self._run.child.stdin)
        try:
            await write_all(stdin, data)
        except BrokenPipeError as error:
            raise trio.BrokenResourceError("the worker does not read its input any more") from error

    async def receive_some(self, max_bytes: int) -> bytes:
        """Return output of the worker, at most ``max_bytes``; empty once the worker has ended or closed its stdout."""
        return await read_some(self._open(self._run.child.stdout), max_bytes)

    def end_input(self) -> None:
        """Close the worker's stdin, so that the worker reads the end of its input. A task that still sends raises
        trio.ClosedResourceError.
        """
        if not self._input_ended and (fd := self._run.child.stdin) is not None and not self._left.is_set():
            self._input_ended = True
            trio.lowlevel.notify_closing(fd)
            self._run.child.close_stdin()

    def has_output(self) -> bool:
        """Return whether `receive_some` would return without waiting: with output, or because the worker has ended or closed its
        stdout.
        """
        poll = select.poll()
        poll.register(self._open(self._run.child.stdout), select.POLLIN)
        return bool(poll.poll(0))

    def unread_bytes(self) -> int:
        """Return the number of sent bytes that the worker has not read; this also works after the worker has ended."""
        return _waiting_bytes(self._open(None if self._input_ended else self._run.child.stdin))

    async def settle_stderr(self) -> None:
        """Wait until everything that the worker has written to stderr so far was read, and passed to the sink. The caller limits
        the time.
        """
        while not self._over.is_set() and _waiting_bytes(self._run.child.stderr):  # noqa: ASYNC110 - a pipe's level
            await trio.sleep(_SETTLE_S)

    @property
    def usage(self) -> Usage | None:
        """The total usage of the worker; None until it has ended."""
        return self._run.usage

    def stderr_tail(self) -> bytes:
        """Return the last bytes that the worker wrote to stderr, at most STDERR_BYTES."""
        return self._stderr.value()

    async def wait(self) -> int:
        """Wait until the worker and all processes that it started have ended.

        Return the worker's exit status as subprocess does (negative: the signal). Raises StuckError if the worker cannot be
        killed.
        """
        await self._over.wait()
        if self._run.returncode is None:
            raise self._run.stuck_error()
        return self._run.returncode

    @trio.lowlevel.enable_ki_protection  # like the block itself
    async def live(self, ledger: ProcessLedger | None) -> None:
        """Supervise the worker until its end. :func:`open_worker` runs this in a task."""
        jobs = {"stderr": self._watch_stderr, "stdout": self._discard_stdout}
        try:
            await self._run.to_end(jobs, pipes=1, ledger=ledger)
        finally:
            self._over.set()

    def leave(self) -> None:
        """End the worker, because the ``async with`` block of `open_worker` was left."""
        self._left.set()
        for fd in (None if self._input_ended else self._run.child.stdin, self._run.child.stdout):
            if fd is not None:
                trio.lowlevel.notify_closing(fd)  # a task that still waits there raises ClosedResourceError
        self._run.child.close_stdin()
        self._run.request_end()

    def _open(self, fd: int | None) -> int:
        if fd is None or self._left.is_set():
            raise trio.ClosedResourceError("the worker was closed, or its stdin was closed")
        return fd

    async def _watch_stderr(self) -> None:
        def take(chunk: bytes) -> None:
            self._stderr.add(chunk)
            if self._on_stderr is not None:
                self._on_stderr(chunk)

        await self._run.pump(self._run.child.stderr, take)

    async def _discard_stdout(self) -> None:
        """Discard the worker's stdout while it is being ended, because a child that cannot write cannot clean up."""
        await self._left.wait()
        while await read_some(self._run.child.stdout):
            pass


def _waiting_bytes(fd: int) -> int:
    """Return the number of bytes in a pipe that have not been read yet."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


@asynccontextmanager
@trio.lowlevel.enable_ki_protection  # as in run_child
async def open_worker(
    command: Command,
    *,
    bounds: Limits | None = None,
    ledger: ProcessLedger | None = None,
    term_grace_s: float = 5.0,
    on_stderr: OutputSink | None = None,
    open_stdin: bool = True,
) -> AsyncGenerator[Worker, None]:
    """Run ``command`` for the duration of the block; ``command.stdin`` must be empty, since input goes through ``send``. Of
    ``bounds``, only those that the kernel enforces apply. Without ``open_stdin`` the worker's stdin is /dev/null, and ``send``
    raises trio.ClosedResourceError.

    Resource handling: on every exit, also after an error in the block or a cancellation, the worker, its group, its session
    and its marked descendants are dead, its pipes closed, and its row in ``ledger`` removed. That takes at most
    ``term_grace_s`` and the time that :mod:`wharfinger.process.ending` allows for killing.

    Error handling: raises SpawnError and LedgerError before the block, and StuckError at its end, even in place of Cancelled.
    If the worker exits by itself, that is not an error: ``receive_some`` and ``wait`` report it. Errors of the block and of
    ``on_stderr`` are raised in a group.
    """
    if command.stdin:
        raise AssertionError("a worker's command must have no input; send the input while the worker runs")
    limits = Limits(
        wall_s=math.inf, stdout_bytes=0, term_grace_s=term_grace_s, cancel_grace_s=term_grace_s, drain_s=DRAIN_S
    )  # leaving the block is the normal end of a worker, so a cancellation does not shorten the grace
    child = await start(command, ledger, limits=bounds, open_stdin=open_stdin)
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
