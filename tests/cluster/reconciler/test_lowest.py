"""The collection that tracks the lowest of a changing set of revisions."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.reconciler.lowest import Lowest


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=200))
def test_lowest_agrees_with_a_set(steps: list[tuple[bool, int]]) -> None:
    lowest, held = Lowest[str](), set[int]()
    for add, revision in steps:
        if add:
            lowest.add(revision, str(revision))
            held.add(revision)
        else:
            lowest.discard(revision)
            held.discard(revision)
        assert (len(lowest), lowest.lowest()) == (len(held), min(held, default=0))
        assert lowest.by_revision() == [str(revision) for revision in sorted(held)]


def test_discarded_entries_do_not_accumulate() -> None:
    lowest = Lowest[int]()
    lowest.add(1, 1)
    for revision in range(2, 10_000):
        lowest.add(revision, revision)
        lowest.discard(revision)
    assert len(lowest._heap or ()) < 100
    assert lowest.lowest() == 1


def test_holds_finds_any_of_some_keys_up_to_a_revision() -> None:
    held: Lowest[str] = Lowest()
    held.add(3, "a")
    held.add(7, "b")
    asked = [(2, None), (3, None), (3, {"a"}), (6, {"b"}), (7, {"b"}), (9, {"c"})]
    assert [held.holds(revision, keys) for revision, keys in asked] == [False, True, True, False, True, False]
