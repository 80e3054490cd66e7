"""Transactions, with the cases of statedb's tests (see docs/tables.md)."""

import pytest

from tests.cluster.tables.samples import Row, a_table, drop, key_of, put, rows_of
from wharfinger.cluster.tables.errors import (
    DuplicateKeyError,
    KeyChangedError,
    RevisionChangedError,
    RowNotFoundError,
    SameRowError,
    TableLockedError,
    TableNotLockedError,
    TransactionOverError,
)
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import Transaction, write


def add(old: Row, new: Row) -> Row:
    return Row(old.key, old.value + new.value, new.tags)


def test_a_table_may_be_named_twice_in_a_transaction() -> None:
    table = a_table()
    with write(table, table) as tx:
        tx.insert(table, Row("a", 1))
    assert rows_of(table.snapshot()) == {"a": 1}
    assert table.snapshot().revision == 1


def test_the_same_object_is_not_inserted_again() -> None:
    table, row = a_table(), Row("a", 1)
    put(table, row)
    with pytest.raises(SameRowError, match="the object of the row 'a' is in the table already"), write(table) as tx:
        tx.insert(table, row)
    with pytest.raises(SameRowError), write(table) as tx:
        tx.modify(table, Row("a", 2), lambda old, _: old)
    with pytest.raises(SameRowError), write(table) as tx:
        tx.compare_and_swap(table, 1, row)
    with pytest.raises(SameRowError), write(table) as tx:
        tx.insert(table, new := Row("a", 3))
        tx.insert(table, new)
    assert put(table, Row("a", 1)) == 2, "an equal row is a different object"
    drop(table, "a")
    assert put(table, row) == 4, "a deleted row may be inserted again"


def test_modify_merges_with_the_existing_row() -> None:
    table = a_table()
    with write(table) as tx:
        assert tx.modify(table, Row("a", 1), add) is None
        old = tx.modify(table, Row("a", 2), add)
        assert old is not None
        assert old.row.value == 1
        assert tx.modify(table, Row("a", 4), add) is not None
    assert rows_of(table.snapshot()) == {"a": 7}
    assert table.snapshot().revision == 3
    with pytest.raises(KeyChangedError, match="merging the row 'a' gave it another key, 'b'"), write(table) as tx:
        tx.modify(table, Row("a", 1), lambda _old, _new: Row("b"))
    assert rows_of(table.snapshot()) == {"a": 7}


def test_modify_updates_a_secondary_index() -> None:
    table = a_table()
    put(table, Row("a", 1, ("red", "blue")))
    with write(table) as tx:
        tx.modify(table, Row("a", 1, ("blue", "green")), add)
        found = {tag: [entry.row.value for entry in tx.find(table, "tag", tag)] for tag in ("red", "blue", "green")}
    assert found == {"red": [], "blue": [2], "green": [2]}
    after = table.snapshot()
    assert {tag: [entry.row.value for entry in after.find("tag", tag)] for tag in found} == found


def test_the_revision_advances_within_the_transaction() -> None:
    table = a_table()
    with write(table) as tx:
        assert tx.revision(table) == 0
        tx.insert(table, Row("a"))
        tx.insert(table, Row("a"))
        assert tx.delete(table, "nobody") is None
        assert tx.revision(table) == 2
        assert table.snapshot().revision == 0
        tx.delete(table, "a")
    assert table.snapshot().revision == 3


def test_commit_applies_and_abort_discards_changes() -> None:
    table = a_table()
    put(table, Row("a", 1, ("red",)))
    before = table.snapshot()
    with write(table) as tx:
        tx.insert(table, Row("a", 2, ("blue",)))
        tx.insert(table, Row("b", 3, ("red",)))
        tx.abort()
        tx.abort()
    with pytest.raises(ZeroDivisionError), write(table) as tx:
        tx.delete(table, "a")
        _ = 1 // 0
    assert table.snapshot() is before
    assert [entry.row.value for entry in before.find("tag", "red")] == [1]
    with write(table) as tx:
        pass
    assert table.snapshot() is before, "nothing was written"
    assert put(table, Row("b")) == 2
    tx.abort()
    assert len(table.snapshot()) == 2, "aborting an ended transaction has no effect"


def test_an_ended_transaction_is_refused() -> None:
    table = a_table()
    with write(table) as tx:
        tx.abort()
        with pytest.raises(TransactionOverError, match="rows: the transaction was committed or aborted"):
            tx.insert(table, Row("a"))
    with write(table) as tx:
        tx.insert(table, Row("a"))
    with pytest.raises(TransactionOverError):
        tx.get(table, "a")


