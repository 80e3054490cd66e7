"""Whose turn it is."""

from dataclasses import replace

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Owner, Place, Record
from wharfinger.cluster.reconciler.shares import Operation
from wharfinger.cluster.reconciler.turns import Turns

RowTurns = Turns[int, Row]
OPTIONS = ReconcilerOptions(concurrency=16, owner_concurrency=8)


def turns_of(owner_concurrency: int = 8) -> RowTurns:
    return RowTurns(replace(OPTIONS, owner_concurrency=owner_concurrency))


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


def begun(turns: RowTurns, most: int = 100, now: float = 0.0) -> list[tuple[Operation[int, Row], int]]:
    """Operations that begin now and do not end, with their keys."""
    operations: list[tuple[Operation[int, Row], int]] = []
    while len(operations) < most and (taken := turns.take(now)) is not None:
        operation, [record] = taken
        assert record.place is Place.RUNNING
        operations.append((operation, record.key))
    return operations


def taken(turns: RowTurns, most: int = 100) -> list[int]:
    """The keys that are taken one after the other, each done at once."""
    keys: list[int] = []
    while len(keys) < most and (one := begun(turns, 1)):
        [(operation, key)] = one
        turns.done(operation, failed=False)
        keys.append(key)
    return keys


def test_owners_take_turns_and_each_has_its_order() -> None:
    turns, (a, b) = turns_of(), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11, 12)
    assert taken(turns) == [1, 11, 2, 12, 3, 4]
    assert not turns.ready


def test_an_owner_has_so_many_operations_at_most() -> None:
    turns, (a, b) = turns_of(2), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11)
    operations = begun(turns)
    assert [key for _, key in operations] == [1, 11, 2]
    assert not turns.ready
    due(turns, a, 5)
    fresh(turns, a, 6)
    assert not turns.ready
    turns.done(operations[0][0], failed=False)
    assert turns.fresh_ready
    [(third, key)] = begun(turns)
    assert key == 3
    for operation in (third, operations[2][0]):
        turns.done(operation, failed=False)
    assert sorted(taken(turns)) == [4, 5, 6]


def test_neither_changes_nor_retries_keep_the_other_waiting() -> None:
    turns, (a,) = turns_of(), owners("a")
    fresh(turns, a, *range(100))
    due(turns, a, *range(100, 200))
    assert taken(turns, 8) == [0, 1, 2, 100, 3, 4, 5, 101]
    turns, (a,) = turns_of(), owners("a")
    due(turns, a, 1, 2)
    assert taken(turns) == [1, 2]


def test_what_leaves_its_line_is_not_taken() -> None:
    turns, (a, b) = turns_of(), owners("a", "b")
    first, second = fresh(turns, a, 1, 2)
    [other] = fresh(turns, b, 11)
    late = Record(3, Row(3), 3, 3, b)
    turns.add_due(late)
    for record in (first, other, late):
        turns.remove(record)
    resting = Record(4, Row(4), 4, 4, a)
    turns.remove(resting)
    assert taken(turns) == [second.key]


def test_changes_by_the_batch_are_those_of_one_owner_and_one_operation() -> None:
    turns, (a, b) = turns_of(1), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11)
    due(turns, b, 12)
    batches = [[record.key for record in batch[1]] for _ in range(2) if (batch := turns.take(0.0, 3)) is not None]
    assert batches == [[1, 2, 3], [11]]
    assert turns.take(0.0, 3) is None


def test_an_owner_whose_operations_are_slow_takes_fewer_turns_than_others() -> None:
    turns, (bad, good) = turns_of(), owners("bad", "good")
    fresh(turns, bad, *range(100))
    for operation, _ in begun(turns, 3):
        turns.tick(OPTIONS.slow_s)
        turns.done(operation, failed=True)
    assert bad.halvings == 3
    fresh(turns, good, *range(100, 200))
    assert [key // 100 for key in taken(turns, 8)] == [1, 1, 1, 0, 1, 0, 1, 0]


def test_an_owner_that_failed_slowly_and_succeeds_again_has_its_whole_share_back() -> None:
    turns, (a,) = turns_of(4), owners("a")
    fresh(turns, a, *range(20))
    slow = begun(turns)
    turns.tick(OPTIONS.slow_s)
    assert len(slow) == 4
    assert not begun(turns)
    for operation, _ in slow:
        turns.done(operation, failed=True)
    [(again, _)] = begun(turns)
    turns.done(again, failed=False)
    assert len(begun(turns)) == 4
