"""Commits of drafts, and snapshots from before a commit."""

from tests.cluster.tables.samples import Row, a_table, drop, key_of, put, rows_of
from wharfinger.cluster.tables.contents import Contents
from wharfinger.cluster.tables.draft import Draft
from wharfinger.cluster.tables.snapshot import Index
from wharfinger.cluster.tables.version_log import SLACK

INDEXES = {"tag": Index[Row](lambda row: row.tags)}


def contents() -> Contents[str, Row]:
    return Contents(INDEXES, graves=100)


def draft(of: Contents[str, Row]) -> Draft[str, Row]:
    return Draft("rows", of.snapshot, key_of, INDEXES)


def commit(of: Contents[str, Row], *rows: Row) -> None:
    one = draft(of)
    for row in rows:
        one.put(row)
    of.commit(one)


def test_an_index_value_of_many_rows_is_compacted() -> None:
    """If many rows with the same value are replaced often, the log of this value is compacted. Older snapshots stay correct."""
    table = a_table()
    kept = []
    for value in range(300):
        put(table, Row(f"k{value % 7}", value, ("red", "blue") if value % 2 else ("red",)))
        kept.append(table.snapshot())
    for value, snapshot in enumerate(kept):
        newest = range(max(0, value - 6), value + 1)
        assert [entry.row.value for entry in snapshot.find("tag", "red")] == list(newest)
        assert [entry.row.value for entry in snapshot.find("tag", "blue")] == [one for one in newest if one % 2]
    log = table.snapshot().buckets["tag"].get("red")
    assert log is not None
    assert log.live == 7
    assert len(log.versions) <= 2 * 7 + 4 * SLACK


def test_values_without_rows_are_removed_from_the_index() -> None:
    table = a_table()
    for number in range(100):
        put(table, Row("a", number, (f"t{number}",)))
    assert list(table.snapshot().buckets["tag"]) == ["t99"]
    drop(table, "a")
    assert len(table.snapshot().buckets["tag"]) == 0


def test_unchanged_versions_are_shared_between_snapshots() -> None:
    mine = contents()
    commit(mine, *(Row(f"k{number}", 0, (f"t{number % 10}",)) for number in range(100)))
    before = mine.snapshot
    commit(mine, Row("k1", 1, ("t1",)))
    after = mine.snapshot
    same = [tag for tag in map("t{}".format, range(10)) if after.buckets["tag"][tag] is before.buckets["tag"][tag]]
    assert len(same) == 10, "the new version is appended to the log of t1"
    assert all(after.version(f"k{number}") is before.version(f"k{number}") for number in range(100) if number != 1)
    assert [len(snapshot.find("tag", "t1")) for snapshot in (before, after)] == [10, 10]
    assert [snapshot.find("tag", "t1")[-1].row.value for snapshot in (before, after)] == [0, 1]


def test_a_dropped_draft_changes_nothing() -> None:
    mine = contents()
    commit(mine, Row("a", 1, ("red",)))
    before = mine.snapshot
    dropped = draft(mine)
    dropped.put(Row("a", 2, ("blue",)))
    dropped.put(Row("b", 2, ("red",)))
    assert mine.snapshot is before
    assert (rows_of(before), mine.kept) == ({"a": 1}, 1)
    commit(mine, Row("a", 3, ("red",)))
    assert mine.snapshot.revision == 2
    assert [entry.row.value for entry in mine.snapshot.find("tag", "red")] == [3]


def test_deletions_are_logged_only_for_readers() -> None:
    mine = contents()

    def there_and_gone() -> list[str]:
        commit(mine, Row("a"))
        one = draft(mine)
        old = one.get("a")
        assert old is not None
        one.remove(old)
        mine.commit(one)
        return [version.key for version in mine.changes_since(0)]

    assert there_and_gone() == []
    reader = mine.join("reader")
    assert there_and_gone() == ["a"]
    mine.advance(reader, mine.snapshot.revision)
    assert list(mine.changes_since(0)) == []
    assert there_and_gone() == ["a"]
    mine.leave(reader)
    assert list(mine.changes_since(0)) == []


def test_pending_initializers_do_not_change_the_revision() -> None:
    mine = contents()
    commit(mine, Row("a", 1, ("red",)))
    before = mine.snapshot
    mine.set_pending(frozenset({"records"}))
    assert (before.initialized, mine.snapshot.initialized) == (True, False)
    assert mine.snapshot.revision == before.revision
    assert mine.snapshot.find("tag", "red") == before.find("tag", "red")
    commit(mine, Row("b"))
    assert mine.snapshot.pending_initializers == ("records",)
