"""The claim scheduler of one pool as a pure machine: it decides which request gets which member, and processes the result of
each claim.

Theory of operation. Requests wait in the order in which they were accepted, and members are ready in the order in which they
became idle. The first request gets the first member immediately: the machine reserves the member, asks for a claim, and goes on
without waiting for the answer. `Limits.in_flight` bounds the number of claims under way. A request and a member are paired only
when a claim for them can be sent, so a request that waits never holds back a member.

*Reservations*, and not timers, prevent a member from being handed out twice. A member is reserved from the moment its claim is
sent, until the cache shows the member as the claim left it, or in a later state. The reservation ends

* after a success, when the cache shows the version that the claim wrote;
* after a conflict, when the cache shows any version above the one at which the member was to be claimed, because that version is
  known to be outdated;
* after another failure, immediately, because the member has not changed.

A reservation applies to a uid. So a member is not handed out twice if the cache is late, and a member that was deleted and made
again under the same name is a new one.

=========== ==================================================================================================================
event       what happens
=========== ==================================================================================================================
Enqueued    the request waits at the end of the line; if a member is ready and the limit allows it, a claim starts immediately
Withdrawn   the request leaves the line; if its claim is under way and succeeds, the member is recycled
Seen        the member becomes ready if it is idle, not protected and not reserved, otherwise not ready; a reservation may end
Lost        the member stops being ready; a reservation of it ends, unless its claim is under way
Succeeded   the request is answered with the member; if it was answered before, the member is recycled
Conflicted  the request returns to its place in the line; at the limit of attempts, it is answered instead
Failed      the request is answered; if the cache shows the member idle, it becomes the last of the ready members
TimePassed  requests past their deadline are answered; those with a claim under way only if `Limits.expires_claims`
Closed      all requests that wait are answered; no more are accepted, and no more claims are sent
Abandoned   requests with a claim under way are answered, and the members are recycled, since the claims may have succeeded
=========== ==================================================================================================================

Invariants (`tests/pools/claims/test_machine_rules.py`): each accepted request is answered exactly once by the time that the pool
is closed and no claim is under way; a member is never under two claims; after a claim that succeeded or conflicted, a member is
not handed out again before the cache has shown a later version; requests are dispatched in their order; no request waits while a
member is ready and the limit allows another claim.

No clock and no I/O. A step takes amortized logarithmic time in the number of waiting requests, and constant time in the number of
members. TimePassed, Closed and Abandoned also go through the claims or the requests that they may end.
"""

import math
from typing import TypeAlias, assert_never

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
    Lost,
    Member,
    Recycle,
    Seen,
    StartClaim,
    Succeeded,
    TimePassed,
    Withdrawn,
)
from wharfinger.pools.claims.state import Claim, PoolState, Waiting

Effects: TypeAlias = tuple[Effect, ...]


class IllegalPoolEvent(Exception):  # noqa: N818 - named for what happened
    """An event that cannot happen in this state was reported, because of a bug in the code that drives the machine.

    The state is unchanged.
    """


def accepts(state: PoolState) -> bool:
    """Return whether one more request may be enqueued: the pool is open, and its line is not full."""
    return not state.closed and len(state.line) < state.limits.waiting


def step(state: PoolState, event: Event) -> tuple[PoolState, Effects]:
    """Return the state after ``event``, and the effects in order. The caller must not use the passed state any more.

    Raises IllegalPoolEvent.
    """
    effects: list[Effect] = []
    match event:
        case Enqueued():
            _enqueue(state, event)
        case Withdrawn():
            _withdraw(state, event.request, effects)
        case Seen():
            _see(state, event.member)
        case Lost():
            _lose(state, event.uid)
        case Succeeded():
            _succeed(state, event, effects)
        case Conflicted():
            _conflict(state, event.request, effects)
        case Failed():
            _fail(state, event.request, effects)
        case TimePassed():
            _pass(state, event.now, effects)
        case Closed():
            _close(state, effects)
        case Abandoned():
            _abandon(state, effects)
        case _:
            assert_never(event)
    _dispatch(state, effects)
    return state, tuple(effects)


def _dispatch(state: PoolState, effects: list[Effect]) -> None:
    """Pair the first requests with the first members, as long as both exist and the limit allows another claim."""
    while state.line and state.ready and len(state.claims) < state.limits.in_flight:
        waiting = state.line.take()
        uid = next(iter(state.ready))
        del state.ready[uid]
        member = state.members[uid]
        state.reserved[uid] = None
        state.claims[waiting.request] = Claim(waiting, member)
        state.counters.claims += 1
        effects.append(StartClaim(waiting.request, member))


def next_deadline(state: PoolState) -> float:
    """Return the time at which TimePassed is due: the earliest deadline of a request that can expire; infinite if there is no
    such request.
    """
    if not state.limits.expires_claims:
        return state.line.deadline()
    claimed = (claim.waiting.deadline for claim in state.claims.values() if not claim.answered)
    return min(state.line.deadline(), min(claimed, default=math.inf))


def position_of(state: PoolState, request: int) -> int:
    """Return the place of a request in the line, 1 for the first; 0 if it does not wait. Takes linear time."""
    return sum(number <= request for number in state.line) if request in state.line else 0


# --- requests --------------------------------------------------------------------------------------------------------------


