"""Concurrent calls up to a limit. If one call fails, its error is raised without an exception group."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.errors import ClusterError


async def test_results_are_in_order_and_concurrency_is_limited(autojump_clock: MockClock) -> None:
    running = most = 0

    async def act(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(10 - number)
        running -= 1
        return number * 2

    assert await each(range(10), act, limit=3) == [number * 2 for number in range(10)]
    assert most == 3
    assert await each([], act, limit=3) == []


async def test_the_first_failure_cancels_the_rest_and_is_raised_without_a_group(autojump_clock: MockClock) -> None:
    started: list[int] = []

    async def act(number: int) -> None:
        started.append(number)
        await trio.sleep(1 if number == 1 else 100)
        raise ClusterError(f"number {number}")

    with pytest.raises(ClusterError, match="number 1"):
        await each(range(10), act, limit=3)
    assert sorted(started) == [0, 1, 2]
    assert trio.current_time() < 1000


async def test_of_two_simultaneous_failures_the_earlier_item_is_raised() -> None:
    both = trio.Event()

    async def act(number: int) -> None:
        await both.wait()
        raise ClusterError(f"number {number}")

    async with trio.open_nursery() as nursery:

        async def run() -> None:
            with pytest.raises(ClusterError, match="number 0"):
                await each(range(2), act, limit=2)

        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        both.set()


async def test_unexpected_exceptions_are_raised_as_a_group() -> None:
    async def act(number: int) -> None:
        raise LookupError(number)

    with pytest.raises(ExceptionGroup) as caught:
        await each([1], act, limit=1)
    assert caught.group_contains(LookupError)
