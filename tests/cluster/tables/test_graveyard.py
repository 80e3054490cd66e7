"""Stored deletions (graves): for which readers of changes they are stored, and how many are stored at most."""

from wharfinger.cluster.tables.entry import FORGOTTEN, GRAVE, Version
from wharfinger.cluster.tables.graveyard import NAMED, Graveyard

Yard = Graveyard[str, str]


def grave(key: str, revision: int) -> Version[str, str]:
    return Version(key, "row", revision, 1, GRAVE)


def test_nothing_is_stored_without_readers() -> None:
    yard, one = Yard(), grave("a", 1)
    assert not yard.bury(one)
    assert (len(yard), one.ended) == (0, FORGOTTEN)


def test_a_grave_is_stored_until_the_slowest_tracker_has_read_it() -> None:
    yard = Yard()
    slow, fast = yard.join("slow", 0), yard.join("fast", 0)
    one, two = grave("a", 1), grave("b", 2)
    assert yard.bury(one)
    assert yard.bury(two)
    fast.mark = 2
    assert yard.collect() == 0
    slow.mark = 1
    assert yard.collect() == 1
    assert (one.ended, two.ended) == (FORGOTTEN, GRAVE)
    assert yard.leave(slow) == 1
    assert (two.ended, len(yard)) == (FORGOTTEN, 0)


def test_a_tracker_that_joined_after_a_deletion_does_not_retain_it() -> None:
    yard = Yard()
    early = yard.join("early", 0)
    yard.bury(grave("a", 1))
    late = yard.join("late", 1)
    assert (early.needs, late.needs, late.mark) == (0, 1, 0)
    assert yard.leave(early) == 1
    assert yard.leave(early) == 0


def test_a_recreated_row_removes_its_grave() -> None:
    yard, one = Yard(), grave("a", 1)
    yard.join("reader", 0)
    yard.bury(one)
    assert yard.revive("b") == 0
    assert yard.revive("a") == 1
    assert (one.ended, len(yard)) == (FORGOTTEN, 0)


def test_only_the_trackers_furthest_behind_expire() -> None:
    yard = Yard(limit=2)
    readers = {name: yard.join(name, 0) for name in ("one", "two", "ahead")}
    readers["ahead"].mark = 1
    for revision, key in enumerate("abc", start=1):
        yard.bury(grave(key, revision))
    assert yard.collect() == 1
    assert [name for name, reader in readers.items() if reader.expired] == ["one", "two"]
    assert yard.trackers == (readers["ahead"],)
    assert yard.expired == ("one", "two")
    for revision, key in enumerate("defg", start=4):
        yard.bury(grave(key, revision))
    assert yard.collect() == 6
    assert [len(yard), len(yard.trackers)] == [0, 0]


def test_only_the_last_expired_names_are_stored() -> None:
    yard = Yard(limit=0)
    for number in range(NAMED + 5):
        yard.join(f"r{number}", number)
        yard.bury(grave("a", number + 1))
        yard.collect()
    assert yard.expired == tuple(f"r{number}" for number in range(5, NAMED + 5))
