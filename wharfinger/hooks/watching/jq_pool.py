"""A pool of worker processes that run jq programs. A worker is started on demand, kept for further requests, and killed if it
takes too long or if its answer is too large.

The programs run in processes of their own, because libjq blocks the interpreter and cannot be interrupted, and because the
programs are foreign (:mod:`wharfinger.formats.jq.worker`). Workers are kept, because every object of a watch is filtered:
starting a worker costs about fifty milliseconds, and a filter in a running worker costs well below one millisecond.

Each slot of the pool is a task with at most one worker, and takes one request after another from a channel without a buffer. So
callers wait for a free slot, and requests do not accumulate in the pool. Invariants:

* Either an exchange (a request and its answer) is finished, or its worker is terminated: if a caller is cancelled, the slot
  reads the answer to its end and drops it, within the same time limit. No worker gets a request while an old answer is still in
  its pipe.
* If a request ends its worker (it takes too long, has too large an answer, or crashes the worker), only that request fails.
* Each owner (`JqPool.of`) has at most one request in a slot at a time. A request leaves its slot only when it ends, even if its
  caller was cancelled. So a package with a filter that loops takes only one slot from others, and not the whole pool. Callers
  without an owner are not limited.
* A program that ran out of time is not retried immediately. If it runs out of time several times in a row, it is refused for a
  while (:mod:`~wharfinger.hooks.watching.slow_programs`).
* When the block of :func:`open_jq_pool` ends, all workers are killed, and every waiting caller gets a FilterError.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.frames import FrameError, FrameReader, framed
from wharfinger.formats.jq import worker as jq_worker
from wharfinger.formats.jq.protocol import (
    JqAnswer,
    JqProtocolError,
    JqRefusal,
    JqRequest,
    JqResults,
    JqText,
    decode_answer,
    encode_request,
)
from wharfinger.formats.json.value import JsonValue, canonical_json
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.hooks.watching.slow_programs import LATE_IN_A_ROW, REFUSED_S, SlowPrograms
from wharfinger.process.command import Command
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.worker import Worker, open_worker
from wharfinger.process.worker_slot import describe_end, serve_jobs

CHUNK_BYTES: Final = 64 * 1024
TERM_GRACE_S: Final = 0.1
"""The time between SIGTERM and SIGKILL for a worker. It is short, because a worker has nothing to clean up."""
_SHUT_DOWN: Final = "the filters were shut down"
_OTHER_ANSWER: Final = "its worker sent an answer of an unexpected kind"
_COMMAND: Final = Command((sys.executable, "-I", "-m", jq_worker.__name__), cwd=Path("/"), env={})


@dataclass(frozen=True, slots=True)
class JqLimits:
    """The limits of one request. ``seconds`` is counted from the time at which a worker gets the request. If the worker is new,
    this includes the start of its program.
    """

    seconds: float = 5.0
    program_characters: int = 64 * 1024
    input_bytes: int = 16 * 1024 * 1024
    answer_bytes: int = 16 * 1024 * 1024 + 1024


@dataclass(frozen=True, slots=True)
class JqStatistics:
    """Counters for debug dumps: the living workers, and the requests and replaced workers since the start."""

    workers: int
    requests: int
    replaced: int


class _Job:
    """One request in progress, and its result. ``turn`` is the semaphore with which the requests of one owner run one after the
    other; it is released when the request has a result.
    """

    def __init__(self, owner: str, program: str, message: bytes, turn: trio.Semaphore | None) -> None:
        self.program = program
        self.key = (owner, program)
        self.message = message
        self._turn = turn
        self.done = trio.Event()
        self.result: JqAnswer | FilterError | None = None

    def finish(self, result: JqAnswer | FilterError) -> None:
        """Pass the result to the caller; the first result counts."""
        if self.result is None:
            self.result = result
            self.done.set()
            if self._turn is not None:
                self._turn.release()

    def fail(self, why: str, *, transient: bool, at_once: bool = False, late: bool = False) -> None:
        """End the request with a FilterError for ``why``, unless it has a result already. The keywords become attributes of the
        error.
        """
        self.finish(FilterError(self.program, why, transient=transient, at_once=at_once, late=late))

    def shut_down(self) -> None:
        """Report to the caller of this request that the pool was shut down, unless the request has a result already."""
        self.fail(_SHUT_DOWN, transient=True)


class _Owner:
    """The owner of requests: a package. Its requests are served one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turn = trio.Semaphore(1)


