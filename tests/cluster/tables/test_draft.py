"""Drafts: the uncommitted changes of a transaction to one table."""

import pytest

from tests.cluster.tables.samples import Row, key_of, seats
from wharfinger.cluster.tables.contents import Contents
from wharfinger.cluster.tables.draft import Draft
from wharfinger.cluster.tables.entry import GRAVE
from wharfinger.cluster.tables.errors import DuplicateKeyError, SameRowError
from wharfinger.cluster.tables.snapshot import Index

INDEXES = {"tag": Index[Row](lambda row: row.tags), "seat": Index(seats, unique=True)}


def on(*rows: Row) -> Draft[str, Row]:
    """Return a draft of a table with these rows. Their revisions are 1, 2 and so on."""
    contents = Contents[str, Row](INDEXES, 0)
    draft = Draft("rows", contents.snapshot, key_of, INDEXES)
    for row in rows:
        draft.put(row)
    contents.commit(draft)
    return Draft("rows", contents.snapshot, key_of, INDEXES)


def remove(draft: Draft[str, Row], key: str) -> None:
    old = draft.get(key)
    assert old is not None
    draft.remove(old)


def test_own_versions_are_in_the_order_of_revisions() -> None:
    draft = on(Row("a"), Row("b"))
    for key in "cabac":
        draft.put(Row(key))
    remove(draft, "b")
    assert [(key, version.revision, version.ended == GRAVE) for key, version in draft.own.items()] == [
        ("a", 6, False),
        ("c", 7, False),
        ("b", 8, True),
    ]
    assert draft.revision == 8


def test_an_ended_version_is_noted_once() -> None:
    draft = on(Row("a", tags=("red",)), Row("b"))
    draft.put(Row("a", 1, tags=("blue",)))
    draft.put(Row("a", 2))
    remove(draft, "a")
    draft.put(Row("a", 3))
    draft.put(Row("new"))
    draft.put(Row("new", 1))
    assert [(version.key, version.revision, values) for version, values in draft.ended] == [("a", 1, (("red",), ()))]


def test_values_are_found_in_new_and_existing_rows() -> None:
    draft = on(Row("a", tags=("red",)), Row("b", tags=("red",)), Row("c", tags=("red",)))
    draft.put(Row("d", tags=("red",)))
    draft.put(Row("b", 1, tags=("red",)))
    draft.put(Row("c", 1, tags=("blue",)))
    draft.put(Row("d", 1, tags=("red", "red")))
    assert [(version.key, version.revision) for version in draft.find("tag", "red")] == [("a", 1), ("b", 5), ("d", 7)]
    assert [version.key for version in draft.find("tag", "blue")] == ["c"]
    remove(draft, "c")
    assert draft.find("tag", "blue") == ()


def test_a_refused_row_changes_nothing() -> None:
    draft = on(Row("a", seat=1), Row("b", seat=2))
    kept = draft.get("b")
    assert kept is not None
    with pytest.raises(DuplicateKeyError):
        draft.put(Row("b", seat=1))
    with pytest.raises(SameRowError):
        draft.put(kept.row)
    assert (draft.own, draft.ended, draft.values, draft.revision) == ({}, [], {}, 2)
    assert draft.get("b") is kept


def test_a_unique_value_may_change_rows_within_a_transaction() -> None:
    draft = on(Row("a", seat=1), Row("b", seat=2))
    draft.put(Row("a"))
    draft.put(Row("b", seat=1))
    draft.put(Row("a", seat=2))
    assert [[version.key for version in draft.find("seat", seat)] for seat in (1, 2)] == [["b"], ["a"]]


def test_failing_index_functions_change_nothing() -> None:
    indexes = {"odd": Index[Row](lambda row: [1 // row.value])}
    draft = Draft("rows", Contents[str, Row](indexes, 0).snapshot, key_of, indexes)
    with pytest.raises(ZeroDivisionError):
        draft.put(Row("a"))
    assert (draft.own, draft.revision) == ({}, 0)
