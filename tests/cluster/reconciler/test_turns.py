"""Whose turn it is."""

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.records import Owner, Place, Record
from wharfinger.cluster.reconciler.turns import Turns

RowTurns = Turns[int, Row]


def owners(*names: str) -> list[Owner[int, Row]]:
    return [Owner(name) for name in names]


def fresh(turns: RowTurns, owner: Owner[int, Row], *keys: int) -> list[Record[int, Row]]:
    records = [Record(key, Row(key), key, key, owner) for key in keys]
    for record in records:
        turns.add_fresh(record)
    return records


def due(turns: RowTurns, owner: Owner[int, Row], *keys: int) -> None:
    for key in keys:
        turns.add_due(Record(key, Row(key), key, key, owner))


def taken(turns: RowTurns, most: int = 100, *, done: bool = True) -> list[int]:
    keys: list[int] = []
    while len(keys) < most and (record := turns.take()) is not None:
        assert record.place is Place.RUNNING
        keys.append(record.key)
        if done:
            turns.done(record.owner)
    return keys


def test_owners_take_turns_and_each_has_its_order() -> None:
    turns, (a, b) = RowTurns(8), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11, 12)
    assert taken(turns) == [1, 11, 2, 12, 3, 4]
    assert not turns.ready


def test_an_owner_has_so_many_workers_at_most() -> None:
    turns, (a, b) = RowTurns(2), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11)
    assert taken(turns, done=False) == [1, 11, 2]
    assert not turns.ready
    due(turns, a, 5)
    fresh(turns, a, 6)
    assert not turns.ready
    turns.done(a)
    assert turns.fresh_ready
    assert taken(turns, done=False) == [3]
    turns.done(a)
    turns.done(a)
    assert sorted(taken(turns)) == [4, 5, 6]


def test_neither_changes_nor_retries_keep_the_other_waiting() -> None:
    turns, (a,) = RowTurns(8), owners("a")
    fresh(turns, a, *range(100))
    due(turns, a, *range(100, 200))
    assert taken(turns, 8) == [0, 1, 2, 100, 3, 4, 5, 101]
    turns, (a,) = RowTurns(8), owners("a")
    due(turns, a, 1, 2)
    assert taken(turns) == [1, 2]


def test_what_leaves_its_line_is_not_taken() -> None:
    turns, (a, b) = RowTurns(8), owners("a", "b")
    first, second = fresh(turns, a, 1, 2)
    [other] = fresh(turns, b, 11)
    late = Record(3, Row(3), 3, 3, b)
    turns.add_due(late)
    for record in (first, other, late):
        turns.remove(record)
    resting = Record(4, Row(4), 4, 4, a)
    turns.remove(resting)
    assert taken(turns) == [second.key]


def test_changes_by_the_batch_are_those_of_one_owner() -> None:
    turns, (a, b) = RowTurns(2), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11)
    batches = [[record.key for record in turns.take_fresh(3)] for _ in range(3)]
    assert batches == [[1, 2, 3], [11], []]
    assert turns.take_due() is None
    due(turns, b, 12)
    late = turns.take_due()
    assert late is not None
    assert late.key == 12
