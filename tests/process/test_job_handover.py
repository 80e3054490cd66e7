"""The handover of requests to the slots of a pool; a slot has at most one worker."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from wharfinger.process.job_handover import JobHandover


class Job:
    """A request that records whether it was shut down."""

    def __init__(self) -> None:
        self.is_shut_down = False

    def shut_down(self) -> None:
        """Record the shutdown."""
        self.is_shut_down = True


async def test_a_warm_slot_goes_first() -> None:
    handover: JobHandover[Job] = JobHandover()
    jobs, taken = [Job(), Job()], dict[str, Job]()

    async def cold() -> None:
        taken["cold"] = await handover.receive()

    async def warm() -> None:
        taken["warm"] = await handover.warm.receive()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cold)
        await wait_all_tasks_blocked()
        nursery.start_soon(warm)
        await wait_all_tasks_blocked()
        for job in jobs:
            await handover.send(job)
    assert taken == {"warm": jobs[0], "cold": jobs[1]}


async def test_senders_wait_in_their_order() -> None:
    handover: JobHandover[Job] = JobHandover()
    jobs = [Job() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(handover.send, job)
            await wait_all_tasks_blocked()
        assert [await handover.receive(warm=number == 1) for number in range(3)] == jobs


async def test_a_cancelled_wait_leaves_no_trace(autojump_clock: trio.testing.MockClock) -> None:
    assert autojump_clock.autojump_threshold == 0
    handover: JobHandover[Job] = JobHandover()
    first, second = Job(), Job()
    with trio.move_on_after(1):
        await handover.receive(warm=True)
    with trio.move_on_after(1) as scope:
        await handover.send(first)
    assert scope.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(handover.send, second)
        assert await handover.receive() is second


async def test_a_close_reaches_all_senders_and_slots() -> None:
    handover: JobHandover[Job] = JobHandover()
    waiting, late = Job(), Job()

    async def slot() -> None:
        with pytest.raises(trio.EndOfChannel):
            await handover.receive()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slot)
        await wait_all_tasks_blocked()
        handover.close()
    with pytest.raises(trio.EndOfChannel):
        await handover.warm.receive()
    await handover.send(late)
    assert late.is_shut_down

    other: JobHandover[Job] = JobHandover()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other.send, waiting)
        await wait_all_tasks_blocked()
        other.close()
    assert waiting.is_shut_down


@pytest.mark.parametrize("attempt", range(8))  # Trio runs the tasks that are ready at the same moment in random order.
async def test_a_slot_that_gives_up_at_the_same_moment_loses_no_request(
    autojump_clock: trio.testing.MockClock, attempt: int
) -> None:
    assert autojump_clock.autojump_threshold == 0
    handover: JobHandover[Job] = JobHandover()
    jobs, taken = [Job() for _ in range(8)], list[Job]()

    async def serve() -> None:
        for _ in jobs:
            with trio.move_on_after(60):
                taken.append(await handover.warm.receive())
                continue
            taken.append(await handover.receive())

    async def ask() -> None:
        for job in jobs:
            await trio.sleep(60)
            await handover.send(job)

    with trio.fail_after(1000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            nursery.start_soon(ask)
    assert taken == jobs, attempt
