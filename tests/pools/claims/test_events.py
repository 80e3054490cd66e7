"""The values of the claim machine."""

import pytest

from wharfinger.pools.claims.events import Limits, Member


@pytest.mark.parametrize("name", ["waiting", "in_flight", "attempts"])
def test_limits_let_at_least_one_through(name: str) -> None:
    with pytest.raises(ValueError, match=f"limit of {name}: 0"):
        Limits(**{name: 0})


def test_a_member_is_idle_and_not_protected_unless_it_says_so() -> None:
    assert Member("a", 1) == Member("a", 1, idle=True, protected=False)
