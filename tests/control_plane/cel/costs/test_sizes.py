"""The arithmetic of ranges, which estimates use for sizes and costs."""

from wharfinger.control_plane.cel.costs.sizes import MOST, Range


def test_ranges_are_limited() -> None:
    assert Range(0, MOST).plus(Range(1, 1)).high == Range(2, MOST).times(Range(2, 2)).high == MOST
    assert Range(0, MOST).scaled(2).high == MOST
    assert Range(1, 2).union(Range(0, 5)) == Range(0, 5)
