"""Child processes that are run to their end.

:func:`run_child` starts a program in a session of its own, feeds and drains it, ends it if it exceeds its limits, and returns
when no process of the run is alive. This holds when the program exits, when it runs into its deadline or writes too much,
when the caller is cancelled at any moment, and when a sink (a callback that receives output) raises an error.

The pure machine in :mod:`wharfinger.process.ending` decides when to end the child and how, and :mod:`wharfinger.process.run`
performs its decisions. The run is shielded from cancellation. A task outside of the shield receives a cancellation, and reports
it to the machine as an event. The run then ends within a bounded time: this is the time for the grace period, for the sweep that
kills all processes, for their death, and for the rest of the output.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from wharfinger.process.command import NO_SINKS, Command, Limits, Outcome, Sinks
from wharfinger.process.ending import Ended, OutputExceeded, Stuck
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.output import CappedOutput, TailBuffer
from wharfinger.process.run import Run, start, write_all
from wharfinger.process.spawn import Child


@trio.lowlevel.enable_ki_protection  # no KeyboardInterrupt between the child's start and the code that ensures its end
async def run_child(
    command: Command,
    limits: Limits,
    *,
    sinks: Sinks = NO_SINKS,
    ledger: ProcessLedger | None = None,
    prepare: Callable[[], None] | None = None,
) -> Outcome:
    """Run ``command`` within ``limits``, and end all processes of the run before returning or raising.

    ``prepare`` is called once, in the worker thread that starts the program, before the start; so the caller needs no
    additional thread for ``prepare``. If ``prepare`` raises, nothing is started, and the error is raised here.

    The caller limits how many commands run at the same time. The deadline counts from the start of the program.

    Resource handling: on every way out, the child's group, session and marked descendants are killed, its pipes closed, and its
    row in ``ledger`` removed. If a process cannot be killed, the row is kept for the next start of the daemon.

    Error handling: SpawnError if the program could not be started, LedgerError if its start could not be recorded in the ledger,
    StuckError if it does not die of SIGKILL. The error of a sink is raised in an exception group. Cancelled is raised only when
    the run is over. The end of a cancelled run takes at most the sum of ``cancel_grace_s``, SWEEP_S, DYING_S and
    FLUSH_CANCELLED_S. It usually takes little more than the grace, however many runs are cancelled at the same time.
    """
    child = await start(command, ledger, limits=limits, prepare=prepare)
    return await conduct(child, command, limits, sinks=sinks, ledger=ledger)


@trio.lowlevel.enable_ki_protection  # as run_child
async def conduct(
    child: Child,
    command: Command,
    limits: Limits,
    *,
    sinks: Sinks = NO_SINKS,
    ledger: ProcessLedger | None = None,
) -> Outcome:
    """Supervise a running child until its end, as `run_child` does. From the moment of the call, `conduct` owns the child.

    The limits that the kernel enforces must be in force for the child already. Raises StuckError, and the errors of a sink in a
    group.
    """
    run = Run(child, command.argv[0], limits)
    output = _Output(run, command, limits, sinks)
    final: Ended | Stuck | None = None
    try:
        async with trio.open_nursery() as watch:
            watch.start_soon(_watch_cancellation, run, name=f"cancellation of {command.argv[0]}")
            final = await run.to_end(output.jobs(), pipes=2, ledger=ledger)
            watch.cancel_scope.cancel()
    finally:
        child.close()
        if run.stuck:  # even in place of Cancelled: a process that does not die must not go unnoticed
            raise run.stuck_error()
    if not isinstance(final, Ended) or final.ending is None or run.returncode is None or run.usage is None:
        raise AssertionError("the run ended without an outcome, and was not cancelled")
    return Outcome(
        ending=final.ending,
        returncode=run.returncode,
        stdout=bytes(output.stdout),
        stderr=output.stderr.value(),
        usage=run.usage,
        survivors_killed=run.swept.killed,
        survivors_left=run.swept.left,
    )


async def _watch_cancellation(run: Run) -> None:
    """Wait until the caller is cancelled, and then ask the run's state machine to end the child. The rest of the run is
    shielded from cancellation; this task is not.
    """
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        run.request_end()
        raise


class _Output:
    """The input and output of a command, within its limits."""

    def __init__(self, run: Run, command: Command, limits: Limits, sinks: Sinks) -> None:
        self.stdout = bytearray()
        self.stderr = TailBuffer(limits.stderr_bytes)
        self._run = run
        self._input = command.stdin
        self._sinks = sinks
        self._cap = CappedOutput(limits.stdout_bytes)

    def jobs(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the functions that read the child's output and write its input, by the name of the stream."""
        child = self._run.child
        jobs: dict[str, Callable[[], Awaitable[None]]] = {
            "stdout": lambda: self._run.pump(child.stdout, self._take_stdout),
            "stderr": lambda: self._run.pump(child.stderr, self._take_stderr),
        }
        if child.stdin is not None:
            stdin = child.stdin
            jobs["stdin"] = lambda: self._feed(stdin)
        return jobs

    def _take_stdout(self, chunk: bytes) -> None:
        was_exceeded = self._cap.exceeded
        fitting = self._cap.admit(chunk)
        if self._cap.exceeded and not was_exceeded:
            self._run.post(OutputExceeded())
        if fitting and self._sinks.stdout is not None:
            self._sinks.stdout(fitting)
        else:
            self.stdout += fitting

    def _take_stderr(self, chunk: bytes) -> None:
        self.stderr.add(chunk)
        if self._sinks.stderr is not None:
            self._sinks.stderr(chunk)

    async def _feed(self, fd: int) -> None:
        """Write the input, then close it. A child that ends or closes its stdin earlier needs no more input; this is not an
        error.
        """
        with suppress(BrokenPipeError):
            await write_all(fd, self._input)
        self._run.child.close_stdin()
