"""The work queue of controllers, which defines the order in which keys are reconciled."""

import pytest
import trio
from trio.testing import MockClock

from wharfinger.control_plane.controllers.framework.work_queue import OWN_WAKES, WorkQueue
from wharfinger.control_plane.storage.interface import Collection, Key

A, B = (Key(Collection("", "pods"), "default", name) for name in "ab")


async def test_keys_of_the_first_controller_have_priority(autojump_clock: MockClock) -> None:
    queue = WorkQueue(2)
    for item in ((1, A), (0, B), (1, A), (0, A)):
        queue.add(*item)
    assert [await queue.take() for _ in range(3)] == [(0, B), (0, A), (1, A)]
    assert not queue.due


async def test_a_key_is_due_at_its_earliest_time(autojump_clock: MockClock) -> None:
    queue = WorkQueue(1)
    queue.add_later(0, A, 5)
    queue.add_later(0, A, 2)
    queue.add_later(0, A, 9)
    began = trio.current_time()
    assert await queue.take() == (0, A)
    assert trio.current_time() - began == 2
    for number in range(200):
        queue.add_later(0, B, 200 - number)
    assert await queue.take() == (0, B)
    assert queue.statistics() == {"due": 0, "waiting": 0, "failing": 0}


async def test_the_retry_delay_doubles_after_each_failure(autojump_clock: MockClock) -> None:
    queue = WorkQueue(1)
    pauses = [queue.failed(0, A) for _ in range(12)]
    assert (pauses[:3], pauses[-1]) == ([0.05, 0.1, 0.2], 30.0)
    queue.succeeded(0, A)
    assert queue.failed(0, A) == 0.05


async def test_an_added_key_wakes_the_runner(autojump_clock: MockClock) -> None:
    queue, taken = WorkQueue(1), list[object]()

    async def take() -> None:
        taken.append(await queue.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        queue.add(0, B)
    assert taken == [(0, B)]


async def test_a_key_that_wakes_itself_repeatedly_is_delayed(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    queue, times = WorkQueue(1), list[float]()
    queue.add(0, A)
    for _ in range(3 * OWN_WAKES):
        assert await queue.take() == (0, A)
        times.append(trio.current_time())
        queue.add(0, A)  # the writes of a reconciliation wake its key, maybe several times
        queue.add(0, A)
        queue.succeeded(0, A)
    assert times[OWN_WAKES] == times[0]
    assert times[OWN_WAKES + 1] == times[0] + 1
    assert times[-1] - times[0] == 2
    assert [record.getMessage() for record in caplog.records] == [
        "pods default/a: delayed, because its own writes triggered it 50 times within 1 s"
    ] * 2


async def test_a_key_woken_by_other_keys_is_not_delayed(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    queue = WorkQueue(1)
    for _ in range(3 * OWN_WAKES):
        queue.add(0, A)
        assert await queue.take() == (0, A)
        queue.add(0, A)
        queue.succeeded(0, A)
    assert trio.current_time() == autojump_clock.current_time()
    assert queue.due
    assert not caplog.records
