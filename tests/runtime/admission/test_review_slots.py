"""The slots of reviews, shared fairly between packages."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from wharfinger.runtime.admission.review_slots import AT_ONCE, FURTHER, ReviewSlots


class Slow:
    """Packages whose hooks do not answer until they are released."""

    def __init__(self, slots: ReviewSlots) -> None:
        self.slots = slots
        self.running, self.done = Counter[str](), Counter[str]()
        self.over = trio.Event()

    async def run(self, package: str) -> None:
        async with self.slots.use(package):
            self.running[package] += 1
            await self.over.wait()
            self.running[package] -= 1
        self.done[package] += 1


@asynccontextmanager
async def slow(*packages: str) -> AsyncIterator[Slow]:
    """Start twice as many reviews of each package as there are slots, and release all of them at the end."""
    found = Slow(ReviewSlots())
    async with trio.open_nursery() as nursery:
        for package in packages:
            for _ in range(2 * AT_ONCE):
                nursery.start_soon(found.run, package)
            await wait_all_tasks_blocked()
        try:
            yield found
        finally:
            found.over.set()
    assert found.done == dict.fromkeys(packages, 2 * AT_ONCE), "no run is lost"
    assert not found.slots.packages


async def test_one_package_never_uses_all_slots() -> None:
    async with slow("a") as found:
        assert found.running == {"a": 1 + FURTHER}
        assert found.slots.packages == {"a"}


@pytest.mark.parametrize("count", [1, 2, 3, AT_ONCE - FURTHER - 1])
async def test_slow_packages_leave_a_slot_for_another_package(count: int) -> None:
    names = [f"slow{number}" for number in range(count)]
    async with slow(*names) as found:
        assert set(found.running) == set(names), "each of them has a slot, too"
        with trio.fail_after(60):
            async with found.slots.use("other"):
                assert found.running.total() < AT_ONCE


async def test_there_are_never_more_runs_than_slots() -> None:
    async with slow(*(f"p{number}" for number in range(2 * AT_ONCE))) as found:
        assert found.running.total() == AT_ONCE


async def test_a_free_slot_goes_to_the_package_with_the_fewest() -> None:
    slots, order = ReviewSlots(), list[str]()

    async def run(package: str, over: trio.Event) -> None:
        async with slots.use(package):
            order.append(package)
            await over.wait()

    first, others = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(run, f"p{number}", first if number == 0 else others)
        await wait_all_tasks_blocked()
        order.clear()
        for package in ("p1", "p2", "late"):
            nursery.start_soon(run, package, others)
            await wait_all_tasks_blocked()
        assert order == []
        first.set()
        await wait_all_tasks_blocked()
        assert order == ["late"]
        others.set()
    assert sorted(order) == ["late", "p1", "p2"]


async def test_a_cancelled_run_releases_its_slot() -> None:
    slots = ReviewSlots()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(_for_ever, slots)
            await wait_all_tasks_blocked()
            scope.cancel()
    assert not slots.packages
    for _ in range(2 * AT_ONCE):
        async with slots.use("a"), slots.use("a"):
            pass


async def test_a_slot_granted_to_a_cancelled_run_is_returned() -> None:
    slots = ReviewSlots()
    async with trio.open_nursery() as nursery, slots.use("a"):
        scopes = [trio.CancelScope() for _ in range(AT_ONCE)]

        async def run(scope: trio.CancelScope) -> None:
            with scope:
                await _for_ever(slots)

        for scope in scopes:
            nursery.start_soon(run, scope)
        await wait_all_tasks_blocked()
        for scope in scopes:  # each released slot is given to a run that is cancelled next
            scope.cancel()
    assert not slots.packages


async def _for_ever(slots: ReviewSlots) -> None:
    async with slots.use("a"):
        await trio.sleep_forever()
