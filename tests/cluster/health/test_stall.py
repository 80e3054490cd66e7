"""Stalled objects, which have not been ready for a long time and make no progress."""

from math import inf

import pytest

from tests.cluster.support.client_contract import key
from wharfinger.cluster.health.stall import ABSENT_S, GRACE_S, LIMIT_S, Unready, followed
from wharfinger.cluster.watch.readiness import Failed, InProgress


@pytest.mark.parametrize(
    ("unready", "stalls_at"),
    [
        (Unready(0, InProgress("0 of 2"), 0), GRACE_S),
        (Unready(0, InProgress("1 of 2"), 50), 50 + GRACE_S),
        (Unready(0, InProgress("1 of 2"), LIMIT_S - 1), LIMIT_S),
        (Unready(0, InProgress("not there", absent=True), 20), 20 + ABSENT_S),
        (Unready(0, InProgress("1 of 2 updated", at_work=True), 0), inf),
        (Unready(0, Failed("its progress deadline passed"), 0), inf),
    ],
)
def test_the_time_of_a_stall_is_computed(unready: Unready, stalls_at: float) -> None:
    assert unready.stalls_at() == stalls_at


def test_a_release_may_have_its_own_grace_period() -> None:
    assert Unready(7, InProgress("0 of 2"), 7).stalls_at(3) == 10
    assert Unready(7, InProgress("not there", absent=True), 7).stalls_at(3) == 10


def test_a_message_change_restarts_the_grace_period_and_readiness_ends_it() -> None:
    first = followed({}, {key("a"): InProgress("0 of 2"), key("b"): InProgress("soon")}, 0)
    same = followed(first, {key("a"): InProgress("0 of 2")}, 5)
    assert same == {key("a"): Unready(0, InProgress("0 of 2"), 0)}
    moved = followed(same, {key("a"): InProgress("1 of 2")}, 9)
    assert moved == {key("a"): Unready(0, InProgress("1 of 2"), 9)}
    assert followed(moved, {}, 10) == {}
    assert followed({}, {key("a"): InProgress("1 of 2")}, 11) == {key("a"): Unready(11, InProgress("1 of 2"), 11)}
