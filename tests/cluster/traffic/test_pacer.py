"""The pacer of requests: how many may run at the same time, in which order they start, and when their number is lowered."""

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from wharfinger.cluster.traffic.pacer import FLOOR, Pacer


async def hold(pacer: Pacer, name: str, began: list[str], end: trio.Event) -> None:
    async with pacer.turn():
        began.append(name)
        await end.wait()


async def test_turns_are_bounded_and_taken_in_order(autojump_clock: MockClock) -> None:
    pacer, began, end = Pacer(2), list[str](), trio.Event()
    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(hold, pacer, name, began, end)
            await wait_all_tasks_blocked()
        assert began == ["a", "b"]
        found = pacer.statistics()
        assert (found.limit, found.ceiling, found.under_way, found.waiting) == (2, 2, 2, 2)
        end.set()
    assert sorted(began) == ["a", "b", "c", "d"]


async def test_refusals_lower_the_limit_and_answers_raise_it(autojump_clock: MockClock) -> None:
    pacer = Pacer(16)
    for _ in range(20):
        await trio.sleep(1)
        async with pacer.turn() as turn:
            turn.refused()
    assert (pacer.statistics().limit, pacer.statistics().refused) == (FLOOR, 20)
    end, began = trio.Event(), list[str]()
    async with trio.open_nursery() as nursery:
        for number in range(2 * FLOOR):
            nursery.start_soon(hold, pacer, str(number), began, end)
        await wait_all_tasks_blocked()
        assert len(began) == FLOOR
        for _ in range(FLOOR + 1):
            pacer.answered(0.1)
        await wait_all_tasks_blocked()
        assert len(began) == FLOOR + 1
        end.set()


async def test_a_cancelled_wait_takes_no_turn(autojump_clock: MockClock) -> None:
    pacer, began, end = Pacer(1), list[str](), trio.Event()
    async with trio.open_nursery() as nursery, pacer.turn():
        nursery.start_soon(hold, pacer, "second", began, end)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert began == []
    async with pacer.turn() as turn:
        turn.answered(None)
    assert pacer.statistics().under_way == 0


async def test_turns_beyond_a_lowered_limit_are_released_between_two_attempts(autojump_clock: MockClock) -> None:
    pacer, again = Pacer(8), trio.Event()
    attempts: list[int] = []

    async def try_twice(number: int) -> None:
        async with pacer.turn() as turn:
            await again.wait()
            await turn.renew()
            attempts.append(number)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(try_twice, number)
        await wait_all_tasks_blocked()
        for _ in range(10):
            pacer.refused()
            await trio.sleep(1)
        assert pacer.statistics().limit == FLOOR
        again.set()
        await wait_all_tasks_blocked()
        assert len(attempts) == FLOOR
    assert len(attempts) == 8
    assert pacer.statistics().under_way == 0


async def test_a_turn_cancelled_during_its_renewal_is_not_released_twice(
    autojump_clock: MockClock,
) -> None:
    pacer = Pacer(5)
    async with trio.open_nursery() as nursery:

        async def renew() -> None:
            async with pacer.turn() as turn:
                await trio.sleep(2)
                await turn.renew()
                await trio.sleep_forever()

        for _ in range(5):
            nursery.start_soon(renew)
        await trio.sleep(1)
        pacer.refused()
        await trio.sleep(5)
        assert (pacer.statistics().under_way, pacer.statistics().waiting) == (FLOOR, 1)
        nursery.cancel_scope.cancel()
    assert pacer.statistics().under_way == 0
