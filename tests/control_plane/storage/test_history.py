"""The history of changes and its limits (number and bytes). storage_contract tests the lists and changes of a whole storage."""

import pytest

from tests.control_plane.support.storage_contract import NODES, PODS, pod
from wharfinger.control_plane.storage.history import History
from wharfinger.control_plane.storage.interface import Change, CompactedError, Key
from wharfinger.control_plane.storage.memory import MemoryStorage


def changes(count: int, size: int = 0) -> list[Change]:
    storage = MemoryStorage()
    return [storage.put(*pod("x", n=number, text="x" * size)) for number in range(count)]


def history(made: list[Change], **bounds: int) -> History:
    found = History(1, **bounds)
    for change in made:
        found.add(change)
    return found


def test_the_oldest_changes_are_dropped_first() -> None:
    made = changes(5)
    found = history(made, limit=2)
    assert found.oldest == made[2].revision
    assert list(found.after(PODS, found.oldest, None, None)) == made[3:]
    with pytest.raises(CompactedError):
        found.after(PODS, found.oldest - 1, None, None)


def test_bytes_are_bounded_and_current_objects_do_not_count() -> None:
    made = changes(10, size=10_000)
    assert history(made[:1], max_bytes=2_000).oldest == 1
    assert history(made, max_bytes=35_000).oldest == made[-4].revision


def test_changes_after_a_revision_can_be_limited() -> None:
    made = changes(200)
    found = history(made, limit=150)
    first = made[60].revision
    assert list(found.after(PODS, first, 3, None)) == made[61:64]
    assert list(found.after(PODS, first, None, made[62].revision)) == made[61:63]
    assert list(found.after(PODS, first, 1, made[62].revision)) == made[61:62]
    assert found.after(NODES, first, None, None) == ()


def test_undone_changes_are_removed() -> None:
    storage = MemoryStorage()
    made = [storage.put(*pod("x")), storage.put(Key(NODES, "", "n"), {}), storage.put(*pod("x"))]
    found = history(made)
    found.forget_after(made[0].revision)
    assert list(found.after(PODS, 1, None, None)) == made[:1]
    assert list(found.after(NODES, 1, None, None)) == []
    found.forget_after(0)  # this revision is before the beginning of the history
    assert found.oldest == 0
    assert found.after(PODS, 0, None, None) == ()
