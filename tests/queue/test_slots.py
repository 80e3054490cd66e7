"""Slots that trio tasks use: waits, cancelled waits, the package to which a use is charged, and refused uses."""

import random
from collections import Counter
from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, assert_no_checkpoints, wait_all_tasks_blocked

from tests.scale import scaled
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.slots import KindStatistics, Slots, SlotsStatistics
from wharfinger.queue.slots_machine import Kind, SlotLimits


class Holder:
    """A user of slots that holds them until it is stopped. It records the order in which slots were granted."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.got: list[str] = []
        self.stop = trio.Event()

    async def hold(self, kind: Kind, package: str, label: str = "") -> None:
        async with self.slots.use(kind, package):
            self.got.append(label or package)
            await self.stop.wait()

    async def pass_through(self, kind: Kind, package: str, label: str = "") -> None:
        async with self.slots.use(kind, package):
            self.got.append(label or package)


def used(slots: Slots, kind: Kind) -> tuple[int, int]:
    """Return the number of slots in use and of waiting requests."""
    numbers = slots.statistics().kinds[kind]
    return numbers.used, numbers.waiting


async def test_unused_slots_have_statistics_of_zero() -> None:
    expected = {
        Kind.DOWNLOAD: KindStatistics(8, 0, 0),
        Kind.RENDER: KindStatistics(3, 0, 0),
        Kind.HOOK: KindStatistics(8, 0, 0),
        Kind.LOAD: KindStatistics(4, 0, 0),
        Kind.API: KindStatistics(32, 0, 0),
    }
    assert Slots(SlotLimits()).statistics() == SlotsStatistics(16, 0, expected)


async def test_a_free_slot_is_granted_without_a_checkpoint() -> None:
    slots = Slots(SlotLimits())
    with assert_no_checkpoints():
        async with slots.use(Kind.HOOK, "a.x"):
            assert slots.statistics().work_used == 1
            assert used(slots, Kind.HOOK) == (1, 0)
    assert slots.statistics() == Slots(SlotLimits()).statistics()


async def test_waiters_are_served_in_turn() -> None:
    slots = Slots(SlotLimits(renders=1))
    holder = Holder(slots)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(holder.hold, Kind.RENDER, "now.x")
        await wait_all_tasks_blocked()
        for package in ("a.x", "a.x", "a.y", "b.x", "dns"):
            nursery.start_soon(holder.pass_through, Kind.RENDER, package)
            await wait_all_tasks_blocked()
        assert used(slots, Kind.RENDER) == (1, 5)
        assert slots.waiting("a.x") == (Kind.RENDER,)
        assert slots.waiting("now.x") == ()
        holder.stop.set()
    assert holder.got == ["now.x", "a.x", "b.x", "dns", "a.y", "a.x"]
    assert used(slots, Kind.RENDER) == (0, 0)


async def test_waiting_lists_each_kind_once() -> None:
    slots = Slots(SlotLimits(work=1, api=1))
    holder = Holder(slots)
    async with trio.open_nursery() as nursery:
        for kind in (Kind.RENDER, Kind.API):
            nursery.start_soon(holder.hold, kind, "now.x")
        await wait_all_tasks_blocked()
        for kind in (Kind.API, Kind.HOOK, Kind.DOWNLOAD, Kind.HOOK):
            nursery.start_soon(holder.hold, kind, "a.x")
        await wait_all_tasks_blocked()
        assert slots.waiting("a.x") == (Kind.DOWNLOAD, Kind.HOOK, Kind.API)
        nursery.cancel_scope.cancel()
    assert slots.waiting("a.x") == ()


async def test_a_cancelled_waiter_leaves_the_line_at_once() -> None:
    slots = Slots(SlotLimits(loads=1))
    holder = Holder(slots)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(holder.hold, Kind.LOAD, "now.x")
        await wait_all_tasks_blocked()
        scope = trio.CancelScope()

        async def wait() -> None:
            with scope:
                await holder.hold(Kind.LOAD, "a.x")

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        nursery.start_soon(holder.hold, Kind.LOAD, "b.x")
        await wait_all_tasks_blocked()
        scope.cancel()
        assert used(slots, Kind.LOAD) == (1, 1)
        assert slots.waiting("a.x") == ()
        holder.stop.set()
    assert holder.got == ["now.x", "b.x"]
    assert slots.statistics() == Slots(SlotLimits(loads=1)).statistics()


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_a_grant_and_a_cancellation_in_the_same_moment_lose_no_slot(cancelled_first: bool) -> None:
    slots = Slots(SlotLimits(loads=1))
    holder = Holder(slots)
    scope, go = trio.CancelScope(), trio.Event()

    async def wait() -> None:
        await go.wait()
        with scope:
            async with slots.use(Kind.LOAD, "a.x"):
                holder.got.append("a.x")
                await trio.lowlevel.checkpoint()
                holder.got.append("not reached")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        async with slots.use(Kind.LOAD, "now.x"):
            go.set()
            await wait_all_tasks_blocked()
            if cancelled_first:
                scope.cancel()
        if not cancelled_first:
            assert used(slots, Kind.LOAD) == (1, 0)
            scope.cancel()
    assert holder.got == ([] if cancelled_first else ["a.x"])
    assert used(slots, Kind.LOAD) == (0, 0)


async def test_a_slot_is_returned_after_any_exception() -> None:
    slots = Slots(SlotLimits())
    with pytest.raises(KeyError):
        async with slots.use(Kind.DOWNLOAD, "a.x"):
            raise KeyError
    assert used(slots, Kind.DOWNLOAD) == (0, 0)
    async with slots.use(Kind.DOWNLOAD, "a.x"):
        pass


async def work(slots: Slots, kind: Kind, package: str, seconds: float, *, fails: bool) -> None:
    with suppress(KeyError):
        async with slots.use(kind, package):
            await trio.sleep(seconds)
            if fails:
                raise KeyError


async def at_once(slots: Slots, kind: Kind, package: str) -> int:
    """Return how many slots a package can hold at the same time if no other package requests any."""
    holder = Holder(slots)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(holder.hold, kind, package)
        await wait_all_tasks_blocked()
        got = len(holder.got)
        nursery.cancel_scope.cancel()
    return got


@pytest.mark.parametrize(("seconds", "fails", "got"), [(10, True, 2), (9, True, 6), (60, False, 6)])
async def test_long_work_that_fails_makes_its_package_slow(
    autojump_clock: MockClock, seconds: float, fails: bool, got: int
) -> None:
    slots = Slots(SlotLimits())
    await work(slots, Kind.DOWNLOAD, "a.x", seconds, fails=fails)
    assert await at_once(slots, Kind.DOWNLOAD, "a.x") == got


async def test_a_success_clears_a_slow_package_and_an_early_failure_does_not(autojump_clock: MockClock) -> None:
    slots = Slots(SlotLimits())
    await work(slots, Kind.DOWNLOAD, "a.x", 10, fails=True)
    await work(slots, Kind.DOWNLOAD, "a.x", 1, fails=True)
    assert await at_once(slots, Kind.DOWNLOAD, "a.x") == 2
    assert await at_once(slots, Kind.LOAD, "a.x") == 3
    await work(slots, Kind.DOWNLOAD, "a.x", 1, fails=False)
    assert await at_once(slots, Kind.DOWNLOAD, "a.x") == 6


async def test_work_that_is_cancelled_late_was_slow(autojump_clock: MockClock) -> None:
    slots = Slots(SlotLimits())
    with trio.move_on_after(30):
        await work(slots, Kind.DOWNLOAD, "a.x", 60, fails=False)
    assert await at_once(slots, Kind.DOWNLOAD, "a.x") == 2


async def test_slow_api_calls_do_not_make_a_package_slow(autojump_clock: MockClock) -> None:
    slots = Slots(SlotLimits())
    await work(slots, Kind.API, "a.x", 60, fails=True)
    assert await at_once(slots, Kind.API, "a.x") == 16


async def test_a_cancelled_waiter_lets_the_next_request_of_its_package_go() -> None:
    slots = Slots(SlotLimits(downloads=2))
    got: list[str] = []
    waits = trio.CancelScope()

    async def use(package: str, source: str, scope: trio.CancelScope) -> None:
        with scope:
            async with slots.use(Kind.DOWNLOAD, package, source=source):
                got.append(f"{package} {source}")
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for package, source, scope in (
            ("a.x", "slow.example", trio.CancelScope()),
            ("b.x", "slow.example", waits),
            ("b.x", "other.example", trio.CancelScope()),
        ):
            nursery.start_soon(use, package, source, scope)
            await wait_all_tasks_blocked()
        assert got == ["a.x slow.example"]
        waits.cancel()
        await wait_all_tasks_blocked()
        assert got == ["a.x slow.example", "b.x other.example"]
        nursery.cancel_scope.cancel()


async def test_four_hooks_that_hang_leave_half_of_the_slots_to_others() -> None:
    slots = Slots(SlotLimits())
    holder = Holder(slots)
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(holder.hold, Kind.HOOK, "prod.hangs", f"hung {number}")
        await wait_all_tasks_blocked()
        assert used(slots, Kind.HOOK) == (4, 4)
        for number in range(100):
            await holder.pass_through(Kind.HOOK, f"prod.well-{number}")
        assert len(holder.got) == 104
        nursery.cancel_scope.cancel()


async def test_the_daemons_calls_take_turns_with_waiting_packages() -> None:
    """The daemon's own calls are a separate group, which gets its turn, however many packages wait."""
    slots = Slots(SlotLimits(api=2, namespace_share=100))
    holder = Holder(slots)
    async with trio.open_nursery() as nursery:
        for package in ("now.x", "now.y"):
            nursery.start_soon(holder.hold, Kind.API, package)
        await wait_all_tasks_blocked()
        for number in range(50):
            nursery.start_soon(holder.pass_through, Kind.API, f"module-{number}")
        await wait_all_tasks_blocked()
        nursery.start_soon(holder.pass_through, Kind.API, "", "the daemon")
        await wait_all_tasks_blocked()
        holder.stop.set()
    assert "the daemon" in holder.got[:4], "granted after the two holders and at most one Module"


