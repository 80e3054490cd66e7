"""The public interface of tables, with the cases of statedb's tests (see docs/tables.md)."""

import pytest
import trio
import trio.testing

from tests.cluster.tables.samples import Row, a_table, drop, fired, first_fired, key_of, put, rows_of
from wharfinger.cluster.tables.errors import TableNameError
from wharfinger.cluster.tables.snapshot import Index
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import write


def values(row: Row) -> list[int]:
    return [row.value]


@pytest.mark.parametrize("name", ["a", "desired", "a-b_9", "a" + 30 * "b"])
def test_valid_names_are_accepted(name: str) -> None:
    assert Table(name, key_of, indexes={name: Index(values)}).name == name


@pytest.mark.parametrize("name", ["", "A", "9a", "_a", "__own", "-a", "a b", "a.b", "a/b", "aä", "a\n", "a" + 31 * "b"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(TableNameError, match="is not a name of a table or an index"):
        Table(name, key_of)
    with pytest.raises(TableNameError, match="is not a name of a table or an index"):
        Table("rows", key_of, indexes={name: Index(values)})


def test_a_new_table_is_empty_and_initialized() -> None:
    snapshot = a_table().snapshot()
    assert (len(snapshot), snapshot.revision, snapshot.initialized) == (0, 0, True)
    assert list(snapshot.entries()) == []
    assert snapshot.find("tag", "red") == ()


def test_a_snapshot_is_shared_and_immutable() -> None:
    table = a_table()
    put(table, Row("a", 1, ("red",)))
    snapshot = table.snapshot()
    assert table.snapshot() is snapshot
    put(table, Row("a", 2), Row("b", 3, ("red",)))
    drop(table, "a")
    assert rows_of(snapshot) == {"a": 1}
    assert [entry.row.value for entry in snapshot.find("tag", "red")] == [1]
    assert rows_of(table.snapshot()) == {"b": 3}


def test_the_number_of_rows_follows_the_changes() -> None:
    table = a_table()
    put(table, Row("a"), Row("b"), Row("a", 1))
    assert len(table.snapshot()) == 2
    drop(table, "a", "a")
    assert len(table.snapshot()) == 1


# -- watches


def test_a_watch_on_an_inserted_row_fires_for_that_row_only() -> None:
    table = a_table()
    put(table, Row("a"))
    watch = table.watch_key("a")
    put(table, Row("b"))
    assert fired(watch) == [False]
    put(table, Row("a", 1))
    assert fired(watch) == [True]
    deleted = table.watch_key("a")
    drop(table, "a")
    assert fired(deleted) == [True]
    created = table.watch_key("a")
    put(table, Row("a"))
    assert fired(created) == [True]


def test_an_index_watch_fires_for_rows_with_its_value() -> None:
    table = a_table()
    put(table, Row("a", tags=("red",)), Row("b", tags=("blue",)))
    red, blue = table.watch_index("tag", "red"), table.watch_index("tag", "blue")
    put(table, Row("c"), Row("a", 1))
    assert (red.fired, blue.fired) == (True, False), "a row that no longer has the value"
    red = table.watch_index("tag", "red")
    put(table, Row("c", tags=("red",)))
    assert (red.fired, blue.fired) == (True, False), "a row that gained the value"
    red = table.watch_index("tag", "red")
    put(table, Row("c", 1, tags=("red",)))
    assert (red.fired, blue.fired) == (True, False), "a changed row with the value"
    red = table.watch_index("tag", "red")
    drop(table, "c")
    assert (red.fired, blue.fired) == (True, False), "a deleted row"
    red, other = table.watch_index("tag", "red"), table.watch_index("seat", "red")
    put(table, Row("d", tags=("blue",)))
    assert (red.fired, blue.fired, other.fired) == (False, True, False)


def test_a_table_watch_fires_on_commit() -> None:
    table, other = a_table(), a_table("other")
    watch = table.watch()
    assert table.watch() is watch
    put(other, Row("a"))
    drop(table, "nobody")
    with write(table) as tx:
        tx.insert(table, Row("a"))
        tx.abort()
    assert fired(watch) == [False]
    with write(table) as tx:
        tx.insert(table, Row("a"))
        assert fired(watch) == [False], "the watch fires at the commit"
    assert fired(watch) == [True]
    assert not table.watch().fired


def test_a_watch_taken_within_a_transaction_fires_on_its_commit() -> None:
    table = a_table()
    with write(table) as tx:
        tx.insert(table, Row("a", tags=("red",)))
        watches = table.watch(), table.watch_key("a"), table.watch_index("tag", "red")
    assert [watch.fired for watch in watches] == [True, True, True]


def test_unreferenced_watches_are_forgotten() -> None:
    table = a_table()
    kept = table.watch_key("a")
    for number in range(100):
        table.watch_key(f"k{number}")
        table.watch_index("tag", f"t{number}")
    assert table.watch_key("a") is kept
    assert table.statistics().watches == 1


async def test_a_woken_task_sees_the_new_root() -> None:
    """A task that a watch wakes sees the new rows of all tables of the transaction, and may immediately write."""
    left, right = a_table("left"), a_table("right")
    seen: list[tuple[int, int]] = []

    async def wait(number: int) -> None:
        kinds = (left.watch(), left.watch_key("a"), left.watch_index("tag", "red"), right.watch())
        await kinds[number % 4].wait()
        seen.append((left.snapshot().revision, right.snapshot().revision))
        put(a_table("own"), Row("x"))
        with write(left, right) as tx:
            tx.insert(left, Row(f"by {number}"))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(wait, number)
        await trio.testing.wait_all_tasks_blocked()
        with write(left, right) as tx:
            tx.insert(left, Row("a", tags=("red",)))
            tx.insert(right, Row("a"))
    assert sorted(seen) == [(revision, 1) for revision in range(1, 9)]


async def test_a_watch_set_waits_for_any_of_several_watches() -> None:
    table, done = a_table(), trio.Event()

    async def wait() -> None:
        await first_fired(table.watch_key("a"), table.watch_key("b"), table.watch_index("tag", "red"))
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        put(table, Row("c"))
        await trio.testing.wait_all_tasks_blocked()
        assert not done.is_set()
        put(table, Row("b"))
        await done.wait()


async def test_a_watch_set_collects_watches_within_the_settle_time(autojump_clock: trio.testing.MockClock) -> None:
    """After the first of several watches, a task can wait for a settle time, and then handle all watches that have fired."""
    table = a_table()
    keys = "abc"

    async def write_some() -> None:
        for key in keys:
            await trio.sleep(1)
            put(table, Row(key))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_some)
        watches = {key: table.watch_key(key) for key in keys}
        await first_fired(*watches.values())
        await trio.sleep(1.5)
        assert [key for key, watch in watches.items() if watch.fired] == ["a", "b"]
        assert trio.current_time() == 2.5


async def test_a_cancelled_watch_set_leaves_watches_usable(autojump_clock: trio.testing.MockClock) -> None:
    table = a_table()
    watch, never = table.watch_key("a"), table.watch_key("b")
    put(table, Row("a"))
    with trio.move_on_after(1) as scope:
        await first_fired(watch, never)
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert (watch.fired, never.fired) == (True, False)
    await watch.wait()


async def test_a_fired_watch_returns_at_once() -> None:
    table = a_table()
    watch = table.watch()
    put(table, Row("a"))
    with trio.fail_after(300):
        await watch.wait()
        await watch.wait()


async def test_a_wait_for_a_revision_ends_when_it_is_reached() -> None:
    table = a_table()
    reached: list[tuple[int, int]] = []

    async def wait(revision: int) -> None:
        snapshot = await table.wait_for(revision)
        reached.append((revision, snapshot.revision))

    async with trio.open_nursery() as nursery:
        for revision in range(6):
            nursery.start_soon(wait, revision)
        await trio.testing.wait_all_tasks_blocked()
        assert reached == [(0, 0)]
        put(table, Row("a"))
        await trio.testing.wait_all_tasks_blocked()
        assert reached == [(0, 0), (1, 1)]
        with write(table) as tx:
            for value in range(1, 4):
                tx.insert(table, Row("a", value))
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(reached) == [(0, 0), (1, 1), (2, 4), (3, 4), (4, 4)]
        drop(table, "a")
    assert reached[-1] == (5, 5)
    assert (await table.wait_for(3)).revision == 5


# -- initializers


def test_a_table_is_initialized_when_all_initializers_are_done() -> None:
    table = a_table()
    records, charts = table.initializer("records"), table.initializer("charts")
    assert not table.snapshot().initialized
    assert table.snapshot().pending_initializers == ("charts", "records")
    before, watch = table.snapshot(), table.watch()
    put(table, Row("a"))
    assert not table.snapshot().initialized
    records.done()
    assert fired(watch) == [True]
    assert table.snapshot().pending_initializers == ("charts",)
    charts.done()
    assert table.snapshot().initialized
    assert not before.initialized, "earlier snapshots do not change"
    assert table.snapshot().revision == 1
    assert rows_of(table.snapshot()) == {"a": 0}


def test_an_initializer_counts_once_and_a_later_one_uninitializes() -> None:
    """Only the first call of ``done`` has an effect. A later initializer makes the table uninitialized again."""
    table = a_table()
    first = table.initializer("records")
    with pytest.raises(TableNameError, match="rows: the initializer 'records' is pending already"):
        table.initializer("records")
    with pytest.raises(TableNameError):
        table.initializer("")
    first.done()
    second = table.initializer("records")
    assert not table.snapshot().initialized
    first.done()
    assert not table.snapshot().initialized, "the first initializer has no further effect"
    second.done()
    assert table.snapshot().initialized


def test_initializers_and_transactions_are_independent() -> None:
    table = a_table()
    first = table.initializer("first")
    with write(table) as tx:
        tx.insert(table, Row("a"))
        second = table.initializer("second")
        first.done()
        assert table.snapshot().revision == 0
    assert table.snapshot().pending_initializers == ("second",)
    with write(table) as tx:
        tx.insert(table, Row("b"))
        second.done()
        tx.abort()
    assert table.snapshot().initialized
    assert rows_of(table.snapshot()) == {"a": 0}


async def test_a_wait_for_initialization_ends_with_the_last_initializer() -> None:
    table = a_table()
    assert (await table.wait_initialized()).revision == 0
    initializer, log = table.initializer("records"), []

    async def wait() -> None:
        snapshot = await table.wait_initialized()
        log.append((snapshot.initialized, snapshot.revision))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        put(table, Row("a"))
        await trio.testing.wait_all_tasks_blocked()
        assert log == []
        initializer.done()
    assert log == [(True, 1)]
