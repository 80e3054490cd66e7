"""The order and rate of refreshes."""

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.records import Owner, Record
from wharfinger.cluster.reconciler.refreshes import Refreshes

INFINITY = float("inf")


def a_record(key: int, at: float = 0.0) -> Record[int, Row]:
    return Record(key, Row(key), key, key, Owner("a"), at=at)


def take_allowed(refreshes: Refreshes[int, Row], now: float) -> list[int]:
    keys = []
    while (record := refreshes.take_allowed(now)) is not None:
        refreshes.withdraw(record)
        keys.append(record.key)
    return keys


def test_refreshes_are_limited_per_second_with_a_burst_after_idling() -> None:
    refreshes = Refreshes[int, Row](0, 4)
    for key in range(20):
        refreshes.ask(a_record(key))
    assert refreshes.next_at() <= 10
    assert take_allowed(refreshes, 10) == [0, 1, 2, 3, 4]
    assert refreshes.next_at() == 10.25
    assert take_allowed(refreshes, 10.2) == []
    assert take_allowed(refreshes, 10.25) == [5]
    assert take_allowed(refreshes, 10.75) == [6, 7]
    assert take_allowed(refreshes, 1000) == [8, 9, 10, 11, 12]


def test_nothing_is_planned_without_requests() -> None:
    refreshes = Refreshes[int, Row](0, 4)
    refreshes.done(a_record(1))
    assert (refreshes.next_at(), refreshes.oldest(1e9), take_allowed(refreshes, 0)) == (INFINITY, None, [])


def test_the_row_done_longest_ago_is_refreshed_first() -> None:
    refreshes = Refreshes[int, Row](60, 4)
    for key, at in ((2, 0.0), (1, 10.0)):
        refreshes.done(a_record(key, at))
    assert (refreshes.next_at(), refreshes.oldest(59.9)) == (60, None)
    oldest = refreshes.oldest(60)
    assert oldest is not None
    assert oldest.key == 2
    refreshes.withdraw(oldest)
    assert (refreshes.next_at(), refreshes.oldest(60)) == (70, None)


def test_the_earlier_of_request_and_age_is_next() -> None:
    refreshes = Refreshes[int, Row](60, 1)
    refreshes.done(a_record(1, at=5))
    refreshes.ask(a_record(2))
    assert take_allowed(refreshes, 10) == [2]
    refreshes.ask(a_record(3))
    assert refreshes.next_at() == 10
    assert take_allowed(refreshes, 10) == [3]
    refreshes.ask(a_record(4))
    assert refreshes.next_at() == 11
    refreshes.withdraw(a_record(4))
    assert refreshes.next_at() == 65
