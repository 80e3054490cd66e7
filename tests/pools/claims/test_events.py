"""The values that the state machine for claims uses: valid limits, and the defaults of a member."""

import pytest

from wharfinger.pools.claims.events import Limits, Member


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"limit of waiting: .*found 0"):
        Limits(waiting=0)
    with pytest.raises(ValueError, match=r"limit of in_flight: .*found 0"):
        Limits(in_flight=0)
    with pytest.raises(ValueError, match=r"limit of attempts: .*found 0"):
        Limits(attempts=0)


def test_a_member_is_idle_and_not_protected_by_default() -> None:
    assert Member("a", 1) == Member("a", 1, idle=True, protected=False)
