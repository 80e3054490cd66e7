"""Tasks that wait for an owner's progress. A task is woken only if the condition that it waits for is met."""

import trio
import trio.testing

from wharfinger.cluster.reconciler.waiters import Waiters


async def test_a_waiter_wakes_exactly_when_its_condition_holds() -> None:
    waiters, steps, asked = Waiters(), [0], [0]

    def reached() -> bool:
        asked[0] += 1
        return steps[0] >= 3

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiters.wait_until, "a", reached)
            for _ in range(3):
                await trio.testing.wait_all_tasks_blocked()
                steps[0] += 1
                waiters.step("a")
    assert asked[0] == 1 + 3 + 1
    assert not waiters._waiters


async def test_a_wait_returns_at_once_if_its_condition_holds() -> None:
    with trio.fail_after(300):
        await Waiters().wait_until("a", lambda: True)


async def test_a_step_wakes_only_its_own_owner() -> None:
    waiters = Waiters()
    mine, other = waiters.watch("a"), waiters.watch("b")
    assert waiters.watch("a") is mine
    waiters.step("a")
    assert (mine.fired, other.fired) == (True, False)
    assert not waiters.watch("a").fired
    waiters.step_all()
    assert other.fired


async def test_a_cancelled_waiter_is_removed() -> None:
    waiters = Waiters()
    with trio.move_on_after(0):
        await waiters.wait_until("a", lambda: False)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(waiters.wait_until, "a", lambda: False)
        await trio.testing.wait_all_tasks_blocked()
        assert len(waiters._waiters["a"]) == 2
        nursery.cancel_scope.cancel()
    assert not waiters._waiters


async def test_a_condition_false_again_at_wake_up_is_waited_for_again() -> None:
    waiters, holds = Waiters(), [False]
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiters.wait_until, "a", lambda: holds[0])
            await trio.testing.wait_all_tasks_blocked()
            holds[0] = True
            waiters.step("a")
            holds[0] = False
            await trio.testing.wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 1
            holds[0] = True
            waiters.step_all()
