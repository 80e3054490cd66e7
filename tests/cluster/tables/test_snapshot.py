"""Queries of a snapshot. test_model tests which rows a snapshot contains."""

from tests.cluster.tables.samples import Row, a_table, drop, put, rows_of
from wharfinger.cluster.tables.snapshot import Index
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import write


def test_get_returns_the_entry_of_a_key() -> None:
    table = a_table()
    put(table, Row("a", 1), Row("b", 2), Row("a", 3))
    snapshot = table.snapshot()
    a = snapshot.get("a")
    assert a is not None
    assert (a.row.value, a.revision, a.created) == (3, 3, 1)
    assert snapshot.get("c") is None
    assert ("a" in snapshot, "c" in snapshot) == (True, False)


def test_all_entries_are_in_the_order_of_revisions() -> None:
    table = a_table()
    put(table, *(Row(key, 1) for key in "abcd"), Row("b", 2))
    drop(table, "c")
    assert list(rows_of(table.snapshot()).items()) == [("a", 1), ("d", 1), ("b", 2)], "in the order of revisions"


def test_a_snapshot_lists_entries_since_a_revision() -> None:
    table = a_table()
    put(table, *(Row(key, 1) for key in "abcd"), Row("b", 2))
    snapshot = table.snapshot()
    put(table, Row("a", 9), Row("e", 9))
    drop(table, "d")
    assert [[entry.row.key for entry in snapshot.since(revision)] for revision in range(7)] == [
        ["a", "c", "d", "b"],
        ["c", "d", "b"],
        ["c", "d", "b"],
        ["d", "b"],
        ["b"],
        [],
        [],
    ]
    assert [entry.row.key for entry in table.snapshot().since(5)] == ["a", "e"]


def test_iterating_continues_while_the_table_changes() -> None:
    table = a_table()
    put(table, *(Row(str(number)) for number in range(50)))
    entries = table.snapshot().entries()
    seen = [next(entries).row.key]
    for number in range(200):
        put(table, Row(str(number % 60), number))
    drop(table, *(str(number) for number in range(60)))
    seen += [entry.row.key for entry in entries]
    assert seen == [str(number) for number in range(50)]


def test_regression_29324_a_list_matches_exactly() -> None:
    """A search for a value does not find longer values that begin with it. (In statedb, it once did: regression 29324.)"""
    table = a_table()
    put(table, Row("a", tags=("red",)), Row("b", tags=("red-ish",)), Row("c", tags=("re",)))
    assert [entry.row.key for entry in table.snapshot().find("tag", "red")] == ["a"]


def test_non_unique_keys_are_not_concatenated() -> None:
    """Pairs of an indexed value and a key stay distinct, whatever they contain. (statedb joins them into one key.)"""
    by_pair = Table[tuple[str, ...], tuple[str, ...]](
        "pairs", lambda row: row, indexes={"first": Index(lambda row: row[:1])}
    )
    pairs = [("a", "b\0c"), ("a\0b", "c"), ("a\0", "b"), ("a", "\0b"), ("", ""), ("\0", "\1")]
    with write(by_pair) as tx:
        for pair in pairs:
            tx.insert(by_pair, pair)
    with_all = by_pair.snapshot()
    assert [[entry.row for entry in with_all.find("first", pair[0])] for pair in pairs[1:3]] == [[pairs[1]], [pairs[2]]]
    assert [entry.row for entry in with_all.find("first", "a")] == [pairs[0], pairs[3]]


def test_empty_keys_and_values_are_allowed() -> None:
    table = a_table()
    put(table, Row("", 1, ("",)))
    assert rows_of(table.snapshot()) == {"": 1}
    assert [entry.row.value for entry in table.snapshot().find("tag", "")] == [1]
    drop(table, "")
    assert len(table.snapshot()) == 0


def test_an_index_gives_none_one_or_many_values() -> None:
    table = a_table()
    put(table, Row("none"), Row("one", tags=("red",)), Row("many", tags=("red", "blue", "red")))
    found = {tag: [entry.row.key for entry in table.snapshot().find("tag", tag)] for tag in ("red", "blue", "green")}
    assert found == {"red": ["one", "many"], "blue": ["many"], "green": []}
