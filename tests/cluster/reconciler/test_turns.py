"""The order in which owners get their turns, the limits on concurrent operations, and late operations, which are moved to one
of the places for slow operations or are cut off.
"""

from dataclasses import replace

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Owner, Place, Record, Work
from wharfinger.cluster.reconciler.turns import DEBT, Lane, Turns

RowTurns = Turns[int, Row]
OPTIONS = ReconcilerOptions(concurrency=100)
LATE = OPTIONS.patience_s


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


def works(turns: RowTurns, most: int = 100, now: float = 0.0) -> list[Work[int, Row]]:
    """Take up to ``most`` pieces of work, without finishing them, and return them."""
    taken: list[Work[int, Row]] = []
    while len(taken) < most and (one := turns.take(now)) is not None:
        work, [record] = one
        assert record.place is Place.RUNNING
        taken.append(work)
    return taken


def keys(taken: list[Work[int, Row]]) -> list[int]:
    return [key for work in taken for key in work.keys]


def done(turns: RowTurns, most: int = 100, now: float = 0.0, *, failed: bool = False) -> list[int]:
    """Take up to ``most`` pieces of work, finish each immediately, and return their keys."""
    taken: list[int] = []
    while len(taken) < most and (one := turns.take(now)) is not None:
        turns.done(one[0], now, failed=failed)
        taken += one[0].keys
    return taken


# --- turns ---------------------------------------------------------------------------------------------------------------------


def test_owners_alternate_and_each_retains_its_order() -> None:
    turns, (a, b) = RowTurns(OPTIONS), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11, 12)
    assert done(turns) == [1, 11, 2, 12, 3, 4]
    assert not turns.ready


def test_the_workers_of_an_owner_are_limited() -> None:
    turns, (a, b) = RowTurns(replace(OPTIONS, owner_concurrency=2)), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11)
    first = works(turns)
    assert keys(first) == [1, 11, 2]
    assert not turns.ready
    fresh(turns, a, 6)
    assert not turns.ready
    turns.done(first[0], 0.1, failed=False)
    assert turns.changes_waiting
    assert keys(works(turns)) == [3]


def test_retries_of_an_owner_leave_a_worker_for_first_attempts() -> None:
    turns, (a,) = RowTurns(replace(OPTIONS, owner_concurrency=4)), owners("a")
    due(turns, a, 1, 2, 3, 4, 5)
    assert keys(works(turns)) == [1, 2, 3]
    fresh(turns, a, 6)
    assert keys(works(turns)) == [6]


def test_changes_and_retries_do_not_block_each_other() -> None:
    turns, (a,) = RowTurns(OPTIONS), owners("a")
    fresh(turns, a, *range(100))
    due(turns, a, *range(100, 200))
    assert done(turns, 8) == [0, 1, 2, 100, 3, 4, 5, 101]
    turns, (a,) = RowTurns(OPTIONS), owners("a")
    due(turns, a, 1, 2)
    assert done(turns) == [1, 2]


def test_the_owner_that_used_the_least_time_goes_first() -> None:
    turns, (slow, quick) = RowTurns(OPTIONS), owners("slow", "quick")
    fresh(turns, slow, *range(10))
    fresh(turns, quick, *range(100, 200))
    for _ in range(2):
        [work] = works(turns, 1)
        turns.done(work, 1.5 if work.owner is slow else 0.01, failed=False)
    assert all(key >= 100 for key in done(turns, 50, now=2.0))


def test_a_failure_counts_as_a_whole_turn() -> None:
    turns, (bad, good) = RowTurns(OPTIONS), owners("bad", "good")
    fresh(turns, bad, *range(10))
    assert done(turns, 1, failed=True) == [0]
    fresh(turns, good, 100, 101, 102)
    assert done(turns, 4) == [100, 101, 102, 1]


def test_used_time_is_forgiven_eventually() -> None:
    turns, (bad, good) = RowTurns(OPTIONS), owners("bad", "good")
    fresh(turns, bad, *range(100))
    done(turns, 50, failed=True)
    fresh(turns, good, *range(1000, 1100))
    now, taken = 0.0, 0
    while True:
        work, _ = turns.take(now) or (None, None)
        assert work is not None
        if work.owner is bad:
            break
        now, taken = now + 1.0, taken + 1
        turns.done(work, now, failed=False)
    assert 0 < taken <= 2 * DEBT * OPTIONS.patience_s


def test_a_new_owner_precedes_waiting_ones() -> None:
    turns, many = RowTurns(replace(OPTIONS, concurrency=1)), owners(*(str(number) for number in range(50)))
    for number, owner in enumerate(many):
        fresh(turns, owner, number, number + 100)
    done(turns, 60, failed=True)
    [new] = owners("new")
    fresh(turns, new, 1000)
    assert done(turns, 1) == [1000]


