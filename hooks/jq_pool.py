"""Filters in warm worker processes: started when they are needed, kept, killed when they take too long or say too much.

libjq blocks the interpreter and cannot be interrupted, and filters are foreign programs; :mod:`wharfinger.formats.jq_worker` says
more. A start costs some fifty milliseconds, a filter in a warm worker well below one, and every object of a watch is filtered.

Each slot of the pool is a task with at most one worker, and takes one request after another from a channel without a buffer.
So whoever asks waits for a free slot, and nothing piles up here. Invariants:

* An exchange is finished or its worker is gone: a caller that is cancelled leaves, the slot reads the answer to its end
  and drops it, within the time limit that holds anyway. No worker is ever asked with an old answer still in its pipe.
* What a request does to its worker (out of time, too large an answer, a crash) is an error of that request only.
* Leaving the block kills all workers; callers that still wait get a FilterError.
"""

import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats import jq_worker
from wharfinger.formats.errors import FormatError
from wharfinger.formats.jq_protocol import (
    FrameReader,
    JqAnswer,
    JqProtocolError,
    JqRefusal,
    JqRequest,
    RefusalKind,
    decode_answer,
    encode_request,
    framed,
)
from wharfinger.formats.json_value import JsonValue, canonical_json
from wharfinger.hooks.filters import FilterError
from wharfinger.process.command import Command
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.worker import Worker, open_worker

CHUNK_BYTES: Final = 64 * 1024
TERM_GRACE_S: Final = 0.1
"""A worker has nothing to clean up."""
_QUOTED_VALUE: Final = re.compile(r"\((?:[^()]|\([^()]*\))*(?:\)|\Z)")
_COMMAND: Final = Command((sys.executable, "-I", "-m", jq_worker.__name__), cwd=Path("/"), env={})


@dataclass(frozen=True, slots=True)
class JqLimits:
    """Bounds of one request; ``seconds`` counts from when a worker has it, its start included."""

    seconds: float = 5.0
    program_characters: int = 64 * 1024
    input_bytes: int = 16 * 1024 * 1024
    answer_bytes: int = 16 * 1024 * 1024 + 1024


@dataclass(frozen=True, slots=True)
class JqStatistics:
    """For dumps: workers alive, and requests and replaced workers since the start."""

    workers: int
    requests: int
    replaced: int


class _Job:
    """One request on its way, and what came of it."""

    def __init__(self, program: str, message: bytes) -> None:
        self.program = program
        self.message = message
        self.done = trio.Event()
        self.result: JqAnswer | FilterError | None = None

    def finish(self, result: JqAnswer | FilterError) -> None:
        """Tell the caller; the first result counts."""
        if self.result is None:
            self.result = result
            self.done.set()

    def fail(self, why: str, *, transient: bool) -> None:
        """Tell the caller that there is no answer."""
        self.finish(FilterError(self.program, why, transient=transient))


