"""Tiers: for each order, the number of its packages that hold back packages of higher orders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.scheduler.tiers import Tiers, tier_id


def test_without_holders_no_tier_is_waited_for() -> None:
    assert Tiers().below(999) is None
    assert not Tiers().is_held(1)


def test_the_highest_held_order_below_is_waited_for() -> None:
    tiers = Tiers().moved(None, 10).moved(None, 20).moved(None, 20).moved(None, 999)
    assert tiers.below(999) == 20
    assert tiers.below(20) == 10
    assert tiers.below(10) is None
    tiers = tiers.moved(20, None)
    assert tiers.is_held(20)
    assert tiers.moved(20, None).below(999) == 10


def test_a_package_with_a_changed_order_holds_the_new_order() -> None:
    tiers = Tiers().moved(None, 10).moved(10, 30)
    assert not tiers.is_held(10)
    assert tiers.is_held(30)


def test_moving_from_an_unheld_order_is_an_error() -> None:
    with pytest.raises(KeyError):
        Tiers().moved(10, None)


def test_a_tier_has_its_own_id() -> None:
    assert tier_id(10) == Id("Tier", "", "10")


@given(st.lists(st.tuples(st.none() | st.integers(1, 5), st.none() | st.integers(1, 5))))
def test_counts_equal_those_of_a_list_of_holders(moves: list[tuple[int | None, int | None]]) -> None:
    tiers, holders = Tiers(), list[int]()
    for before, after in moves:
        if before is not None and before not in holders:
            continue
        tiers = tiers.moved(before, after)
        if before is not None:
            holders.remove(before)
        if after is not None:
            holders.append(after)
        for order in range(7):
            assert tiers.is_held(order) == (order in holders)
            assert tiers.below(order) == max((each for each in holders if each < order), default=None)
