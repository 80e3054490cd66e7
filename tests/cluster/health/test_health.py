"""Facts about objects, and the health of a release that follows from them."""

from math import inf

import pytest

from tests.cluster.support.client_contract import key
from wharfinger.cluster.health.health import Fact, Health, HealthState, Sighting, health_of, sighting
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], HealthState.UNKNOWN),
        ([Current()], HealthState.CURRENT),
        ([Current(), InProgress("soon")], HealthState.RECONCILING),
        ([InProgress("soon"), Failed("no")], HealthState.DEGRADED),
    ],
)
def test_the_health_of_a_release_has_one_state(states: list[Readiness], expected: HealthState) -> None:
    made = {key(str(number)): state for number, state in enumerate(states)}
    assert health_of(made).state is expected
    assert health_of(made, [key("x")]).state is HealthState.UNKNOWN


def test_stalled_objects_make_the_release_degraded_and_differ() -> None:
    slow = health_of({key("a"): InProgress("0 of 2"), key("b"): Current()})
    stalled = health_of({key("a"): InProgress("0 of 2"), key("b"): Current()}, stalled=[key("a"), key("b")])
    assert (stalled.state, set(stalled.stalled)) == (HealthState.DEGRADED, {key("a")})
    assert stalled.differs(slow)


def test_ready_objects_and_laggards_are_sorted() -> None:
    health = health_of({key("b"): InProgress("soon"), key("c"): Current(), key("a"): Failed("no")})
    assert list(health.laggards) == [key("a"), key("b")]
    assert health.ready == (key("c"),)


def test_a_changed_message_is_a_difference_and_a_further_ready_object_is_not() -> None:
    one = health_of({key("a"): InProgress("0 of 2"), key("b"): Current()})
    assert one.differs(None)
    assert not one.differs(health_of({key("a"): InProgress("0 of 2"), key("b"): Current(), key("c"): Current()}))
    assert one.differs(health_of({key("a"): InProgress("1 of 2"), key("b"): Current()}))
    assert Health(known=False).differs(health_of({key("a"): Current()}))


def test_the_order_of_states_is_decided_by_numeric_versions() -> None:
    assert Sighting("u", 9).is_before(Sighting("u", 10))
    assert Sighting("old", 9).is_before(Sighting("new", 10))
    assert not Sighting("u", 10).is_before(Sighting("u", 10))
    assert not Sighting("u", -1).is_before(Sighting("u", 10))


@pytest.mark.parametrize(
    ("version", "number"), [("12", 12), ("", -1), ("a", -1), ("-3", -1), ("9" * 30, -1), ("\u0663", -1)]
)
def test_a_non_numeric_version_is_not_comparable(version: str, number: int) -> None:
    assert sighting({"metadata": {"uid": "u", "resourceVersion": version}}) == Sighting("u", number)


def test_a_grace_time_ends_and_a_pending_evaluation_is_uncertain() -> None:
    seen = Sighting("u", 1)
    waiting = Fact(seen, InProgress("no status yet"), until=10)
    assert (waiting.at(9), waiting.at(10)) == (InProgress("no status yet"), Current())
    assert waiting.guarded == -inf
    judged = Fact(seen, Current(), open=True)
    assert judged.at(0) == Current()
    assert judged.certain_at(0) != Current()
    assert Fact(seen, Current()).certain_at(0) == Current()
