"""The queue: what order, retry and dumps cost over a bare channel and a task."""

from collections.abc import Iterator

import trio

from bench.measure import Ratio, compare_async
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues

TASKS = 500


class Hop:
    """A task that does next to nothing."""

    name = "Hop"

    async def execute(self) -> None:
        """One checkpoint."""
        await trio.lowlevel.checkpoint()


def measure() -> Iterator[Ratio]:
    """Tasks through one queue, and one task through each of many queues."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
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
            "queue", f"{TASKS} tasks, one queue", "memory channel, a task each", one_queue, one_channel, budget=12.0
        ),
        await compare_async(
            "queue", f"{TASKS} queues, one task each", "nursery, a task each", many_queues, many_tasks, budget=25.0
        ),
    ]


async def _run(task: Hop, done: trio.Event) -> None:
    await task.execute()
    done.set()
