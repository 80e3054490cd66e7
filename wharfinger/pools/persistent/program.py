"""One program that keeps running and serves one run after another.

It is started with VARIABLE in its environment, reads a line for each run, and answers with a line when the run is over. If it
breaks the protocol (no answer in time, a line that is not an answer, unexpected output), or if its run is cancelled, its state is
not known any more. In these cases, it is ended with all processes that it has started, and only that run fails.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import trio

from wharfinger.pools.persistent.line_protocol import MAX_ANSWER_BYTES, Answer, AnswerError, read_answer, run_line
from wharfinger.pools.persistent.usage import UsageSums, begin_usage, usage_since
from wharfinger.process.command import Command, Ending, Limits, Outcome, Sinks, Usage
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.output import TailBuffer
from wharfinger.process.worker import Worker, open_worker

VARIABLE: Final = "WHARFINGER_POOL"
"""The variable by which a hook knows that it is to serve runs; its value is ``persistent``."""
VALUE: Final = "persistent"
UNANSWERED: Final = 1
"""The exit status of a run whose program ended with 0, but gave no valid answer."""
SETTLE_S: Final = 1.0
"""The time for which the stderr of a run is still read after its answer."""


class NotBegunError(Exception):
    """The program ended before it read this run, so the run has not begun. The program had served other runs before."""


@dataclass(slots=True)
class _Output:
    """The stderr of the run that is under way. It is passed on, and its last bytes are kept."""

    tail: TailBuffer
    sinks: Sinks
    error: Exception | None = None

    def take(self, chunk: bytes) -> None:
        self.tail.add(chunk)
        if self.sinks.stderr is not None and self.error is None:
            try:
                self.sinks.stderr(chunk)
            except Exception as error:  # noqa: BLE001 - raised to the caller of the run, as for any child
                self.error = error


class Program:
    """A program that serves runs, one after the other. The owner of the program runs `live` in a task, and never calls `run`
    while another run is under way.
    """

    def __init__(self, command: Command, limits: Limits) -> None:
        self.runs = 0
        self.pid = 0
        self.idle_since = trio.current_time()
        self.over = trio.Event()
        """An event that is set once the program and all processes that it has started are dead."""
        self._command = command
        self._limits = limits
        self._worker: Worker | None = None
        self._ending = trio.Event()
        self._output: _Output | None = None
        self._unread = 0

    @property
    def usable(self) -> bool:
        """Return whether the program can get another run. It cannot if it has ended, or has printed something between two
        runs.
        """
        return not self._ending.is_set() and self._worker is not None and not self._worker.has_output()

    def end(self) -> None:
        """Begin to end the program: its processes get SIGTERM, and after the grace period of a cancellation SIGKILL."""
        self._ending.set()

    async def live(
        self, ledger: ProcessLedger | None, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Start the program, and wait until it has ended, on request or by itself. Raises ProcessError."""
        environment = {**self._command.env, VARIABLE: VALUE}
        try:
            async with open_worker(
                replace(self._command, env=environment),
                bounds=self._limits,
                ledger=ledger,
                term_grace_s=self._limits.cancel_grace_s,
                on_stderr=self._take_stderr,
            ) as worker:
                self._worker, self.pid = worker, worker.pid
                task_status.started()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._note_end, worker)
                    await self._ending.wait()
                    nursery.cancel_scope.cancel()
        finally:
            self._ending.set()
            self.over.set()

    async def run(self, variables: Mapping[str, str], limits: Limits, sinks: Sinks) -> Outcome:
        """Serve one run. The program must be `usable` and idle. Raises NotBegunError, StuckError, and the errors of a sink.

        After this call, the program is usable, dead, or about to end because it has written more than its answer.
        """
        worker = self._worker
        if worker is None:
            raise AssertionError("the program was not started")
        self.runs += 1
        output = self._output = _Output(TailBuffer(limits.stderr_bytes), sinks)
        usage: Usage | None = None
        why, found = "", Ending.EXITED
        answer: Answer | None = None
        try:
            moment = _begin(self.pid)
            with trio.move_on_after(limits.wall_s) as deadline:
                try:
                    answer = await self._exchange(worker, variables)
                except AnswerError as error:
                    why = str(error)
            if deadline.cancelled_caught:
                found = Ending.DEADLINE
            if answer is not None:
                usage = _since(self.pid, moment)
                with trio.move_on_after(SETTLE_S):
                    await worker.settle_stderr()
        finally:
            if answer is None:
                self.end()
                with trio.CancelScope(shield=True):
                    await self.over.wait()
            self._output = None
            self.idle_since = trio.current_time()
        if output.error is not None:
            raise output.error
        if answer is not None:
            returncode, why = answer.status, answer.message
        else:
            # Even an exit code of 0 is no success, because the program has not answered the run.
            returncode = await worker.wait() or UNANSWERED
        return _outcome(found, returncode, output.tail, why, usage or _rest(worker, moment))

    async def _exchange(self, worker: Worker, variables: Mapping[str, str]) -> Answer:
        """Send the run, and return its answer. Raises NotBegunError, or AnswerError if the answer is missing or not valid."""
        line = run_line(self.runs, variables)
        try:
            await worker.send(line)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise self._unread_error() from error  # the program has not read the whole line, so it has not begun the run
        received = b""
        while b"\n" not in received:
            try:
                chunk = await worker.receive_some(MAX_ANSWER_BYTES)
                unread = 0 if chunk else worker.unread_bytes()
            except trio.ClosedResourceError:
                chunk, unread = b"", self._unread
            if unread >= len(line):
                raise self._unread_error()
            if not chunk:
                raise AnswerError(
                    "it ended before it answered" if not received else "it ended in the middle of its answer"
                )
            received += chunk
            if len(received) > MAX_ANSWER_BYTES:
                raise AnswerError(f"its answer is longer than {MAX_ANSWER_BYTES} bytes; print logs to stderr")
        found, _, rest = received.partition(b"\n")
        answer = read_answer(found, self.runs)
        if rest:
            self.end()  # bytes after the answer would be taken for the answer of the next run
        return answer

    def _unread_error(self) -> Exception:
        """Return the error for a run that the program has not read.

        After an earlier run of the program, the error is NotBegunError, so the run is given to another program. A program that
        has not even read its first run may have done anything instead, so the error is then AnswerError.
        """
        if self.runs > 1:
            return NotBegunError()
        return AnswerError(
            f"the program ended without reading the run; it must serve runs from stdin if {VARIABLE} is set"
        )

    async def _note_end(self, worker: Worker) -> None:
        with suppress(trio.ClosedResourceError):
            await worker.wait()
            self._unread = worker.unread_bytes()
        self._ending.set()

    def _take_stderr(self, chunk: bytes) -> None:
        """Read the program's stderr. Output between two runs belongs to neither run, and is dropped."""
        if self._output is not None:
            self._output.take(chunk)


def _begin(pid: int) -> UsageSums | None:
    try:
        return begin_usage(pid)
    except OSError:
        return None


def _since(pid: int, moment: UsageSums | None) -> Usage | None:
    try:
        return usage_since(pid, moment) if moment is not None else None
    except OSError:
        return None


def _rest(worker: Worker, moment: UsageSums | None) -> Usage:
    """Return the usage of the last run of a program that has ended: the program's total usage, minus its usage before the run."""
    usage = worker.usage
    if usage is None:
        return Usage(0.0, 0.0, 0)
    if moment is None:
        return usage
    kernel_s = moment.kernel_s + moment.children_kernel_s
    user_s = moment.own_s + moment.children_s - kernel_s
    return Usage(max(0.0, usage.user_s - user_s), max(0.0, usage.system_s - kernel_s), usage.max_rss_bytes)


def _outcome(ending: Ending, returncode: int, tail: TailBuffer, why: str, usage: Usage) -> Outcome:
    if why:
        tail.add(why.encode(errors="replace") + b"\n")
    return Outcome(ending, returncode, b"", tail.value(), usage)