class JqPool:
    """Implements :class:`wharfinger.hooks.filters.Filters`. Made by :func:`open_jq_pool`."""

    def __init__(self, ledger: ProcessLedger | None, limits: JqLimits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._jobs, self._taken = trio.open_memory_channel[_Job](0)
        self._workers = 0
        self._requests = 0
        self._replaced = 0

    async def check(self, program: str) -> None:
        """Compile a program. Raises FilterError."""
        await self._ask(program, None)

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Run a program; spec hook-protocol §4.4 for how many results become one value. Raises FilterError."""
        try:
            text = canonical_json(value)  # sorted keys: the order in which gojq goes through an object
        except FormatError as error:
            raise FilterError(program, f"the value has no JSON form: {error}") from error
        if len(text) > self._limits.input_bytes:
            raise FilterError(program, f"the value has {len(text)} bytes, the limit is {self._limits.input_bytes}")
        results = await self._ask(program, text)
        match results:
            case ():
                return None
            case (only,):
                return only
            case _:
                return list(results)

    def statistics(self) -> JqStatistics:
        """How it is doing."""
        return JqStatistics(self._workers, self._requests, self._replaced)

    async def serve_slot(self) -> None:
        """One slot: a worker at most, one request after the other. In a task of :func:`open_jq_pool`."""
        async for job in self._taken:
            try:
                await self._serve_from(job)
            except ProcessError as error:  # the worker could not be started, or would not die
                job.fail(f"its worker failed: {error}", transient=error.transient)
            finally:
                job.fail("the filters were shut down", transient=True)

    def close(self) -> None:
        """Nobody takes requests any more."""
        self._taken.close()
        self._jobs.close()

    async def _ask(self, program: str, text: bytes | None) -> tuple[JsonValue, ...]:
        if len(program) > self._limits.program_characters:
            raise FilterError(program, f"longer than {self._limits.program_characters} characters")
        try:
            job = _Job(program, framed(encode_request(JqRequest(program, text))))
        except JqProtocolError as error:
            raise FilterError(program, str(error)) from error
        try:
            await self._jobs.send(job)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise FilterError(program, "the filters were shut down", transient=True) from error
        await job.done.wait()
        match job.result:
            case FilterError() as failure:
                raise failure
            case JqRefusal() as refusal:
                # An error of a run quotes the values it stumbled over, and the object may be a Secret.
                ran = refusal.kind is RefusalKind.RUN
                raise FilterError(program, without_values(refusal.message) if ran else refusal.message)
            case None:
                raise AssertionError("a finished job has a result")
            case results:
                return results.values

    async def _serve_from(self, first: _Job) -> None:
        """Start a worker for ``first``, and let it serve until it must go."""
        job: _Job | None = first
        async with open_worker(_COMMAND, ledger=self._ledger, term_grace_s=TERM_GRACE_S) as worker:
            self._workers += 1
            try:
                while job is not None and await self._exchange(worker, job):
                    job = await self._next_job(worker)
            finally:
                self._workers -= 1
        self._replaced += 1

    async def _next_job(self, worker: Worker) -> _Job | None:
        """The next request; None when the worker died while it had nothing to do."""
        job = None
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await worker.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            job = await self._taken.receive()
            nursery.cancel_scope.cancel()
        return job

    async def _exchange(self, worker: Worker, job: _Job) -> bool:
        """One request and its answer; False when the worker cannot be asked again."""
        self._requests += 1
        payload = None
        with trio.move_on_after(self._limits.seconds):
            try:
                payload = await self._talk(worker, job.message)
            except JqProtocolError as error:
                job.fail(f"it gives too much: {error}", transient=False)
                return False
            except trio.BrokenResourceError:
                job.fail(f"its worker died ({_ending(await worker.wait())})", transient=True)
                return False
        if payload is None:
            job.fail(f"it took longer than {self._limits.seconds:g} s", transient=True)
            return False
        try:
            job.finish(decode_answer(payload))
        except FormatError as error:
            job.fail(str(error), transient=False)
            return not isinstance(error, JqProtocolError)
        return True

    async def _talk(self, worker: Worker, message: bytes) -> bytes:
        """Raises JqProtocolError for too large an answer, trio.BrokenResourceError where the worker ends."""
        await worker.send(message)
        answer = FrameReader(self._limits.answer_bytes)
        while (payload := answer.take()) is None:
            chunk = await worker.receive_some(CHUNK_BYTES)
            if not chunk:
                raise trio.BrokenResourceError
            answer.feed(chunk)
        return payload


def without_values(message: str) -> str:
    """jq's message without the values it quotes: ``string ("abc") cannot be …`` → ``string (…) cannot be …``."""
    return _QUOTED_VALUE.sub("(…)", message)


@asynccontextmanager
async def open_jq_pool(
    ledger: ProcessLedger | None, *, workers: int = 2, limits: JqLimits = JqLimits()
) -> AsyncGenerator[JqPool, None]:
    """A pool of at most ``workers`` processes, for the block. Raises nothing of its own."""
    pool = JqPool(ledger, limits)
    try:
        async with trio.open_nursery() as slots:
            for number in range(workers):
                slots.start_soon(pool.serve_slot, name=f"jq worker {number}")
            yield pool
            slots.cancel_scope.cancel()
    finally:
        pool.close()


def _ending(returncode: int) -> str:
    return signal.strsignal(-returncode) or "killed" if returncode < 0 else f"exit status {returncode}"