# --- packages of work ------------------------------------------------------------------------------------------------------


class Render:
    """A task that takes a slot for renders once."""

    name = "Render"

    def __init__(self, slots: Slots) -> None:
        self.slots = slots

    async def execute(self) -> None:
        async with self.slots.use(Kind.RENDER):
            await trio.lowlevel.checkpoint()


async def test_the_default_package_is_that_of_the_queue() -> None:
    slots = Slots(SlotLimits(renders=1))
    async with open_queues() as queues:
        async with slots.use(Kind.RENDER, "now.x"):
            queues.enqueue("shop.web", Render(slots), WorkScope("update of shop.web"))
            await wait_all_tasks_blocked()
            assert slots.waiting("shop.web") == (Kind.RENDER,)
            assert slots.waiting("") == ()
        await queues.wait_idle("shop.web")
        assert queues.statistics().retired == 1
    assert used(slots, Kind.RENDER) == (0, 0)


# --- refused uses -----------------------------------------------------------------------------------------------------------

WORK = (Kind.DOWNLOAD, Kind.RENDER, Kind.HOOK, Kind.LOAD)


@pytest.mark.parametrize("held", WORK)
@pytest.mark.parametrize("wanted", WORK)
async def test_a_holder_of_a_work_slot_must_not_wait_for_another_one(held: Kind, wanted: Kind) -> None:
    slots = Slots(SlotLimits())
    async with slots.use(held, "a.x"):
        with pytest.raises(RuntimeError, match=f"a.x holds a slot of {held} and requests a slot of {wanted}"):
            await slots.use(wanted, "a.x").__aenter__()
        assert slots.statistics().work_used == 1