def test_compare_and_swap_requires_the_revision() -> None:
    table = a_table()
    first = put(table, Row("a", 1))
    with write(table) as tx:
        old = tx.compare_and_swap(table, first, Row("a", 2))
        assert (old.row.value, old.revision) == (1, first)
    with (
        pytest.raises(RevisionChangedError, match="the row 'a' is of revision 2, not 1") as changed,
        write(table) as tx,
    ):
        tx.compare_and_swap(table, first, Row("a", 3))
    assert changed.value.entry == table.snapshot().get("a")
    with pytest.raises(RowNotFoundError, match="no row 'b'"), write(table) as tx:
        tx.compare_and_swap(table, first, Row("b"))
    assert table.snapshot().revision == 2


def test_a_failed_comparison_changes_nothing() -> None:
    table = a_table()
    first = put(table, Row("a", 1), Row("b", 1, ("red",)))
    before, watches = table.snapshot(), (table.watch(), table.watch_key("a"), table.watch_index("tag", "red"))
    with write(table) as tx:
        with pytest.raises(RevisionChangedError):
            tx.compare_and_swap(table, first, Row("a", 2))
        with pytest.raises(RevisionChangedError):
            tx.compare_and_delete(table, 1, "b")
        with pytest.raises(RowNotFoundError):
            tx.compare_and_swap(table, 1, Row("c"))
        assert tx.revision(table) == first
    assert table.snapshot() is before
    assert [watch.fired for watch in watches] == [False, False, False]


def test_compare_and_delete_requires_the_revision() -> None:
    table = a_table()
    put(table, Row("a", 1), Row("b", 2))
    with pytest.raises(RevisionChangedError) as changed, write(table) as tx:
        tx.compare_and_delete(table, 1, "b")
    assert changed.value.entry.revision == 2
    with write(table) as tx:
        old = tx.compare_and_delete(table, 2, "b")
        assert old is not None
        assert old.row.value == 2
        assert tx.compare_and_delete(table, 2, "b") is None
    assert rows_of(table.snapshot()) == {"a": 1}
    assert table.snapshot().revision == 3


def test_a_transaction_reads_its_own_writes() -> None:
    table = a_table()
    put(table, Row("a", 1, ("red",)), Row("b", 2, ("red",)), Row("c", 3))
    with write(table) as tx:
        tx.insert(table, Row("a", 4, ("red",)))
        tx.delete(table, "b")
        tx.insert(table, Row("d", 5, ("red",)))
        tx.insert(table, Row("d", 6, ("red",)))
        assert [entry.row.value for entry in tx.find(table, "tag", "red")] == [4, 6]
        assert [(entry.row.key, entry.revision) for entry in tx.entries(table)] == [("c", 3), ("a", 4), ("d", 7)]
        assert tx.get(table, "b") is None
        d = tx.get(table, "d")
        assert d is not None
        assert (d.row.value, d.created) == (6, 6)
        assert rows_of(table.snapshot()) == {"a": 1, "b": 2, "c": 3}
    assert [(entry.row.key, entry.revision) for entry in table.snapshot().entries()] == [("c", 3), ("a", 4), ("d", 7)]
    assert [entry.row.value for entry in table.snapshot().find("tag", "red")] == [4, 6]


def test_a_row_deleted_and_inserted_in_one_transaction_is_new() -> None:
    table = a_table()
    put(table, Row("a", 1, ("red",)))
    with write(table) as tx:
        tx.delete(table, "a")
        tx.insert(table, Row("a", 2, ("red",)))
    entry = table.snapshot().get("a")
    assert entry is not None
    assert (entry.row.value, entry.revision, entry.created) == (2, 3, 3)
    assert table.snapshot().find("tag", "red") == (entry,)
    with write(table) as tx:
        tx.insert(table, Row("b", tags=("red",)))
        tx.delete(table, "b")
    assert table.snapshot().find("tag", "red") == (entry,)
    assert table.snapshot().revision == 5


def test_delete_all_removes_every_row() -> None:
    table = a_table()
    with write(table) as tx:
        assert tx.delete_all(table) == 0
    put(table, Row("a", tags=("red",)), Row("b"))
    with table.changes("reader") as stream, write(table) as tx:
        stream.next()
        tx.insert(table, Row("c"))
        tx.insert(table, Row("a"))
        assert tx.delete_all(table) == 3
        assert list(tx.entries(table)) == []
    assert len(table.snapshot()) == 0
    assert table.snapshot().find("tag", "red") == ()
    assert table.snapshot().revision == 7


def test_duplicate_unique_values_are_refused() -> None:
    table = a_table()
    put(table, Row("a", seat=1), Row("b", seat=2), Row("c"), Row("d"))
    with pytest.raises(DuplicateKeyError, match="'c' has 1 for seat, as has 'a'") as taken, write(table) as tx:
        tx.insert(table, Row("c", seat=1))
    assert taken.value.key == "a"
    with write(table) as tx:
        tx.insert(table, Row("a", 1, seat=1))
        tx.insert(table, Row("a", seat=3))
        tx.insert(table, Row("c", seat=1))
        tx.delete(table, "b")
        tx.insert(table, Row("d", seat=2))
        with pytest.raises(DuplicateKeyError, match="as has 'd'"):
            tx.insert(table, Row("b", seat=2))
        assert tx.get(table, "b") is None, "a refused row changes nothing"
    assert [[entry.row.key for entry in table.snapshot().find("seat", seat)] for seat in (1, 2, 3)] == [
        ["c"],
        ["d"],
        ["a"],
    ]


