"""The state machine of a Lease: each of its rules, and the invariant that the Lease has at most one holder."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.support.lease_simulation import Simulation
from tests.scale import scaled
from wharfinger.cluster.lease.machine import (
    Claiming,
    Effect,
    Event,
    Failed,
    Held,
    LeaseMachine,
    LeaseTimes,
    Leave,
    Leaving,
    Look,
    Over,
    Pause,
    Read,
    Refused,
    Sighting,
    State,
    Stop,
    Waiting,
    Woke,
    Write,
    Written,
)
from wharfinger.cluster.lease.record import Claim, LeaseRecord

THEIRS = LeaseRecord("uid", "5", "other", 3, 15, 100)
OURS = LeaseRecord("uid", "6", "us", 4, 15, 101)
MACHINE = LeaseMachine("us")
HELD = Held(OURS, 10.0)
RENEWAL = Claim("us", 4, 15)


def step(state: State, event: Event, now: float = 0.0) -> tuple[State, Effect]:
    return MACHINE.step(state, event, now)


# -- waiting


def test_a_missing_lease_is_created() -> None:
    state, effect = step(Waiting(), Read(None))
    assert effect == Write(Claim("us", 1, 15), None)
    assert isinstance(state, Claiming)


@pytest.mark.parametrize("holder", ["", "us"])
def test_a_lease_without_a_live_holder_is_taken_at_once(holder: str) -> None:
    free = replace(THEIRS, holder=holder)
    _, effect = step(Waiting(), Read(free))
    assert effect == Write(Claim("us", 4, 15), free)


def test_another_lease_is_taken_after_its_duration_by_our_own_clock() -> None:
    state, effect = step(Waiting(), Read(THEIRS), 1000.0)
    assert (state, effect) == (Waiting(Sighting(THEIRS, 1000.0), 3), Pause(1.0))
    assert step(state, Woke(), 1001.0) == (state, Look())
    assert step(state, Read(replace(THEIRS, version="9")), 1014.5)[1] == Pause(0.5), "a label does not renew the Lease"
    _, effect = step(state, Read(THEIRS), 1015.0)
    assert effect == Write(Claim("us", 4, 15), THEIRS)


def test_a_renewal_restarts_the_wait() -> None:
    state, _ = step(Waiting(), Read(THEIRS), 0.0)
    renewed = replace(THEIRS, renewed_us=101)
    state, effect = step(state, Read(renewed), 14.0)
    assert (state, effect) == (Waiting(Sighting(renewed, 14.0), 3), Pause(1.0))
    assert step(state, Read(renewed), 28.9)[0] == state
    assert isinstance(step(state, Read(renewed), 29.0)[0], Claiming)


def test_the_holders_longer_duration_is_respected() -> None:
    longer = replace(THEIRS, duration_s=60)
    state, _ = step(Waiting(), Read(longer), 0.0)
    assert step(state, Read(longer), 59.0)[0] == state
    assert isinstance(step(state, Read(longer), 60.0)[0], Claiming)


def test_a_deleted_lease_is_waited_for_and_the_fence_number_continues() -> None:
    state, _ = step(Waiting(), Read(THEIRS), 0.0)
    state, effect = step(state, Read(None), 5.0)
    assert (state, effect) == (Waiting(Sighting(None, 5.0), 3), Pause(1.0))
    _, effect = step(state, Read(None), 20.0)
    assert effect == Write(Claim("us", 4, 15), None)


def test_errors_while_waiting_are_retried() -> None:
    for event in (Failed("x"), Refused(), Written(OURS, 0.0)):
        assert step(Waiting(), event) == (Waiting(), Pause(1.0))
        waiting = Waiting(highest=9)
        if not isinstance(event, Written):
            assert step(Claiming(waiting), event) == (waiting, Pause(1.0))
    assert step(Waiting(), Leave()) == (Over(), Stop())
    assert step(Claiming(Waiting()), Leave()) == (Over(), Stop())


# -- holding


def test_a_claim_is_valid_from_the_start_of_its_write() -> None:
    assert step(Claiming(Waiting()), Written(OURS, 2.0), 3.0) == (Held(OURS, 12.0), Pause(5.0))
    assert step(Claiming(Waiting()), Written(OURS, 2.0), 12.0) == (Waiting(highest=4), Look()), (
        "the answer arrived after the deadline"
    )


def test_the_lease_is_renewed() -> None:
    assert step(HELD, Woke(), 5.0) == (HELD, Write(RENEWAL, OURS))
    renewed = replace(OURS, version="7", renewed_us=102)
    assert step(HELD, Written(renewed, 5.0), 5.1) == (Held(renewed, 15.0), Pause(5.0))


@pytest.mark.parametrize("event", [Woke(), Written(OURS, 9.0), Failed("x"), Refused(), Read(OURS), Leave()])
def test_the_lease_is_over_after_its_deadline_whatever_happens(event: Event) -> None:
    assert step(HELD, event, 10.0) == (Over("it could not be renewed within 10 seconds"), Stop())
    assert step(replace(HELD, trouble="refused"), event, 10.0)[0] == Over(
        "it could not be renewed within 10 seconds: refused"
    )


@pytest.mark.parametrize("event", [Failed("x"), Refused()])
def test_the_result_of_an_uncertain_renewal_is_read(event: Event) -> None:
    state, effect = step(HELD, event, 5.0)
    assert effect == Pause(1.0)
    assert isinstance(state, Held)
    assert state.unsure
    assert step(HELD, event, 9.75)[1] == Pause(0.25)
    assert step(state, Woke(), 6.0) == (state, Look())
    landed = replace(OURS, version="7")
    again, effect = step(state, Read(landed), 6.1)
    assert effect == Write(RENEWAL, landed)
    assert again == Held(landed, 10.0, unsure=False, trouble="x" if isinstance(event, Failed) else "")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "the Lease was deleted"),
        (replace(OURS, uid="another"), "the Lease was deleted"),
        (replace(OURS, holder="other", fence=5), "other holds it now"),
        (replace(OURS, fence=5), "us holds it now"),
        (replace(OURS, holder=""), "another daemon took and released it"),
    ],
)
def test_a_lease_taken_by_another_is_over(record: LeaseRecord | None, reason: str) -> None:
    assert step(replace(HELD, unsure=True), Read(record), 6.0) == (Over(reason), Stop())


def test_the_lease_is_released_on_leaving() -> None:
    state, effect = step(HELD, Leave(), 5.0)
    assert (state, effect) == (Leaving(), Write(Claim("", 4, 15), OURS))
    assert step(state, Written(OURS, 5.0), 5.1) == (Over(), Stop())
    assert step(Over("why"), Woke()) == (Over("why"), Stop())


@pytest.mark.parametrize("times", [(15, 15, 5, 1), (15, 10, 10, 1), (15, 10, 5, 6), (15, 10, 5, 0)])
def test_unsafe_times_are_refused(times: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be in this order"):
        LeaseTimes(*times)


# -- simulations


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 150), deadline=None)
@given(seed=st.integers(0, 2**48), count=st.sampled_from([2, 3]))
def test_there_are_never_two_holders_and_each_fence_is_greater(seed: int, count: int) -> None:
    simulation = Simulation(seed, count)
    simulation.run(until=600)
    assert simulation.together == []
    assert simulation.fences == sorted(set(simulation.fences))
    simulation.calm = True
    simulation.run(until=720)
    assert simulation.together == []
    assert [one.believes(simulation.t) for one in simulation.candidates].count(True) == 1, (
        "one candidate holds it in the end"
    )


def test_the_simulation_covers_many_changes() -> None:
    runs = [Simulation(seed, 3) for seed in range(20)]
    for one in runs:
        one.run(until=600)
    assert sum(len(one.fences) for one in runs) > 100
    assert sum(candidate.life for one in runs for candidate in one.candidates) > 200


def test_the_simulation_detects_clocks_that_differ_too_much() -> None:
    def broken(seed: int) -> bool:
        simulation = Simulation(seed, 3, rates=(0.4, 1.6))
        simulation.run(until=600)
        return bool(simulation.together)

    assert any(broken(seed) for seed in range(200))
