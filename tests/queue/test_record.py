import copy

import pytest

from wharfinger.queue.events import Enqueued
from wharfinger.queue.record import record


@record
class Point:
    """A record with two fields."""

    x: int
    y: int = 2


def test_records_are_made_compared_and_hashed_by_value() -> None:
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert repr(Point(1)).endswith("Point(x=1, y=2)")
    assert copy.deepcopy(Point(1)) == Point(1)


def test_records_are_matched_by_position() -> None:
    match Point(1, 5):
        case Point(x, y):
            assert (x, y) == (1, 5)


def test_a_record_has_slots_only() -> None:
    with pytest.raises(AttributeError):
        object.__setattr__(Point(1), "z", 3)
    assert not hasattr(Enqueued(1, "a", 1, 0.0), "__dict__")
