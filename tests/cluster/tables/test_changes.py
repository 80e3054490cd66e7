"""Change streams in single cases. test_model compares them with a model."""

import pytest
import trio

from tests.cluster.tables.samples import Row, a_table, drop, put, rows_of
from wharfinger.cluster.tables.changes import Change, ChangeStream
from wharfinger.cluster.tables.errors import StreamClosedError, TrackerExpiredError
from wharfinger.cluster.tables.transaction import write


def told(changes: tuple[Change[str, Row], ...]) -> list[str]:
    return [f"{'-' if change.deleted else '+'}{change.key}{change.row.value}@{change.revision}" for change in changes]


def test_changes_are_read_by_revision() -> None:
    table = a_table()
    put(table, Row("a", 1), Row("b", 1), Row("gone", 1))
    drop(table, "gone")
    with table.changes("reader") as stream:
        assert told(stream.next()) == ["+a1@1", "+b1@2"], "all rows without past deletions"
        assert stream.revision == 4
        assert stream.next() == ()
        put(table, Row("c", 1), Row("a", 2))
        drop(table, "b")
        put(table, Row("c", 2))
        assert told(stream.next()) == ["+a2@6", "-b1@7", "+c2@8"], "in the order of revisions, each row once"
        assert stream.next() == ()


def test_a_row_created_and_deleted_unread_is_one_deletion() -> None:
    table = a_table()
    with table.changes("reader") as stream:
        put(table, Row("a", 1))
        drop(table, "a")
        assert told(stream.next()) == ["-a1@2"]
        with write(table) as tx:
            tx.insert(table, Row("b", 1))
            tx.delete(table, "b")
        assert told(stream.next()) == ["-b1@4"]


def test_a_row_deleted_and_created_unread_is_one_row_with_a_new_beginning() -> None:
    table = a_table()
    put(table, Row("a", 1))
    with table.changes("reader") as stream:
        (first,) = stream.next()
        put(table, Row("a", 2))
        (second,) = stream.next()
        drop(table, "a")
        put(table, Row("a", 3))
        put(table, Row("a", 4))
        (third,) = stream.next()
    assert [told((change,)) for change in (first, second, third)] == [["+a1@1"], ["+a2@2"], ["+a4@5"]]
    assert [change.created for change in (first, second, third)] == [1, 1, 4], (
        "the creation time distinguishes the new row"
    )
    assert third.created > second.revision


def test_changes_can_be_taken_in_parts() -> None:
    table = a_table()
    with table.changes("reader") as stream:
        put(table, *(Row(key, 1) for key in "abcd"))
        assert stream.take(0) == ()
        assert told(stream.take(2)) == ["+a1@1", "+b1@2"]
        assert stream.revision == 2
        put(table, Row("a", 2), Row("c", 2))
        drop(table, "d", "b")
        assert stream.behind
        assert told(stream.take(2)) == ["+a2@5", "+c2@6"]
        assert told(stream.take(2)) == ["-d1@7", "-b1@8"]
        assert told(stream.take(2)) == []
        assert stream.revision == 8
        assert not stream.behind


def test_a_stream_read_to_its_end_has_the_tables_revision() -> None:
    """The last change of this table is a deletion from before the stream began. The stream skips it without reporting it."""
    table = a_table()
    put(table, Row("a", 1), Row("b", 1))
    drop(table, "b")
    with table.changes("reader") as stream:
        assert told(stream.take(1)) == ["+a1@1"]
        assert stream.behind
        assert stream.take(1) == ()
        assert (stream.revision, stream.behind) == (3, False)


def test_deletions_from_before_a_tracker_are_not_reported_to_it() -> None:
    table = a_table()
    put(table, Row("a", 1), Row("b", 1))
    with table.changes("early") as early:
        early.next()
        drop(table, "a")
        with table.changes("late") as late:
            assert told(late.next()) == ["+b1@2"]
        assert told(early.next()) == ["-a1@3"]


def test_several_trackers_read_at_their_own_pace() -> None:
    table = a_table()
    with table.changes("fast") as fast, table.changes("slow") as slow:
        put(table, Row("a", 1))
        assert told(fast.next()) == ["+a1@1"]
        drop(table, "a")
        assert told(fast.next()) == ["-a1@2"]
        assert table.statistics().graves == 1
        assert told(slow.next()) == ["-a1@2"]
        assert table.statistics().graves == 0


def test_deletions_are_forgotten_without_readers() -> None:
    table = a_table()
    with table.changes("reader") as stream:
        put(table, Row("a"))
        drop(table, "a")
        assert table.statistics().graves == 1
    assert table.statistics().graves == 0
    put(table, Row("a"))
    drop(table, "a")
    assert table.statistics().graves == 0
    with pytest.raises(
        StreamClosedError, match="the changes for reader were read after the `with` block of the stream had ended"
    ):
        stream.next()
    stream.close()


