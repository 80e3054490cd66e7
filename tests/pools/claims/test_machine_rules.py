"""The claim machine with random orders of events, compared with a simulated world that keeps its own records.

The world has members that really change, a cache that lags behind, and claims that compare versions. These invariants hold:

* each accepted request is answered exactly once and before the pool is closed, whenever that is;
* a member is never in two claims at the same time, and a successful claim never gives a request a member that has an owner;
* claims are sent in the order of the requests, except that a request that lost its member precedes all others;
* no request waits while a member is ready and a further claim is permitted;
* a conflict occurs only if the cache was behind;
* if a member was claimed for a request that already has another answer, the member is recycled.
"""

import heapq
from collections import Counter, deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wharfinger.pools.claims.events import (
    Abandoned,
    Answer,
    Answered,
    Closed,
    Conflicted,
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
from wharfinger.pools.claims.machine import accepts, next_deadline, step
from wharfinger.pools.claims.state import PoolState, new_pool_state

picks = st.integers(0, 10_000)


class ClaimsMachine(RuleBasedStateMachine):
    """A state machine that simulates everything around the claim machine: the scheduler's code, the backend and the callers."""

    def __init__(self) -> None:
        super().__init__()
        self.state: PoolState = new_pool_state(Limits())
        self.now = 0.0
        self.requests = 0
        self.names = 0
        self.version = 0
        self.truth: dict[str, Member] = {}
        self.owner: dict[str, int] = {}
        self.cache: deque[Seen | Lost] = deque()
        self.claims: dict[int, Member] = {}
        self.accepted: set[int] = set()
        self.answers: Counter[int] = Counter()
        self.deadlines: dict[int, float] = {}
        self.line: list[int] = []
        self.gone: set[int] = set()

    @initialize(waiting=st.integers(1, 6), in_flight=st.integers(1, 4), attempts=st.integers(1, 4))
    def begin(self, waiting: int, in_flight: int, attempts: int) -> None:
        self.state = new_pool_state(Limits(waiting, in_flight, attempts))

    def tell(self, event: Event) -> None:
        self.state, effects = step(self.state, event)
        for effect in effects:
            match effect:
                case StartClaim():
                    assert effect.member.uid not in {member.uid for member in self.claims.values()}
                    assert effect.request == heapq.heappop(self.line), "claims are sent in the order of the requests"
                    assert effect.request not in self.answers
                    self.claims[effect.request] = effect.member
                case Answered():
                    self.answers[effect.request] += 1
                    assert self.answers[effect.request] == 1
                    if effect.request in self.line:
                        self.line.remove(effect.request)
                        heapq.heapify(self.line)
                    if effect.answer is Answer.EXPIRED:
                        assert self.deadlines[effect.request] <= self.now
                    if effect.answer is not Answer.CLAIMED:
                        self.gone.add(effect.request)
                case Recycle():
                    if self.owner.get(effect.uid, -1) in self.gone:
                        del self.owner[effect.uid]
                        self.change(effect.uid, idle=True)

    def change(self, uid: str, *, idle: bool, protected: bool = False) -> None:
        self.version += 1
        self.truth[uid] = Member(uid, self.version, idle=idle, protected=protected)
        self.cache.append(Seen(self.truth[uid]))

    # --- callers -----------------------------------------------------------------------------------------------------------

    @precondition(lambda self: accepts(self.state))
    @rule(patience=st.integers(0, 5))
    def enqueue(self, patience: int) -> None:
        self.requests += 1
        self.accepted.add(self.requests)
        self.deadlines[self.requests] = self.now + patience
        heapq.heappush(self.line, self.requests)
        self.tell(Enqueued(self.requests, self.now + patience))

    @precondition(lambda self: self.requests)
    @rule(pick=picks)
    def withdraw(self, pick: int) -> None:
        self.tell(Withdrawn(pick % self.requests + 1))

    @rule(seconds=st.integers(0, 2))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.tell(TimePassed(self.now))

    # --- members -----------------------------------------------------------------------------------------------------------

    @rule(idle=st.booleans(), protected=st.booleans())
    def add(self, idle: bool, protected: bool) -> None:
        self.names += 1
        self.change(f"m{self.names}", idle=idle, protected=protected)

    @precondition(lambda self: self.truth)
    @rule(pick=picks, idle=st.booleans(), protected=st.booleans())
    def disturb(self, pick: int, idle: bool, protected: bool) -> None:
        """Change a member as another client would. A member that becomes idle loses its owner."""
        uid = sorted(self.truth)[pick % len(self.truth)]
        if idle:
            self.owner.pop(uid, None)
        self.change(uid, idle=idle, protected=protected)

    @precondition(lambda self: self.truth)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        uid = sorted(self.truth)[pick % len(self.truth)]
        del self.truth[uid]
        self.owner.pop(uid, None)
        self.cache.append(Lost(uid))

    @precondition(lambda self: self.cache)
    @rule()
    def show(self) -> None:
        self.tell(self.cache.popleft())

    # --- claims ------------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.claims)
    @rule(pick=picks, broken=st.booleans())
    def finish(self, pick: int, broken: bool) -> None:
        request = sorted(self.claims)[pick % len(self.claims)]
        member = self.claims.pop(request)
        if self.truth.get(member.uid) != member:
            again = self.state.claims[request].waiting.conflicts + 1 < self.state.limits.attempts
            if again and request not in self.answers and not self.state.closed:
                heapq.heappush(self.line, request)
            self.tell(Conflicted(request))
        elif broken:
            self.tell(Failed(request))
        else:
            assert member.uid not in self.owner, "a member was given to two requests"
            self.owner[member.uid] = request
            self.change(member.uid, idle=False)
            self.tell(Succeeded(request, self.version))

    # --- the end -----------------------------------------------------------------------------------------------------------

    @rule()
    def close(self) -> None:
        self.tell(Closed())

    @precondition(lambda self: self.state.closed)
    @rule()
    def abandon(self) -> None:
        self.claims.clear()
        self.tell(Abandoned())

    def teardown(self) -> None:
        self.close()
        while self.claims:
            self.finish(0, broken=False)
        assert set(self.answers) == self.accepted
        while self.cache:
            self.tell(self.cache.popleft())
        assert not self.state.reserved, "a reservation is left after all claims and changes"

    @invariant()
    def nobody_waits_in_vain(self) -> None:
        idle_claim = len(self.state.claims) < self.state.limits.in_flight
        assert not (self.state.line and self.state.ready and idle_claim)

    @invariant()
    def the_books_agree(self) -> None:
        assert set(self.state.claims) == set(self.claims)
        assert list(self.state.line) == sorted(self.line)
        assert len(self.claims) <= self.state.limits.in_flight
        assert len(self.line) <= self.state.limits.waiting + self.state.limits.in_flight
        for uid in self.state.ready:
            assert self.state.members[uid].idle
            assert not self.state.members[uid].protected
            assert uid not in self.state.reserved
        assert self.accepted == set(self.answers) | set(self.line) | set(self.claims)

    @invariant()
    def the_next_deadline_is_the_earliest(self) -> None:
        open_requests = self.accepted - set(self.answers)
        assert next_deadline(self.state) == min(map(self.deadlines.__getitem__, open_requests), default=float("inf"))


TestClaimsMachine = ClaimsMachine.TestCase