@pytest.mark.parametrize("wanted", Kind)
async def test_a_holder_of_an_api_slot_must_not_wait_for_any_slot(wanted: Kind) -> None:
    slots = Slots(SlotLimits())
    async with slots.use(Kind.API):
        with pytest.raises(RuntimeError, match=f"the daemon holds a slot of api and requests a slot of {wanted}"):
            await slots.use(wanted).__aenter__()
    assert used(slots, Kind.API) == (0, 0)


async def test_a_holder_of_a_work_slot_may_use_api_slots() -> None:
    slots = Slots(SlotLimits())
    async with slots.use(Kind.HOOK, "a.x"):
        for _ in range(2):
            async with slots.use(Kind.API, "a.x"):
                assert (used(slots, Kind.HOOK), used(slots, Kind.API)) == ((1, 0), (1, 0))
        with pytest.raises(RuntimeError, match="holds a slot of hooks"):
            await slots.use(Kind.LOAD, "a.x").__aenter__()
    async with slots.use(Kind.LOAD, "a.x"):
        assert used(slots, Kind.LOAD) == (1, 0)


async def test_tasks_in_a_nursery_of_a_holder_count_as_the_holder() -> None:
    slots = Slots(SlotLimits())
    refused: list[str] = []

    async def child(begin: trio.Event) -> None:
        await begin.wait()
        try:
            async with slots.use(Kind.RENDER, "a.x"):
                pass
        except RuntimeError as error:
            refused.append(str(error))

    begin = trio.Event()
    async with slots.use(Kind.LOAD, "a.x"), trio.open_nursery() as nursery:
        async with slots.use(Kind.API, "a.x"):
            nursery.start_soon(child, begin)
        begin.set()
    assert refused
    assert "a slot of loads" in refused[0]


