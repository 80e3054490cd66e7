"""The state machine for claims, case by case: the queue of ready members, reservations of members, and the ends of requests."""

import math

import pytest

from wharfinger.pools.claims.events import (
    Abandoned,
    Answer,
    Answered,
    Closed,
    Conflicted,
    Effect,
    Enqueued,
    Event,
    Failed,
    Limits,
    Lost,
    Member,
    Recycle,
    Seen,
    StartClaim,
    Succeeded,
    TimePassed,
    Withdrawn,
)
from wharfinger.pools.claims.machine import IllegalPoolEvent, accepts, next_deadline, step
from wharfinger.pools.claims.state import PoolState, new_pool_state

FAR = 1e9


def play(*events: Event, limits: Limits | None = None) -> tuple[PoolState, list[Effect]]:
    state, effects = new_pool_state(limits or Limits()), list[Effect]()
    for event in events:
        state, found = step(state, event)
        effects += found
    return state, effects


def seen(uid: str, version: int = 1, *, idle: bool = True, protected: bool = False) -> Seen:
    return Seen(Member(uid, version, idle=idle, protected=protected))


def claim(request: int, uid: str, version: int = 1) -> StartClaim:
    return StartClaim(request, Member(uid, version))


def asked(*requests: int) -> list[Event]:
    return [Enqueued(request, FAR) for request in requests]


# --- the ready queue -------------------------------------------------------------------------------------------------------


def test_members_are_handed_out_in_the_order_in_which_they_became_idle() -> None:
    assert play(seen("b"), seen("a"), *asked(0, 1))[1] == [claim(0, "b"), claim(1, "a")]


def test_a_member_that_is_seen_again_keeps_its_place_and_is_there_once() -> None:
    state, effects = play(seen("a"), seen("b"), seen("a", 2), *asked(0, 1, 2))
    assert effects == [claim(0, "a", 2), claim(1, "b")]
    assert list(state.line) == [2]


def test_many_sightings_of_few_members() -> None:
    state, _ = play(*(seen(f"m{number % 1000}", number) for number in range(10_000)))
    assert len(state.ready) == 1000


def test_an_empty_pool_hands_nothing_out() -> None:
    state, effects = play(*asked(0))
    assert (list(state.line), effects) == ([0], [])


def test_evicted_members_leave_the_order_of_the_others_unchanged() -> None:
    state, effects = play(seen("a"), seen("b"), seen("c"), Lost("a"), *asked(0, 1))
    assert effects == [claim(0, "b"), claim(1, "c")]
    assert state.counters.evicted == 1


def test_a_member_that_is_no_longer_idle_is_evicted() -> None:
    state, effects = play(seen("a"), seen("b"), seen("a", 2, idle=False), *asked(0))
    assert effects == [claim(0, "b")]
    assert state.counters.evicted == 1


def test_a_protected_member_is_not_admitted_and_leaves_if_it_becomes_so() -> None:
    state, effects = play(seen("a", protected=True), seen("b"), seen("b", 2, protected=True), *asked(0))
    assert (effects, state.counters.protected, state.counters.evicted) == ([], 2, 1)


def test_an_old_sighting_changes_nothing() -> None:
    state, _ = play(seen("a", 5, idle=False), seen("a", 4))
    assert (dict(state.ready), state.members["a"].version) == ({}, 5)


# --- reservations ----------------------------------------------------------------------------------------------------------


def test_a_member_under_claim_is_reserved_whatever_the_cache_shows() -> None:
    state, effects = play(seen("a"), *asked(0, 1), seen("a", 2), seen("a", 3))
    assert effects == [claim(0, "a")]
    assert dict(state.reserved) == {"a": None}


def test_a_claimed_member_is_reserved_until_the_cache_shows_the_claim() -> None:
    events = [seen("a"), *asked(0, 1), Succeeded(0, 7)]
    assert dict(play(*events)[0].reserved) == {"a": 7}
    assert dict(play(*events, seen("a", 6))[0].reserved) == {"a": 7}
    state, effects = play(*events, seen("a", 7, idle=False))
    assert (dict(state.reserved), effects[-1]) == ({}, Answered(0, Answer.CLAIMED))
    assert play(*events, seen("a", 9))[1][-1] == claim(1, "a", 9)


def test_a_cache_that_is_ahead_of_the_claim_ends_the_reservation_at_once() -> None:
    state, _ = play(seen("a"), *asked(0), seen("a", 7, idle=False), Succeeded(0, 7))
    assert dict(state.reserved) == {}


def test_a_member_in_conflict_is_reserved_until_the_cache_shows_a_newer_version() -> None:
    events = [seen("a", 3), *asked(0), Conflicted(0)]
    assert dict(play(*events)[0].reserved) == {"a": 4}
    assert play(*events, seen("a", 3))[1] == [claim(0, "a", 3)]
    assert play(*events, seen("a", 4))[1][-1] == claim(0, "a", 4)


def test_after_another_failure_a_member_is_free_at_once_and_last_in_the_order() -> None:
    state, effects = play(seen("a"), seen("b"), *asked(0), Failed(0), *asked(1, 2))
    assert effects == [claim(0, "a"), Answered(0, Answer.FAILED), claim(1, "b"), claim(2, "a")]
    assert state.counters.failed == 1