def _enqueue(state: PoolState, event: Enqueued) -> None:
    if not accepts(state):
        raise IllegalPoolEvent(f"request {event.request} was enqueued in a pool that is full or closed")
    if event.request in state.line or event.request in state.claims:
        raise IllegalPoolEvent(f"request {event.request} was enqueued twice")
    state.counters.accepted += 1
    state.line.put(Waiting(event.request, event.deadline))


def _withdraw(state: PoolState, request: int, effects: list[Effect]) -> None:
    if state.line.remove(request) is not None:
        effects.append(Answered(request, Answer.WITHDRAWN))
    elif (claim := state.claims.get(request)) is not None:
        _answer_early(claim, Answer.WITHDRAWN, effects)


def _pass(state: PoolState, now: float, effects: list[Effect]) -> None:
    for waiting in state.line.take_expired(now):
        state.counters.expired += 1
        effects.append(Answered(waiting.request, Answer.EXPIRED))
    for claim in state.claims.values() if state.limits.expires_claims else ():
        if claim.waiting.deadline <= now and _answer_early(claim, Answer.EXPIRED, effects):
            state.counters.expired += 1


def _answer_early(claim: Claim, answer: Answer, effects: list[Effect]) -> bool:
    """Answer a request while its claim is under way. Return False if it was answered before."""
    if claim.answered:
        return False
    claim.answered = True
    effects.append(Answered(claim.waiting.request, answer))
    return True


def _close(state: PoolState, effects: list[Effect]) -> None:
    state.closed = True
    effects += [Answered(state.line.take().request, Answer.CLOSED) for _ in range(len(state.line))]


def _abandon(state: PoolState, effects: list[Effect]) -> None:
    if not state.closed:
        raise IllegalPoolEvent("claims were abandoned in a pool that is open")
    for claim in state.claims.values():
        _answer_early(claim, Answer.CLOSED, effects)
        state.counters.recycled += 1
        effects.append(Recycle(claim.member.uid))
    state.claims.clear()
    state.reserved.clear()  # no member is handed out any more


# --- claims ----------------------------------------------------------------------------------------------------------------


def _succeed(state: PoolState, event: Succeeded, effects: list[Effect]) -> None:
    claim = _taken(state, event.request)
    state.counters.succeeded += 1
    _reserve_until(state, claim.member.uid, event.version)
    if claim.answered:
        state.counters.recycled += 1
        effects.append(Recycle(claim.member.uid))
    else:
        effects.append(Answered(event.request, Answer.CLAIMED))


def _conflict(state: PoolState, request: int, effects: list[Effect]) -> None:
    claim = _taken(state, request)
    state.counters.conflicts += 1
    _reserve_until(state, claim.member.uid, claim.member.version + 1)
    waiting = claim.waiting
    waiting.conflicts += 1
    if claim.answered:
        return
    if state.closed:
        effects.append(Answered(request, Answer.CLOSED))
    elif waiting.conflicts >= state.limits.attempts:
        effects.append(Answered(request, Answer.CONFLICTED))
    else:
        state.line.put(waiting)


def _fail(state: PoolState, request: int, effects: list[Effect]) -> None:
    claim = _taken(state, request)
    state.counters.failed += 1
    del state.reserved[claim.member.uid]
    _admit(state, claim.member.uid)
    if not claim.answered:
        effects.append(Answered(request, Answer.FAILED))


def _taken(state: PoolState, request: int) -> Claim:
    """Remove the claim of a request, and return it. Raises IllegalPoolEvent if no claim is under way for the request."""
    claim = state.claims.pop(request, None)
    if claim is None:
        raise IllegalPoolEvent(f"the claim of request {request} ended, but no claim for it is under way")
    # Defensive: the reservation lasts until the end of the claim, even if the cache loses the member during the claim.
    state.reserved.setdefault(claim.member.uid, None)
    return claim


# --- members ---------------------------------------------------------------------------------------------------------------


def _see(state: PoolState, member: Member) -> None:
    known = state.members.get(member.uid)
    if known is not None and member.version < known.version:
        return  # an outdated version, from an answer that came late
    state.members[member.uid] = member
    until = state.reserved.get(member.uid, -1)
    if until is not None and until <= member.version:
        state.reserved.pop(member.uid, None)
    _admit(state, member.uid)


def _lose(state: PoolState, uid: str) -> None:
    state.members.pop(uid, None)
    if uid in state.ready:
        del state.ready[uid]
        state.counters.evicted += 1
    if state.reserved.get(uid) is not None:
        del state.reserved[uid]


def _reserve_until(state: PoolState, uid: str, version: int) -> None:
    """Keep the member reserved until the cache shows it at ``version`` or later. If the cache shows such a version already, or
    the member is gone, end the reservation now.
    """
    member = state.members.get(uid)
    if member is None or member.version >= version:
        del state.reserved[uid]
        _admit(state, uid)
    else:
        state.reserved[uid] = version


def _admit(state: PoolState, uid: str) -> None:
    """Mark a member as ready or as not ready, according to its state in the cache. Do nothing for a reserved member. A member
    that was ready before keeps its place in the order.
    """
    member = state.members.get(uid)
    if member is None or uid in state.reserved:
        return
    if member.idle and not member.protected:
        state.ready.setdefault(uid)
        return
    if member.idle:
        state.counters.protected += 1
    if uid in state.ready:
        del state.ready[uid]
        state.counters.evicted += 1