async def test_a_task_that_outlives_the_block_of_its_starter_may_wait_for_slots() -> None:
    slots = Slots(SlotLimits())
    over = trio.Event()
    got: list[Kind] = []

    async def service() -> None:
        await over.wait()
        async with slots.use(Kind.HOOK, "a.x"):
            got.append(Kind.HOOK)

    async with trio.open_nursery() as nursery:
        async with slots.use(Kind.LOAD, "a.x"):
            nursery.start_soon(service)
        over.set()
    assert got == [Kind.HOOK]


async def test_work_that_a_holder_starts_elsewhere_may_wait_for_slots() -> None:
    slots = Slots(SlotLimits(loads=1))
    got: list[str] = []

    async def elsewhere() -> None:
        async with slots.use(Kind.LOAD, "b.x"):
            got.append("b.x")

    async def hold(other: trio.Nursery) -> None:
        async with slots.use(Kind.LOAD, "a.x"):
            other.start_soon(elsewhere)
            await wait_all_tasks_blocked()
            assert slots.waiting("b.x") == (Kind.LOAD,)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold, nursery)
    assert got == ["b.x"]


async def test_slots_of_another_daemon_are_independent() -> None:
    mine, other = Slots(SlotLimits()), Slots(SlotLimits())
    async with mine.use(Kind.LOAD, "a.x"), other.use(Kind.LOAD, "a.x"):
        assert used(other, Kind.LOAD) == (1, 0)


# --- random uses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(scaled(50, 10)))
async def test_many_random_uses_leave_no_slot_in_use(seed: int, autojump_clock: MockClock) -> None:
    chance = random.Random(seed)  # noqa: S311 - reproducible on purpose
    limits = SlotLimits(work=5, downloads=3, renders=1, hooks=4, loads=2, api=4)
    slots = Slots(limits)
    now: Counter[Kind] = Counter()
    worked: Counter[str] = Counter()

    async def work(package: str, plan: random.Random) -> None:
        while not worked[package]:
            kind = plan.choice(list(Kind))
            with trio.move_on_after(plan.uniform(0, 3)):
                async with slots.use(kind, package):
                    now[kind] += 1
                    try:
                        assert now[kind] <= slots.statistics().kinds[kind].limit
                        assert sum(now.values()) - now[Kind.API] <= limits.work
                        await trio.sleep(plan.uniform(0, 1))
                    finally:
                        now[kind] -= 1
                    worked[package] += 1

    async with trio.open_nursery() as nursery:
        for number in range(60):
            plan = random.Random(chance.random())  # noqa: S311 - reproducible on purpose
            nursery.start_soon(work, f"{chance.choice('abc')}.p{number}", plan)
    assert len(worked) == 60
    assert slots.statistics() == Slots(limits).statistics()