def test_readers_see_only_committed_changes() -> None:
    table = a_table()
    with table.changes("reader") as stream:
        with write(table) as tx:
            tx.insert(table, Row("a", 1))
            assert stream.next() == ()
        assert told(stream.next()) == ["+a1@1"]
        with write(table) as tx:
            tx.delete(table, "a")
            tx.abort()
        assert stream.next() == ()
        assert not stream.behind


def test_a_tracker_too_far_behind_expires_and_is_named() -> None:
    table = a_table(graves=2)
    put(table, *(Row(key) for key in "abcde"))
    with table.changes("slow") as slow, table.changes("fast") as fast:
        fast.next()
        slow.next()
        for key in "abc":
            drop(table, key)
            assert len(fast.next()) == 1
        with pytest.raises(TrackerExpiredError, match=r"rows: slow has read up to revision 5 of 8.*open another"):
            slow.next()
        drop(table, "d")
        statistics = table.statistics()
        assert statistics.expired == ("slow",)
        assert [(one.name, one.revision, one.lag) for one in statistics.trackers] == [("fast", 8, 1)]
        assert told(fast.next()) == ["-d0@9"]
        with table.changes("slow") as again:
            assert told(again.next()) == ["+e0@5"]


def test_recreated_rows_do_not_expire_a_tracker() -> None:
    table = a_table(graves=2)
    with table.changes("slow") as slow:
        for value in range(100):
            put(table, Row("a", value))
            drop(table, "a")
        assert table.statistics().graves == 1
        assert table.statistics().versions < 50, "ended versions do not accumulate for a slow tracker"
        assert told(slow.next()) == ["-a99@200"]


async def test_a_waiting_reader_is_woken_by_changes() -> None:
    table = a_table()
    log: list[str] = []

    async def follow(stream: ChangeStream[str, Row]) -> None:
        while len(log) < 3:
            await stream.changed()
            log.extend(told(stream.take(1)))

    with table.changes("reader") as stream:
        put(table, Row("a", 1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow, stream)
            await trio.testing.wait_all_tasks_blocked()
            assert log == ["+a1@1"]
            table.initializer("other").done()
            await trio.testing.wait_all_tasks_blocked()
            assert log == ["+a1@1"], "woken without changes, it continues to wait"
            put(table, Row("b", 1))
            drop(table, "b", "a")
    assert log == ["+a1@1", "-b1@3", "-a1@4"]


async def test_a_waiting_reader_is_woken_when_it_expires() -> None:
    """A reader waits for changes. It expires, because one commit deletes more rows than the table remembers. It must be woken
    then.
    """
    table = a_table(graves=2)
    put(table, *(Row(key) for key in "abc"))

    async def follow(stream: ChangeStream[str, Row]) -> None:
        with pytest.raises(TrackerExpiredError):
            await stream.changed()

    with table.changes("reader") as stream:
        stream.next()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow, stream)
            await trio.testing.wait_all_tasks_blocked()
            drop(table, *"abc")
    assert table.statistics().expired == ("reader",)


async def test_a_follower_of_changes_mirrors_the_table() -> None:
    """A follower that applies all reported changes to a copy ends with the rows of the table, however often it reads."""
    table = a_table()
    copy: dict[str, int] = {}

    async def follow() -> None:
        with table.changes("follower") as stream:
            while stream.revision < 60:
                await stream.changed()
                for change in stream.next():
                    if change.deleted:
                        copy.pop(change.key, None)
                    else:
                        copy[change.key] = change.row.value

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        for value in range(30):
            put(table, Row(f"k{value % 7}", value))
            await trio.lowlevel.checkpoint()
            with write(table) as tx:
                if tx.delete(table, f"k{value % 3}") is None:
                    tx.insert(table, Row("z", value))
    assert copy == rows_of(table.snapshot())


async def test_a_derived_table_skips_rows_that_fail() -> None:
    """If one row cannot be derived, all other rows are derived nevertheless. (statedb's helper ``Derive`` stops at the first
    error.)
    """
    source, derived = a_table("source"), a_table("derived")
    failed: list[str] = []
    filling = derived.initializer("derive")

    def derive(stream: ChangeStream[str, Row]) -> None:
        with write(derived) as tx:
            for change in stream.next():
                if change.deleted:
                    tx.delete(derived, change.key)
                elif change.row.value < 0:
                    failed.append(change.key)
                else:
                    tx.insert(derived, Row(change.key, 2 * change.row.value))
        if source.snapshot().initialized:
            filling.done()

    async def job() -> None:
        with source.changes("derive") as stream:
            while stream.revision < 5:
                await stream.changed()
                derive(stream)

    given = source.initializer("given")
    put(source, Row("a", 1), Row("bad", -1), Row("b", 2))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job)
        await derived.wait_for(2)
        assert not derived.snapshot().initialized
        given.done()
        put(source, Row("c", 3))
        assert (await derived.wait_initialized()).revision == 3
        drop(source, "a")
    assert rows_of(derived.snapshot()) == {"b": 4, "c": 6}
    assert failed == ["bad"]
