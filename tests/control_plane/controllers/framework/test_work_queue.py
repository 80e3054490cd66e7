"""What is looked at next."""

import pytest
import trio
from trio.testing import MockClock

from wharfinger.control_plane.controllers.framework.work_queue import OWN_WAKES, Agenda
from wharfinger.control_plane.storage.interface import Collection, Key

A, B = (Key(Collection("", "pods"), "default", name) for name in "ab")


async def test_the_first_controller_goes_first(autojump_clock: MockClock) -> None:
    agenda = Agenda(2)
    for item in ((1, A), (0, B), (1, A), (0, A)):
        agenda.add(*item)
    assert [await agenda.take() for _ in range(3)] == [(0, B), (0, A), (1, A)]
    assert not agenda.due


async def test_later_is_later_and_the_earliest_counts(autojump_clock: MockClock) -> None:
    agenda = Agenda(1)
    agenda.add_later(0, A, 5)
    agenda.add_later(0, A, 2)
    agenda.add_later(0, A, 9)
    began = trio.current_time()
    assert await agenda.take() == (0, A)
    assert trio.current_time() - began == 2
    for number in range(200):
        agenda.add_later(0, B, 200 - number)
    assert await agenda.take() == (0, B)
    assert agenda.statistics() == {"due": 0, "waiting": 0, "failing": 0}


async def test_pauses_grow(autojump_clock: MockClock) -> None:
    agenda = Agenda(1)
    pauses = [agenda.failed(0, A) for _ in range(12)]
    assert (pauses[:3], pauses[-1]) == ([0.05, 0.1, 0.2], 30.0)
    agenda.succeeded(0, A)
    assert agenda.failed(0, A) == 0.05


async def test_whatever_waits_is_woken(autojump_clock: MockClock) -> None:
    agenda, taken = Agenda(1), list[object]()

    async def take() -> None:
        taken.append(await agenda.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        agenda.add(0, B)
    assert taken == [(0, B)]


async def test_what_goes_in_circles_is_held_back(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    agenda, times = Agenda(1), list[float]()
    agenda.add(0, A)
    for _ in range(3 * OWN_WAKES):
        assert await agenda.take() == (0, A)
        times.append(trio.current_time())
        agenda.add(0, A)  # its own writes, which may be several
        agenda.add(0, A)
        agenda.succeeded(0, A)
    assert times[OWN_WAKES] == times[0]
    assert times[OWN_WAKES + 1] == times[0] + 1
    assert times[-1] - times[0] == 2
    assert [record.getMessage() for record in caplog.records] == [
        "pods default/a: delayed, because its own writes triggered it 50 times within 1 s"
    ] * 2


async def test_what_others_wake_is_not_held_back(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    agenda = Agenda(1)
    for _ in range(3 * OWN_WAKES):
        agenda.add(0, A)
        assert await agenda.take() == (0, A)
        agenda.add(0, A)
        agenda.succeeded(0, A)
    assert trio.current_time() == autojump_clock.current_time()
    assert agenda.due
    assert not caplog.records