class OwnedFilters:
    """The :class:`wharfinger.hooks.watching.filters.Filters` of one owner. Made by :meth:`JqPool.of`."""

    def __init__(self, pool: "JqPool", owner: _Owner) -> None:
        self._pool = pool
        self._owner = owner

    def of(self, owner: str) -> "OwnedFilters":
        """Return filters for the requests of another owner."""
        return self._pool.of(owner)

    async def check(self, program: str) -> None:
        """Compile a program, after the owner's earlier requests. Raises FilterError."""
        await self._pool.ask(JqRequest(program, None), self._owner)

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Run a jq program on a value (see JqPool.apply). Raises FilterError."""
        return await self._pool.run(program, value, self._owner)

    async def apply_text(self, program: str, text: bytes) -> bytes:
        """Run a jq program on a JSON text (see JqPool.run_text). Raises FilterError."""
        return await self._pool.run_text(program, text, self._owner)


class JqPool:
    """An implementation of :class:`wharfinger.hooks.watching.filters.Filters`. Made by :func:`open_jq_pool`."""

    def __init__(self, ledger: ProcessLedger | None, limits: JqLimits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._jobs, self._taken = trio.open_memory_channel[_Job](0)
        self._workers = 0
        self._requests = 0
        self._replaced = 0
        self._slow = SlowPrograms()
        self._owners: WeakValueDictionary[str, _Owner] = WeakValueDictionary()

    def of(self, owner: str) -> OwnedFilters:
        """Return filters for the requests of ``owner``. All filters of one owner together have at most one request in a slot."""
        known = self._owners.get(owner)
        if known is None:
            known = self._owners[owner] = _Owner(owner)
        return OwnedFilters(self, known)

    async def check(self, program: str) -> None:
        """Compile a program. Raises FilterError."""
        await self.ask(JqRequest(program, None), None)

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        """Run a program; spec hook-protocol §4.4 defines how several results become one value. Raises FilterError."""
        return await self.run(program, value, None)

    async def apply_text(self, program: str, text: bytes) -> bytes:
        """Run a program on a JSON text and return its result as one canonical JSON text. Raises FilterError."""
        return await self.run_text(program, text, None)

    async def run(self, program: str, value: JsonValue, owner: _Owner | None) -> JsonValue:
        """Run a program on a value as `apply` does, when it is the owner's turn."""
        try:
            text = canonical_json(value)  # sorted keys, because gojq goes through an object in this order
        except FormatError as error:
            raise FilterError(program, f"the value has no JSON form: {error}") from error
        match await self.ask(JqRequest(program, text), owner):
            case JqResults(()):
                return None
            case JqResults((only,)):
                return only
            case JqResults(many):
                return list(many)
            case JqText():
                raise FilterError(program, _OTHER_ANSWER)

    async def run_text(self, program: str, text: bytes, owner: _Owner | None) -> bytes:
        """Do the work of `apply_text`, when it is the owner's turn."""
        match await self.ask(JqRequest(program, text, whole=True), owner):
            case JqText(found):
                return found
            case JqResults():
                raise FilterError(program, _OTHER_ANSWER)

    def statistics(self) -> JqStatistics:
        """Return the current counters."""
        return JqStatistics(self._workers, self._requests, self._replaced)

    async def serve_slot(self) -> None:
        """Serve one slot: at most one worker, one request after the other. Runs in a task of :func:`open_jq_pool`."""
        async for job in self._taken:
            try:
                await self._serve_from(job)
            except ProcessError as error:  # the worker could not be started, or did not end
                job.fail(f"its worker failed: {error}", transient=error.transient)
            finally:
                job.shut_down()

    def close(self) -> None:
        """Accept no more requests."""
        self._taken.close()
        self._jobs.close()

    async def ask(self, request: JqRequest, owner: _Owner | None) -> JqResults | JqText:
        """Send a request to a worker when it is the turn of ``owner``, and return the answer. Raises FilterError, also if the
        worker refuses the program.
        """
        program, size = request.program, len(request.text or b"")
        if len(program) > self._limits.program_characters:
            raise FilterError(program, f"longer than {self._limits.program_characters} characters")
        if size > self._limits.input_bytes:
            raise FilterError(program, f"the value has {size} bytes, the limit is {self._limits.input_bytes}")
        try:
            message = framed(encode_request(request))
        except FrameError as error:
            raise FilterError(program, str(error)) from error
        job = await self._sent(program, message, owner)
        await job.done.wait()
        match job.result:
            case FilterError() as failure:
                raise failure
            case JqRefusal() as refusal:
                raise FilterError(program, refusal.message)
            case None:
                raise AssertionError("the job finished without a result")
            case results:
                return results

    async def _sent(self, program: str, message: bytes, owner: _Owner | None) -> _Job:
        """Send the request to a slot and return its job. A refused program, or a closed pool, makes the job fail."""
        name, turn = ("", None) if owner is None else (owner.name, owner.turn)
        if turn is not None:
            await turn.acquire()
        job = _Job(name, program, message, turn)
        try:
            if self._slow.refused(job.key, trio.current_time()):
                job.fail(
                    f"it took longer than {self._limits.seconds:g} s {LATE_IN_A_ROW} times in a row, and is not run for "
                    f"{REFUSED_S:g} s; make it faster",
                    transient=True,
                    late=True,
                )
            else:
                await self._jobs.send(job)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            job.shut_down()
        except trio.Cancelled:
            job.shut_down()
            raise
        return job

    async def _serve_from(self, first: _Job) -> None:
        """Start a worker for ``first``, and let it answer further requests until it must end."""
        async with open_worker(_COMMAND, ledger=self._ledger, term_grace_s=TERM_GRACE_S) as worker:
            self._workers += 1
            try:
                await serve_jobs(worker, first, self._exchange, self._taken)
            finally:
                self._workers -= 1
        self._replaced += 1

    async def _exchange(self, worker: Worker, job: _Job) -> bool:
        """Send one request and read its answer; return False if the worker cannot be used again."""
        self._requests += 1
        payload = None
        with trio.move_on_after(self._limits.seconds):
            try:
                payload = await self._talk(worker, job.message)
            except FrameError as error:
                job.fail(f"its answer is too large: {error}", transient=False)
                return False
            except trio.BrokenResourceError:
                job.fail(f"its worker died ({describe_end(await worker.wait())})", transient=True, at_once=True)
                return False
        if payload is None:
            self._slow.late(job.key, trio.current_time())
            job.fail(f"it took longer than {self._limits.seconds:g} s", transient=True, late=True)
            return False
        self._slow.in_time(job.key)
        try:
            job.finish(decode_answer(payload))
        except FormatError as error:
            job.fail(str(error), transient=False)
            return not isinstance(error, JqProtocolError)
        return True

    async def _talk(self, worker: Worker, message: bytes) -> bytes:
        """Send a message and return the answer.

        Raises FrameError if the answer is too large, trio.BrokenResourceError if the worker ends.
        """
        await worker.send(message)
        answer = FrameReader(self._limits.answer_bytes)
        while (payload := answer.take()) is None:
            chunk = await worker.receive_some(CHUNK_BYTES)
            if not chunk:
                raise trio.BrokenResourceError
            answer.feed(chunk)
        return payload


@asynccontextmanager
async def open_jq_pool(
    ledger: ProcessLedger | None, *, workers: int = 2, limits: JqLimits = JqLimits()
) -> AsyncGenerator[JqPool, None]:
    """Open a pool of at most ``workers`` processes, for the block. This function itself raises no errors."""
    pool = JqPool(ledger, limits)
    try:
        async with trio.open_nursery() as slots:
            for number in range(workers):
                slots.start_soon(pool.serve_slot, name=f"jq worker {number}")
            yield pool
            slots.cancel_scope.cancel()
    finally:
        pool.close()
