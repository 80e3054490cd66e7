"""All queues: one for each package. Each lane is served by a trio task of its own, so no package waits for another one.

    async with open_queues() as queues:
        queues.enqueue("shop.web", task, scope, on_done=next_step)

A queue exists as long as it holds a task: it is created with its first task and removed after its last one, so an idle
package costs nothing here. Every method is synchronous and returns immediately, except `remove` and `wait_idle`. Leaving the
block drains the queues: running tasks finish (the caller sets a deadline around the block), waiting tasks are dropped with a
cause.

Invariants: at any time, at most one queue of a name runs tasks. If a name is used again while a removed queue of that name is
still ending, the new queue begins after the end of the old one. Removing a queue delays no queue of another name. Trio tasks
belong to the nursery opened here. Their context (``contextvars``) is that of the code that opened the queues, and not that of the
code that enqueued a task.
"""

import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import trio

from wharfinger.queue.dump import QueueDump, QueuesStatistics, merge
from wharfinger.queue.events import MAIN_LANE, Draining, InputChanged
from wharfinger.queue.lane import Counters
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.state import BackingOff, Parked, Rules
from wharfinger.queue.task import Task
from wharfinger.queue.tracing import Trace
from wharfinger.queue.worker import Observe, QueueWorker, SharedParts
from wharfinger.queue.worker_pool import WorkerPool

log = logging.getLogger(__name__)


class Queues:
    """The queues by name. Use `open_queues`."""

    def __init__(
        self,
        nursery: trio.Nursery,
        rules: Rules,
        draw: Callable[[], float],
        observe: Observe | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Private to `open_queues`, which owns the nursery."""
        self._counters = Counters()
        self._pool = WorkerPool(nursery)
        self._shared = SharedParts(rules, draw, self._counters, self._pool, self._over, observe, trace)
        self._workers: dict[str, QueueWorker] = {}
        self._ending: dict[str, QueueWorker] = {}
        self._closing: str | None = None
        self._begun = 0

    def enqueue(
        self,
        queue: str,
        task: Task,
        scope: WorkScope,
        *,
        lane: str = MAIN_LANE,
        unique: bool = False,
        on_done: Callable[[], None] | None = None,
    ) -> bool:
        """Append a task to a lane of a queue. The task is dropped or interrupted if ``scope`` is cancelled.

        ``on_done`` is called after the task has succeeded, before the next task of its lane runs, and never after its scope
        was cancelled. With ``unique``, the task is refused if the same work (name and scope) is waiting in the lane; a
        running task does not count.

        Returns True if the task was accepted; False if it was refused because of ``unique``, if its scope is cancelled, or if
        the queues are shutting down. Raises QueueFull.
        """
        if not queue.strip():
            raise ValueError(f"{task.name}: a queue needs a name")
        if self._closing is not None:
            log.debug("%s: %s not queued: %s", queue, task.name, self._closing)
            return False
        if scope.cancelled:
            log.debug("%s: %s not queued: %s", queue, task.name, scope.cause)
            return False
        worker = self._workers.get(queue) or self._new_worker(queue)
        return worker.enqueue(task, scope, lane=lane, unique=unique, on_done=on_done)

    def unpark(self, name: str) -> None:
        """Run parked tasks of a package again, because an input of the package changed. Do nothing if the name is unknown."""
        if worker := self._workers.get(name):
            worker.post(InputChanged())

    async def remove(self, name: str, cause: str = "the queue is removed") -> None:
        """Interrupt the running tasks, drop the waiting ones, and return when the queue is gone. Unknown names are allowed.

        The removal continues even if this call is cancelled.
        """
        worker = self._workers.pop(name, None) or self._ending.get(name)
        if worker is None:
            return
        ended = worker.ended()
        if worker.state.closing is None:
            self._ending[name] = worker
            worker.post(Draining(cause, interrupt=True))
        await ended.wait()

    async def wait_idle(self, name: str) -> None:
        """Wait until the queue is idle: it is empty or unknown, or all its lanes are parked."""
        for worker in self._known(name):
            await worker.wait_idle()

    def names(self) -> tuple[str, ...]:
        """Return the names of all queues that hold a task, sorted."""
        return tuple(sorted({*self._workers, *self._ending}))

    def dump(self) -> tuple[QueueDump, ...]:
        """Return the dumps of all queues, sorted by name."""
        return tuple(self.dump_one(name) for name in self.names())

    def dump_one(self, name: str) -> QueueDump:
        """Return the dump of one queue; it is empty for an unknown name."""
        return merge(name, tuple(worker.dump() for worker in self._known(name)))

    def statistics(self) -> QueuesStatistics:
        """Return the statistics of all queues together."""
        workers = [worker for name in self.names() for worker in self._known(name)]
        heads = [lane.head for worker in workers for lane in worker.state.lanes.values()]
        return QueuesStatistics(
            queues=len(self.names()),
            tasks=sum(worker.state.length for worker in workers),
            running=sum(worker.running for worker in workers),
            backing_off=sum(isinstance(head, BackingOff) for head in heads),
            parked=sum(isinstance(head, Parked) for head in heads),
            retired=self._counters.retired,
            dropped=self._counters.dropped,
            failures=self._counters.failures,
            bugs=self._counters.bugs,
        )

    def drain(self, cause: str) -> None:
        """Accept no more tasks, drop the waiting ones, and let running ones finish. `open_queues` does this at its end."""
        self._closing = self._closing or cause
        for worker in tuple(self._workers.values()):
            worker.post(Draining(cause, interrupt=False))
        self._pool.dismiss()

    def _known(self, name: str) -> tuple[QueueWorker, ...]:
        """Return the queue of this name. If an earlier queue of this name is still ending, it comes first."""
        return tuple(found[name] for found in (self._ending, self._workers) if name in found)

    def _new_worker(self, name: str) -> QueueWorker:
        predecessor = self._ending.get(name)
        self._begun += 1
        after = predecessor.ended() if predecessor else None
        worker = self._workers[name] = QueueWorker(name, self._shared, after, self._begun)
        return worker

    def _over(self, worker: QueueWorker) -> None:
        for known in (self._ending, self._workers):
            if known.get(worker.name) is worker:
                del known[worker.name]


@asynccontextmanager
async def open_queues(
    rules: Rules | None = None,
    *,
    draw: Callable[[], float] = random.random,
    observe: Observe | None = None,
    trace: Trace | None = None,
) -> AsyncGenerator[Queues, None]:
    """Serve queues while the block runs, and drain them at its end. ``draw`` returns the numbers in [0, 1) for the jitter.

    ``observe`` is called for each step of each queue, before the effects of the step are performed. ``trace`` opens a span for
    each run.
    """
    async with trio.open_nursery() as nursery:
        queues = Queues(nursery, rules or Rules(), draw, observe, trace)
        try:
            yield queues
        finally:
            queues.drain("the daemon is stopping")
