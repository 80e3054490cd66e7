"""The evaluation of a schema's rules (CEL) in worker processes. Workers are started on demand and reused, and killed if they take
too long.

Rules are foreign programs, and values foreign data: :mod:`~wharfinger.formats.cel.worker` explains why they do not run in this
process. Each slot of the pool is a task with at most one worker. It takes one request after another from a channel without a
buffer, so callers wait for a free slot, and there is no queue. Invariants:

* Either an exchange is finished, or its worker is terminated. If a caller is cancelled, the slot still reads the answer to its
  end and drops it, within the usual time limit.
* A failure that rules cause in their worker (out of CPU time, out of memory, a crash) is a *finding* about the running rule,
  as with any rule that cannot be evaluated. A worker that dies is replaced. The request is then retried once, because the
  worker may have been killed for another reason. A request that ran out of CPU time is not retried.
* Only a failure that the rules did not cause is a RulesError: no process can be started, the pool is shut down, or a worker gives
  no answer for a long time although it used little CPU time, as on an overloaded machine.
* When the block of `open_cel_pool` ends, all workers are killed, and every waiting caller gets an error.
"""

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import trio

from wharfinger.formats.cel import worker as cel_worker
from wharfinger.formats.cel.protocol import (
    MAX_ANSWER_BYTES,
    CelProtocolError,
    Finding,
    FindingKind,
    decode_line,
    encode_check,
    encode_evaluation,
)
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.schemas.validations import SchemaRules
from wharfinger.packages.errors import RulesError
from wharfinger.process.command import Command
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.worker import Worker, open_worker
from wharfinger.process.worker_slot import describe_end, serve_jobs

CHUNK_BYTES: Final = 64 * 1024
TERM_GRACE_S: Final = 0.1
"""The time limit, in seconds, for the exit of a worker; short, because a worker has nothing to clean up."""
ATTEMPTS: Final = 2
_OUT_OF_CPU: Final = -signal.SIGXCPU
_COMMAND: Final = Command((sys.executable, "-I", "-m", cel_worker.__name__), cwd=Path("/"), env={})


class Rules(Protocol):
    """The check of values against the rules of their schema."""

    async def check(self, rules: SchemaRules) -> tuple[Finding, ...]:
        """Return the findings about the rules themselves, such as a rule that cannot be compiled. Raises RulesError."""
        ...

    async def evaluate(self, rules: SchemaRules, value: JsonValue, old: JsonValue = None) -> tuple[Finding, ...]:
        """Return a finding for each rule that the value breaks; ``old`` is None if there was no value before.

        Raises RulesError, ShapeError.
        """
        ...


@dataclass(frozen=True, slots=True)
class CelLimits:
    """Limits of one request: ``cpu_seconds`` for its rules, and ``seconds`` on the clock, the worker's start included."""

    cpu_seconds: int = cel_worker.CPU_S
    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class CelStatistics:
    """Counters for dumps: workers alive, and requests and replaced workers since the start."""

    workers: int
    requests: int
    replaced: int


@dataclass(frozen=True, slots=True)
class _Died:
    """The end of a worker without an answer, while it was evaluating the rule ``at``."""

    at: str
    why: str
    retry: bool


_Result: TypeAlias = tuple[Finding, ...] | _Died | RulesError


