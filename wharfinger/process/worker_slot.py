"""A slot of a pool of worker processes: a task that has at most one worker at a time, and answers one request after another. The
pools for jq, for CEL and for the chart engine use this code.

A slot takes its next request only while its worker is alive: the slot notices the death of an idle worker before it takes a
request. If a request that a slot has taken gets no answer, its caller is notified.
"""

import math
import signal
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import trio

from wharfinger.process.worker import Worker


class Job(Protocol):
    """A request for which a caller waits."""

    def shut_down(self) -> None:
        """Notify the caller that no worker will answer; do nothing if the request was answered."""
        ...


AnyJob = TypeVar("AnyJob", bound=Job)
JobOut_co = TypeVar("JobOut_co", bound=Job, covariant=True)


class Jobs(Protocol[JobOut_co]):
    """A source of requests for a slot of a pool, such as a trio.MemoryReceiveChannel."""

    async def receive(self) -> JobOut_co:
        """Return the next request. Raises trio.EndOfChannel when no more requests will come."""
        ...


async def serve_jobs(
    worker: Worker,
    first: AnyJob,
    exchange: Callable[[Worker, AnyJob], Awaitable[bool]],
    jobs: Jobs[AnyJob],
    *,
    idle_s: float = math.inf,
) -> None:
    """Serve ``first`` and later requests, until ``exchange`` returns False, the worker dies, or the worker has been idle for
    ``idle_s``.

    Raises the errors of ``exchange`` and `Worker.wait`, and trio.EndOfChannel when no more requests will come.
    """
    job: AnyJob | None = first
    while job is not None:
        try:
            usable = await exchange(worker, job)
        finally:
            job.shut_down()
        job = None
        if usable:
            with trio.move_on_after(idle_s):
                job = await _next_job(worker, jobs)


async def _next_job(worker: Worker, jobs: Jobs[AnyJob]) -> AnyJob | None:
    """Return the next request; None if the worker died while it was idle."""
    job = None
    try:
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await worker.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            job = await jobs.receive()
            nursery.cancel_scope.shield = True  # the end of the idle time at this moment must not end the request
            nursery.cancel_scope.cancel()
    except BaseException:  # for example StuckError, if the worker could not be killed
        if job is not None:
            job.shut_down()
        raise
    return job


def describe_end(returncode: int) -> str:
    """Return how a process ended: ``Segmentation fault``, ``exit status 7``."""
    return signal.strsignal(-returncode) or "killed" if returncode < 0 else f"exit status {returncode}"