@pytest.mark.parametrize("end", [Succeeded(0, 7), Conflicted(0), Failed(0)])
def test_a_member_that_is_lost_leaves_no_reservation(end: Event) -> None:
    assert dict(play(seen("a"), *asked(0), Lost("a"), end, Closed())[0].reserved) == {}
    assert dict(play(seen("a"), *asked(0), end, Lost("a"), Closed())[0].reserved) == {}


def test_a_member_made_again_has_another_uid_and_is_free() -> None:
    _, effects = play(seen("old"), *asked(0), Succeeded(0, 2), seen("new"), *asked(1))
    assert effects[-1] == claim(1, "new")


# --- requests --------------------------------------------------------------------------------------------------------------


def test_a_conflict_puts_a_request_first_with_its_old_number() -> None:
    _, effects = play(seen("a"), *asked(0, 1, 2), Conflicted(0), seen("b"), seen("c"))
    assert effects == [claim(0, "a"), claim(0, "b"), claim(1, "c")]


def test_conflicts_are_capped() -> None:
    limits = Limits(attempts=2)
    _, effects = play(seen("a"), seen("b"), seen("c"), *asked(0), Conflicted(0), Conflicted(0), limits=limits)
    assert effects == [claim(0, "a"), claim(0, "b"), Answered(0, Answer.CONFLICTED)]


def test_deadlines_are_kept_to_the_moment() -> None:
    events: list[Event] = [Enqueued(0, 5.0), Enqueued(1, 4.0)]
    assert play(*events, TimePassed(3.9))[1] == []
    assert play(*events, TimePassed(5.0))[1] == [Answered(1, Answer.EXPIRED), Answered(0, Answer.EXPIRED)]


def test_a_success_after_the_deadline_is_recycled() -> None:
    events: list[Event] = [seen("a"), Enqueued(0, 5.0), TimePassed(5.0)]
    assert play(*events, TimePassed(6.0), Succeeded(0, 2))[1][1:] == [Answered(0, Answer.EXPIRED), Recycle("a")]
    assert play(*events, Conflicted(0))[1][1:] == [Answered(0, Answer.EXPIRED)]


def test_a_claim_in_progress_is_awaited_beyond_the_deadline() -> None:
    limits = Limits(expires_claims=False)
    events: list[Event] = [seen("a"), Enqueued(0, 5.0), TimePassed(5.0), TimePassed(6.0)]
    state, effects = play(*events, limits=limits)
    assert len(effects) == 1
    assert next_deadline(state) == math.inf
    assert play(*events, Succeeded(0, 2), limits=limits)[1][1:] == [Answered(0, Answer.CLAIMED)]
    assert play(*events, Conflicted(0), TimePassed(7.0), limits=limits)[1][1:] == [Answered(0, Answer.EXPIRED)]


def test_a_withdrawn_request_is_answered_and_its_success_recycled() -> None:
    assert play(*asked(0), Withdrawn(0), Withdrawn(0))[1] == [Answered(0, Answer.WITHDRAWN)]
    _, effects = play(seen("a"), *asked(0), Withdrawn(0), Succeeded(0, 2))
    assert effects[1:] == [Answered(0, Answer.WITHDRAWN), Recycle("a")]
    assert play(Withdrawn(3))[1] == []


def test_a_full_queue_and_a_closed_pool_accept_no_request() -> None:
    state, _ = play(*asked(0, 1), limits=Limits(waiting=2))
    assert not accepts(state)
    with pytest.raises(IllegalPoolEvent, match="full or closed"):
        step(state, Enqueued(2, FAR))
    closed, effects = step(state, Closed())
    assert not accepts(closed)
    assert effects == (Answered(0, Answer.CLOSED), Answered(1, Answer.CLOSED))


def test_a_closed_pool_lets_claims_finish_and_sends_none() -> None:
    events = [seen("a"), *asked(0, 1), Closed(), seen("b")]
    assert play(*events)[1] == [claim(0, "a"), Answered(1, Answer.CLOSED)]
    assert play(*events, Succeeded(0, 2))[1][-1] == Answered(0, Answer.CLAIMED)
    assert play(*events, Conflicted(0))[1][-1] == Answered(0, Answer.CLOSED)


def test_abandoned_claims_are_answered_and_recycled() -> None:
    state, effects = play(seen("a"), *asked(0), Closed(), Abandoned())
    assert effects[1:] == [Answered(0, Answer.CLOSED), Recycle("a")]
    assert not state.claims
    with pytest.raises(IllegalPoolEvent, match="open"):
        play(Abandoned())


def test_claims_in_progress_never_exceed_the_limit() -> None:
    state, effects = play(seen("a"), seen("b"), *asked(0, 1), limits=Limits(in_flight=1))
    assert (effects, list(state.ready), list(state.line)) == ([claim(0, "a")], ["b"], [1])


@pytest.mark.parametrize("event", [Succeeded(5, 1), Conflicted(5), Failed(5)])
def test_the_end_of_a_claim_that_is_not_under_way_is_a_bug(event: Event) -> None:
    with pytest.raises(IllegalPoolEvent, match="no claim for it is under way"):
        play(event)


def test_a_request_that_is_enqueued_twice_is_a_bug() -> None:
    with pytest.raises(IllegalPoolEvent, match="twice"):
        play(*asked(0, 0))