def test_a_removed_record_is_not_taken() -> None:
    turns, (a, b) = RowTurns(OPTIONS), owners("a", "b")
    first, second = fresh(turns, a, 1, 2)
    [other] = fresh(turns, b, 11)
    late = Record(3, Row(3), 3, 3, b)
    turns.add_due(late)
    for record in (first, other, late):
        turns.remove(record)
    resting = Record(4, Row(4), 4, 4, a)
    turns.remove(resting)
    assert done(turns) == [second.key]


def test_a_batch_of_changes_has_one_owner() -> None:
    turns, (a, b) = RowTurns(replace(OPTIONS, owner_concurrency=2)), owners("a", "b")
    fresh(turns, a, 1, 2, 3, 4)
    fresh(turns, b, 11)
    due(turns, b, 12)
    batches = [turns.take(0.0, 3) for _ in range(4)]
    assert [(one[0].keys, one[0].retry) for one in batches if one] == [
        ((1, 2, 3), False),
        ((11,), False),
        ((12,), True),
    ]
    assert turns.places.ordinary == 3
    for _ in range(3):
        assert batches[0] is not None
        turns.done(batches[0][0], 0.0, failed=False)
    assert turns.places.ordinary == 2
    assert done(turns) == [4]


# --- places --------------------------------------------------------------------------------------------------------------------


def test_a_late_operation_releases_its_place() -> None:
    turns, (a, b) = RowTurns(replace(OPTIONS, concurrency=2)), owners("a", "b")
    fresh(turns, a, 1, 2)
    fresh(turns, b, 11)
    hanging = works(turns)
    assert len(hanging) == 2
    assert turns.late_at() == LATE
    assert turns.tick(LATE - 0.1) == []
    assert not turns.ready
    assert turns.tick(LATE) == []
    assert (turns.places.ordinary, turns.places.slow) == (0, 2)
    assert keys(works(turns, now=LATE)) == [2]
    for work in hanging:
        turns.done(work, 100.0, failed=True)
    assert turns.places.slow == 0


def test_retries_of_a_slow_owner_use_slow_places_until_one_succeeds_in_time() -> None:
    turns, (a,) = RowTurns(replace(OPTIONS, slow_concurrency=1)), owners("a")
    fresh(turns, a, 1)
    [hanging] = works(turns)
    turns.tick(LATE)
    turns.done(hanging, 120.0, failed=True)
    due(turns, a, 1, 2)
    [retry] = works(turns, now=120.0)
    assert (retry.slow, turns.places.ordinary, turns.places.slow) == (True, 0, 1)
    assert turns.late_at() == float("inf")
    turns.done(retry, 125.0, failed=False)
    [retry] = works(turns, now=125.0)
    assert retry.slow
    turns.done(retry, 125.5, failed=False)
    due(turns, a, 3)
    [retry] = works(turns, now=126.0)
    assert not retry.slow


def test_shares_shrink_as_operations_hang() -> None:
    turns, (a,) = RowTurns(replace(OPTIONS, owner_concurrency=8)), owners("a")
    shares: list[int] = []
    fresh(turns, a, *range(100))
    now = 0.0
    for _ in range(4):
        [first] = works(turns, 1, now)
        now += LATE
        turns.tick(now)
        turns.done(first, now, failed=True)
        others = works(turns, now=now)
        shares.append(len(others))
        for work in others:
            turns.done(work, now, failed=True)
    assert shares == [4, 2, 2, 2]


def test_if_too_many_are_late_the_owner_with_most_of_them_loses_one() -> None:
    turns, (a, b) = RowTurns(replace(OPTIONS, slow_concurrency=3)), owners("a", "b")
    fresh(turns, b, 11)
    [of_b] = works(turns, now=0.0)
    fresh(turns, a, 1, 2, 3)
    of_a = works(turns, now=0.5)
    assert turns.tick(LATE) == []
    assert turns.tick(LATE + 0.5) == [of_a[0]]
    assert (of_a[0].cut, of_b.cut) == (True, False)
    turns.done(of_a[0], LATE + 0.5, failed=True)
    assert turns.places.slow == 3


def test_a_retry_that_began_slow_is_not_cut_off() -> None:
    turns, (a, b) = RowTurns(replace(OPTIONS, slow_concurrency=1)), owners("a", "b")
    a.late = 1
    due(turns, a, 1)
    [retry] = works(turns)
    fresh(turns, b, 11)
    [first] = works(turns)
    assert turns.tick(LATE) == [first]
    assert not retry.cut


# --- lanes ---------------------------------------------------------------------------------------------------------------------


def test_the_heap_of_a_lane_is_bounded() -> None:
    lane, (a, b) = Lane[int, Row](), owners("a", "b")
    lane.put(b)
    for number in range(10_000):
        a.used = float(10_000 - number)
        lane.put(a)
    assert len(lane._heap) < 100
    assert lane.first() is b
    lane.drop(b)
    assert lane.first() is a
    assert "a" in lane
    lane.drop(a)
    assert not lane
