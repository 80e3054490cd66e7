"""The queue that passes on the names of packages whose removal is complete."""

import trio
import trio.testing

from wharfinger.runtime.core.departures import Departures


async def test_names_are_taken_in_order() -> None:
    line, taken = Departures(), list[str]()

    async def take() -> None:
        while len(taken) < 3:
            taken.append(await line.take())

    line.put("a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        assert taken == ["a"]
        line.put("b")
        line.put("c")
        await trio.testing.wait_all_tasks_blocked()
    assert taken == ["a", "b", "c"]