def test_tables_outside_of_the_transaction_are_not_writable() -> None:
    mine, other = a_table("mine"), a_table("other")
    with write(mine) as tx:
        tx.insert(mine, Row("a"))
        with pytest.raises(TableNotLockedError, match="other: the transaction was not opened for this table"):
            tx.insert(other, Row("a"))
        with write(other) as inner:
            inner.insert(other, Row("b"))
            with pytest.raises(TableNotLockedError):
                tx.insert(other, Row("a"))
    assert rows_of(mine.snapshot()) == {"a": 0}
    assert rows_of(other.snapshot()) == {"b": 0}


def test_a_table_has_one_writer_at_a_time() -> None:
    first, second, third = a_table("first"), a_table("second"), a_table("third")
    with write(second) as tx:
        with (
            pytest.raises(TableLockedError, match="second: another transaction is writing to it"),
            write(first, second, third),
        ):
            raise AssertionError("the transaction was entered")
        for free in (first, third):
            put(free, Row("a"))
        tx.insert(second, Row("a"))
    put(second, Row("b"))
    assert [len(table.snapshot()) for table in (first, second, third)] == [1, 2, 1]


def test_an_entered_transaction_is_not_entered_again() -> None:
    table = a_table()
    with write(table) as tx:
        tx.insert(table, Row("a"))
        with pytest.raises(TableLockedError):
            tx.__enter__()
        tx.insert(table, Row("b"))
    assert rows_of(table.snapshot()) == {"a": 0, "b": 0}


def test_all_tables_of_a_transaction_change_together() -> None:
    left, right = a_table("left"), a_table("right")
    with write(left, right) as tx:
        tx.insert(left, Row("a"))
        tx.insert(right, Row("a"))
    assert (left.snapshot().revision, right.snapshot().revision) == (1, 1)
    with pytest.raises(RowNotFoundError), write(left, right) as tx:
        tx.insert(left, Row("b"))
        tx.compare_and_swap(right, 1, Row("b"))
    assert (left.snapshot().revision, right.snapshot().revision) == (1, 1)


def test_exceptions_of_callers_functions_change_nothing() -> None:
    def fussy(row: Row) -> str:
        return row.key if row.value else str(1 // 0)

    table = Table("fussy", fussy)

    def refuse(tx: Transaction) -> None:
        with pytest.raises(ZeroDivisionError):
            tx.insert(table, Row("a"))
        with pytest.raises(ZeroDivisionError):
            tx.modify(table, Row("a", 2), lambda _old, _new: Row("a"))

    with write(table) as tx:
        tx.insert(table, Row("a", 1))
        refuse(tx)
    assert [entry.row.value for entry in table.snapshot().entries()] == [1]
    assert table.snapshot().revision == 1


def test_an_unknown_index_raises() -> None:
    table: Table[str, Row] = Table("rows", key_of)
    put(table, Row("a"))
    with pytest.raises(KeyError, match="tag"):
        table.snapshot().find("tag", "red")
    with pytest.raises(KeyError, match="tag"), write(table) as tx:
        tx.find(table, "tag", "red")
    with pytest.raises(KeyError, match="tag"):
        table.watch_index("tag", "red")


class Recorder:
    """A table that only records the calls of a transaction."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def lock(self, writer: object) -> None:
        self.log.append(f"lock {self.name}")

    def commit(self) -> None:
        self.log.append(f"commit {self.name}")

    def notify(self) -> None:
        self.log.append(f"notify {self.name}")

    def release(self) -> None:
        self.log.append(f"release {self.name}")


def test_a_transaction_commits_notifies_and_releases_in_this_order() -> None:
    log: list[str] = []
    with write(Recorder("a", log), Recorder("b", log)):
        log.append("body")
    assert log == [
        f"{step} {name}".removesuffix(" ")
        for step, name in zip(
            ["lock", "lock", "body", "commit", "commit", "notify", "notify", "release", "release"],
            ["a", "b", "", "a", "b", "a", "b", "a", "b"],
            strict=True,
        )
    ]


def test_aborting_an_ended_transaction_does_not_affect_another() -> None:
    table = a_table()
    with write(table) as over:
        over.insert(table, Row("a"))
    with write(table) as tx:
        over.abort()
        tx.insert(table, Row("b"))
    assert rows_of(table.snapshot()) == {"a": 0, "b": 0}