class _Job:
    """One request in progress, and its result."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.done = trio.Event()
        self.result: _Result = RulesError("the evaluation of rules was shut down")

    def finish(self, result: _Result) -> None:
        """Pass the result to the caller; later results are ignored."""
        if not self.done.is_set():
            self.result = result
            self.done.set()

    def shut_down(self) -> None:
        """Fail the request unless it has a result, because no slot will answer it any more."""
        self.finish(self.result)


class CelPool:
    """A pool that implements :class:`Rules`. :func:`open_cel_pool` makes it."""

    def __init__(self, ledger: ProcessLedger | None, limits: CelLimits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._jobs, self._taken = trio.open_memory_channel[_Job](0)
        self._workers = 0
        self._requests = 0
        self._replaced = 0

    async def check(self, rules: SchemaRules) -> tuple[Finding, ...]:
        """Return the findings about the rules themselves (see :class:`Rules`)."""
        return await self._asked(encode_check(rules))

    async def evaluate(self, rules: SchemaRules, value: JsonValue, old: JsonValue = None) -> tuple[Finding, ...]:
        """Return a finding for each rule that the value breaks (see :class:`Rules`)."""
        return await self._asked(encode_evaluation(rules, value, old))

    def statistics(self) -> CelStatistics:
        """Return the current counters."""
        return CelStatistics(self._workers, self._requests, self._replaced)

    def close(self) -> None:
        """Stop accepting requests."""
        self._taken.close()

    async def serve_slot(self) -> None:
        """Run one slot: at most one worker, one request after the other. It runs in a task of :func:`open_cel_pool`."""
        async for job in self._taken:
            try:
                await self._serve_from(job)
            except ProcessError as error:  # the worker could not be started or killed
                job.finish(
                    RulesError(
                        f"no process for the rules of the settings could be started: {error}", transient=error.transient
                    )
                )
            finally:
                job.shut_down()

    async def _asked(self, line: bytes) -> tuple[Finding, ...]:
        died = _Died("", "", retry=False)
        for _ in range(ATTEMPTS):
            job = _Job(line)
            try:
                await self._jobs.send(job)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                job.shut_down()
            await job.done.wait()
            match job.result:
                case RulesError() as error:
                    raise error
                case _Died() as died:
                    if not died.retry:
                        break
                case findings:
                    return findings
        return (Finding(FindingKind.ERROR, (), died.at, died.why),)

    async def _serve_from(self, first: _Job) -> None:
        """Start a worker for ``first``, and serve requests until the worker has to be replaced."""
        command = replace(_COMMAND, argv=(*_COMMAND.argv, str(self._limits.cpu_seconds)))
        async with open_worker(command, ledger=self._ledger, term_grace_s=TERM_GRACE_S) as worker:
            self._workers += 1
            try:
                await serve_jobs(worker, first, self._exchange, self._taken)
            finally:
                self._workers -= 1
        self._replaced += 1

    async def _exchange(self, worker: Worker, job: _Job) -> bool:
        """Send one request and read its answer; return False if the worker cannot be used again."""
        self._requests += 1
        talk = _Talk(worker)
        result: _Result | None = None
        with trio.move_on_after(self._limits.seconds):
            try:
                result = await talk.answer(job.line)
            except trio.BrokenResourceError:
                result = self._died(talk.at, await worker.wait())
            except CelProtocolError as error:
                result = _Died(talk.at, f"could not be evaluated: {error}", retry=False)
        if result is None:
            seconds, cpu = self._limits.seconds, self._limits.cpu_seconds
            at = f", at {talk.at}" if talk.at else ""
            result = RulesError(
                f"the rules could not be evaluated within {seconds:g} s{at}, though they did not use {cpu} s of CPU time: "
                "the machine is overloaded"
            )
        job.finish(result)
        return isinstance(result, tuple)

    def _died(self, at: str, returncode: int) -> _Died:
        if returncode == _OUT_OF_CPU:
            used = f"{self._limits.cpu_seconds} s of CPU time"
            return _Died(
                at, f"could not be evaluated within {used}, all rules together; make them cheaper", retry=False
            )
        return _Died(at, f"could not be evaluated: its worker died ({describe_end(returncode)})", retry=True)


class _Talk:
    """One exchange with a worker: a request and its answer. ``at`` is the rule that the worker last reported."""

    def __init__(self, worker: Worker) -> None:
        self.at = ""
        self._worker = worker
        self._pending = bytearray()

    async def answer(self, line: bytes) -> tuple[Finding, ...]:
        """Send a request, and read lines up to the answer.

        Raises CelProtocolError for an invalid answer, trio.BrokenResourceError if the worker ends.
        """
        await self._worker.send(line)
        while True:
            chunk = await self._worker.receive_some(CHUNK_BYTES)
            if not chunk:
                raise trio.BrokenResourceError
            *lines, rest = (bytes(self._pending) + chunk).split(b"\n")
            self._pending[:] = rest
            # Only the last reported rule counts; the answer is always the last line.
            said = decode_line(lines[-1]) if lines else ""
            if isinstance(said, tuple):
                return said
            self.at = said or self.at
            if len(self._pending) > MAX_ANSWER_BYTES:
                raise CelProtocolError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")


@asynccontextmanager
async def open_cel_pool(
    ledger: ProcessLedger | None, *, workers: int = 2, limits: CelLimits = CelLimits()
) -> AsyncGenerator[CelPool, None]:
    """Open a pool of at most ``workers`` processes while the block runs. This function itself raises no errors."""
    pool = CelPool(ledger, limits)
    try:
        async with trio.open_nursery() as slots:
            for number in range(workers):
                slots.start_soon(pool.serve_slot, name=f"rule worker {number}")
            yield pool
            slots.cancel_scope.cancel()
    finally:
        pool.close()
