"""Slots: the cost of acquiring and releasing a slot, compared with trio's CapacityLimiter, which only counts."""

from collections.abc import Iterator

import trio

from bench.measure import Ratio, compare_async
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind, SlotLimits

USES = 2000
WAITERS = 1000


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the use of a free slot, and a thousand packages that wait for a few slots."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    slots, limiter = Slots(SlotLimits()), trio.CapacityLimiter(32)

    async def free_slots() -> None:
        for _ in range(USES):
            async with slots.use(Kind.API, "prod.web"):
                pass

    async def free_limiter() -> None:
        for _ in range(USES):
            async with limiter:
                pass

    async def through_slots(number: int) -> None:
        async with slots.use(Kind.API, f"prod-{number % 50}.web-{number}"):
            await trio.lowlevel.checkpoint()

    async def through_limiter(_: int) -> None:
        async with limiter:
            await trio.lowlevel.checkpoint()

    async def crowd_at_slots() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(WAITERS):
                nursery.start_soon(through_slots, number)

    async def crowd_at_limiter() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(WAITERS):
                nursery.start_soon(through_limiter, number)

    return [
        await compare_async(
            "slots", f"{USES} uses of a free slot", "trio.CapacityLimiter", free_slots, free_limiter, budget=3.0
        ),
        await compare_async(
            "slots",
            f"{WAITERS} packages, 32 slots",
            "trio.CapacityLimiter",
            crowd_at_slots,
            crowd_at_limiter,
            budget=4.0,
        ),
    ]
