"""The queue: the cost of a task, compared with plain trio channels and tasks, which cannot retry or list their work."""

from collections.abc import Awaitable, Callable, Iterator

import trio
from trio.testing import wait_all_tasks_blocked

from bench.measure import Ratio, compare_async
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues

TASKS = 500
QUEUES = 1000
EACH = 10


class Hop:
    """A task that consists of one checkpoint."""

    name = "Hop"

    async def execute(self) -> None:
        """Execute one checkpoint."""
        await trio.lowlevel.checkpoint()


def measure(long: bool) -> Iterator[Ratio]:
    """Measure many tasks in one queue, one task in each of many queues, and several tasks in each of very many queues."""
    yield from trio.run(_measure_few)
    yield from trio.run(_measure_many)


async def _measure_few() -> list[Ratio]:
    hop = Hop()

    async def one_queue() -> None:
        async with open_queues() as queues:
            scope = WorkScope("bench")
            for _ in range(TASKS):
                queues.enqueue("prod.web", hop, scope)
            await queues.wait_idle("prod.web")

    async def one_channel() -> None:
        send, receive = trio.open_memory_channel[Hop](TASKS)
        async with trio.open_nursery() as nursery:
            with send:
                for _ in range(TASKS):
                    send.send_nowait(hop)
            async for task in receive:
                done = trio.Event()
                nursery.start_soon(_run, task, done)
                await done.wait()

    async def many_queues() -> None:
        async with open_queues() as queues:
            for number in range(TASKS):
                queues.enqueue(f"prod.web-{number}", hop, WorkScope("bench"))
            for number in range(TASKS):
                await queues.wait_idle(f"prod.web-{number}")

    async def many_tasks() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(TASKS):
                nursery.start_soon(_run, hop, trio.Event())

    return [
        await compare_async(
            "queue", f"{TASKS} tasks, one queue", "memory channel, a task each", one_queue, one_channel, budget=2.0
        ),
        await compare_async(
            "queue", f"{TASKS} queues, one task each", "nursery, a task each", many_queues, many_tasks, budget=10.0
        ),
    ]


async def _measure_many() -> list[Ratio]:
    """Measure very many queues, first with all tasks enqueued before the first one runs, and then with one task enqueued at a
    time.
    """
    what, yardstick = f"{QUEUES} queues, {EACH} tasks each", f"{QUEUES} memory channels, a consumer each"
    return [
        await compare_async(
            "queue",
            what,
            yardstick,
            lambda: _through_queues(_nothing),
            lambda: _through_channels(_nothing),
            budget=3.5,
        ),
        await compare_async(
            "queue",
            f"{what}, enqueued one at a time",
            yardstick,
            lambda: _through_queues(wait_all_tasks_blocked),
            lambda: _through_channels(wait_all_tasks_blocked),
            budget=4.0,
        ),
    ]


async def _through_queues(between: Callable[[], Awaitable[None]]) -> None:
    hop = Hop()
    names = [f"prod.web-{number}" for number in range(QUEUES)]
    async with open_queues() as queues:
        scopes = [WorkScope("bench") for _ in names]
        for _ in range(EACH):
            for name, scope in zip(names, scopes, strict=True):
                queues.enqueue(name, hop, scope)
            await between()
        for name in names:
            await queues.wait_idle(name)


async def _through_channels(between: Callable[[], Awaitable[None]]) -> None:
    hop = Hop()
    async with trio.open_nursery() as nursery:
        channels = [_consumer(nursery) for _ in range(QUEUES)]
        for _ in range(EACH):
            for channel in channels:
                channel.send_nowait(hop)
            await between()
        for channel in channels:
            channel.close()


async def _nothing() -> None:
    pass


def _consumer(nursery: trio.Nursery) -> trio.MemorySendChannel[Hop]:
    send, receive = trio.open_memory_channel[Hop](EACH)
    nursery.start_soon(_consume, receive)
    return send


async def _consume(receive: trio.MemoryReceiveChannel[Hop]) -> None:
    async for task in receive:
        await task.execute()


async def _run(task: Hop, done: trio.Event) -> None:
    await task.execute()
    done.set()
