"""Watches without a table. test_table tests when a table fires them."""

import trio
import trio.testing

from wharfinger.cluster.tables.watch import Watch, Watches


async def test_all_waiters_are_woken_once_and_permanently() -> None:
    watch, woken = Watch(), []

    async def wait(number: int) -> None:
        await watch.wait()
        woken.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(wait, number)
        await trio.testing.wait_all_tasks_blocked()
        assert (watch.fired, woken) == (False, [])
        watch.fire()
        watch.fire()
    assert (watch.fired, sorted(woken)) == (True, [0, 1, 2])


def test_a_fired_watch_is_replaced() -> None:
    watches = Watches()
    before = watches.table(), watches.key("a"), watches.value("tag", "a")
    assert (watches.table(), watches.key("a"), watches.value("tag", "a")) == before
    watches.fire(["a"], [("tag", "a")])
    assert [watch.fired for watch in before] == [True, True, True]
    after = watches.table(), watches.key("a"), watches.value("tag", "a")
    assert [watch.fired for watch in after] == [False, False, False]
    assert watches.keyed == 2


def test_keys_and_values_are_distinct() -> None:
    watches = Watches()
    key, pair, value = watches.key("a"), watches.key(("tag", "a")), watches.value("tag", "a")
    watches.fire(["a"], [])
    assert [watch.fired for watch in (key, pair, value)] == [True, False, False]
    watches.fire([], [("tag", "a")])
    assert [watch.fired for watch in (pair, value)] == [False, True]


def test_a_table_watch_fires_independently_of_keys() -> None:
    watches = Watches()
    table, key = watches.table(), watches.key("a")
    watches.fire_table()
    watches.fire_table()
    assert (table.fired, key.fired) == (True, False)


def test_a_watch_lives_as_long_as_it_is_referenced() -> None:
    watches = Watches()
    kept = watches.value("tag", "a")
    watches.value("tag", "b")
    assert (watches.keyed, watches.values_watched) == (1, True)
    del kept
    assert (watches.keyed, watches.values_watched) == (0, False)
