"""Lookups of fields, keys and items in CEL values."""

import pytest

from wharfinger.control_plane.cel.values.lookups import found, has, ranged, selected
from wharfinger.control_plane.cel.values.values import NONE, CelError, CelMap, Optional

MAP = CelMap([("a", 1)])


def test_maps_lists_and_optionals_are_looked_up() -> None:
    assert (selected(MAP, "a"), has(MAP, "b"), found(MAP, "b"), found([5], 0)) == (
        1,
        False,
        NONE,
        Optional(present=True, value=5),
    )
    assert (selected(NONE, "a"), has(NONE, "a"), selected(Optional(present=True, value=MAP), "b")) == (
        NONE,
        False,
        NONE,
    )
    assert (ranged([5], pairs=True), ranged(MAP, pairs=False), ranged(MAP, pairs=True)) == (
        [(0, 5)],
        [("a",)],
        [("a", 1)],
    )


def test_invalid_lookups_are_errors() -> None:
    assert (has(1, "a"), found(1, "a")) == (False, NONE)
    with pytest.raises(CelError, match="no such key: a"):
        selected(1, "a")
    with pytest.raises(CelError, match="unsupported index type 'string' in list"):
        selected([], "a")
    with pytest.raises(CelError, match="unsupported index type 'string' in list"):
        has([], "a")
    with pytest.raises(CelError):
        found([], "a")
    with pytest.raises(CelError):
        ranged(1, pairs=False)
