"""All queues: one per package, each a trio task of its own, so that no package ever waits for another's.

    async with open_queues() as queues:
        queues.enqueue("shop.web", task, scope, on_done=next_step)

Queues come into being with their first task and stay until removed. Everything a caller does is synchronous and answered at
once, except waiting for an end (`remove`) or for quiet (`wait_idle`). Leaving the body drains: what runs gets to finish, which
the caller bounds with a deadline around it; what waits is dropped with a cause.

Invariants: one name is served by one worker at a time, also while a removed queue is still ending and its name is used again
(the new one begins when the old one ended); removing one queue holds up no other; workers belong to the nursery opened here
and have the context of whoever opened the queues, not of whoever enqueued first.
"""

import contextvars
import functools
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import trio

from wharfinger.queue.dump import QueueDump, QueuesStatistics, merge
from wharfinger.queue.machine import Draining, InputChanged, QueueFull
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.state import MAIN_LANE, BackingOff, Parked, Rules
from wharfinger.queue.task import Task, TaskFailed
from wharfinger.queue.worker import Counters, QueueWorker, current_package

__all__ = ["MAIN_LANE", "QueueFull", "Queues", "Rules", "Task", "TaskFailed", "current_package", "open_queues"]

log = logging.getLogger(__name__)


class Queues:
    """The queues by name. Use `open_queues`."""

    def __init__(self, nursery: trio.Nursery, rules: Rules, draw: Callable[[], float]) -> None:
        """Private to `open_queues`, which owns the nursery."""
        self._nursery = nursery
        self._rules = rules
        self._draw = draw
        self._context = contextvars.copy_context()
        self._counters = Counters()
        self._workers: dict[str, QueueWorker] = {}
        self._ending: dict[str, QueueWorker] = {}
        self._closing: str | None = None

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
        """Put a task at the end of a lane of a queue; it runs for as long as ``scope`` is not cancelled.

        ``on_done`` is called once the task succeeded, before anything else of its lane runs, and never after its scope was
        cancelled. ``unique`` leaves the task out if the same work (name and scope) waits in the lane already; one more than
        the one that runs is taken.

        True if the task was taken; False if it was left out, its scope is cancelled, or the queues are shutting down.
        Raises QueueFull.
        """
        if not queue.strip():
            raise ValueError(f"{task.name}: a queue needs a name")
        if self._closing is not None:
            log.debug("%s: %s not queued: %s", queue, task.name, self._closing)
            return False
        worker = self._workers.get(queue) or self._new_worker(queue)
        return worker.enqueue(task, scope, lane=lane, unique=unique, on_done=on_done)

    def unpark(self, name: str) -> None:
        """An input of this package changed: what failed permanently gets its next run. Unknown names are fine."""
        if worker := self._workers.get(name):
            worker.post(InputChanged())

    async def remove(self, name: str, cause: str = "the queue is removed") -> None:
        """Interrupt what runs, drop what waits, and return when the queue is gone. Unknown names are fine.

        The removal goes on even if the wait for it is cancelled.
        """
        worker = self._workers.pop(name, None)
        if worker is not None:
            self._ending[name] = worker
            worker.post(Draining(cause, interrupt=True))
        else:
            worker = self._ending.get(name)
        if worker is not None:
            await worker.ended.wait()

    async def wait_idle(self, name: str) -> None:
        """Return once nothing in this queue will happen by itself: it is empty, parked or unknown."""
        for worker in self._known(name):
            await worker.wait_idle()

    def names(self) -> tuple[str, ...]:
        """All queues, sorted."""
        return tuple(sorted({*self._workers, *self._ending}))

    def dump(self) -> tuple[QueueDump, ...]:
        """All queues, sorted by name."""
        return tuple(self.dump_one(name) for name in self.names())

    def dump_one(self, name: str) -> QueueDump:
        """One queue; an unknown one is empty."""
        return merge(name, tuple(worker.dump() for worker in self._known(name)))

    def statistics(self) -> QueuesStatistics:
        """All queues together."""
        workers = [worker for name in self.names() for worker in self._known(name)]
        heads = [lane[0] for worker in workers for lane in worker.state.lanes.values()]
        return QueuesStatistics(
            queues=len(self.names()),
            tasks=sum(worker.state.length for worker in workers),
            running=sum(worker.running for worker in workers),
            backing_off=sum(isinstance(head.phase, BackingOff) for head in heads),
            parked=sum(isinstance(head.phase, Parked) for head in heads),
            retired=self._counters.retired,
            dropped=self._counters.dropped,
            failures=self._counters.failures,
            bugs=self._counters.bugs,
        )

    def drain(self, cause: str) -> None:
        """Take nothing more, drop what waits, let what runs finish. `open_queues` does this at its end."""
        self._closing = self._closing or cause
        for worker in self._workers.values():
            worker.post(Draining(cause, interrupt=False))

    def _known(self, name: str) -> tuple[QueueWorker, ...]:
        """The queues of that name, oldest first."""
        return tuple(found[name] for found in (self._ending, self._workers) if name in found)

    def _new_worker(self, name: str) -> QueueWorker:
        predecessor = self._ending.get(name)
        after = predecessor.ended if predecessor else None
        worker = self._workers[name] = QueueWorker(name, self._rules, self._draw, self._counters, after)
        # A trio task inherits the context of whoever starts it; this one must not live for ever as part of a request.
        start = functools.partial(self._nursery.start_soon, self._serve, worker, name=f"queue {name}")
        self._context.run(start)
        return worker

    async def _serve(self, worker: QueueWorker) -> None:
        await worker.run()
        if self._ending.get(worker.name) is worker:
            del self._ending[worker.name]


@asynccontextmanager
async def open_queues(
    rules: Rules | None = None, *, draw: Callable[[], float] = random.random
) -> AsyncGenerator[Queues, None]:
    """The queues while the body runs; leaving it drains them. ``draw`` gives the jitter its numbers in [0, 1)."""
    async with trio.open_nursery() as nursery:
        queues = Queues(nursery, rules or Rules(), draw)
        yield queues
        queues.drain("the daemon is stopping")
