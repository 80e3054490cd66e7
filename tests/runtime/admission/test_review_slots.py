"""The slots of reviews, shared fairly between packages."""

from collections import Counter

import trio
from trio.testing import wait_all_tasks_blocked

from wharfinger.runtime.admission.review_slots import AT_ONCE, OF_ONE_PACKAGE, ReviewSlots


async def test_a_package_with_slow_hooks_does_not_delay_the_others() -> None:
    slots, running, over = ReviewSlots(), Counter[str](), trio.Event()

    async def run(package: str) -> None:
        async with slots.use(package):
            running[package] += 1
            await over.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(2 * AT_ONCE):
            nursery.start_soon(run, "slow")
        await wait_all_tasks_blocked()
        assert running == {"slow": OF_ONE_PACKAGE}
        async with slots.use("other"):
            assert "other" in slots.packages
        assert "other" not in slots.packages
        for number in range(AT_ONCE):
            nursery.start_soon(run, f"p{number}")
        await wait_all_tasks_blocked()
        assert running.total() == AT_ONCE
        over.set()
    assert (running["slow"], running.total(), len(slots.packages)) == (2 * AT_ONCE, 3 * AT_ONCE, 0)


async def test_a_run_that_is_cancelled_while_it_waits_or_runs_leaves_no_slot_taken() -> None:
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


async def _for_ever(slots: ReviewSlots) -> None:
    async with slots.use("a"):
        await trio.sleep_forever()
