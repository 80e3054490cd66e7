"""The scheduler with random callers, members, faults and shutdowns, in simulated time.

The pool is shut down, or its service is cancelled, at various moments. Each time, each accepted request is answered exactly
once, no member has two owners, members claimed for a caller that left are released, undisturbed requests are served in order,
and no task is left.
"""

from dataclasses import dataclass

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.pools.claims.fake_backend import FakeBackend
from tests.scale import scaled
from wharfinger.pools.claims.backend import ClaimError, ConflictError
from wharfinger.pools.claims.events import Answer, Limits, Member
from wharfinger.pools.claims.scheduler import NoMemberError, PoolFullError, PoolScheduler, open_pool_scheduler

HOUR_S = 3600.0
LATE_S = 60.0

delays = st.sampled_from([0.0, 0.0, 0.001, 0.01, 0.02, 1.0])
picks = st.integers(0, 1000)


@dataclass(frozen=True)
class Call:
    """A caller that requests a member with a ``deadline``, and leaves after ``patience`` if it has no answer by then. Both are
    in seconds.
    """

    deadline: float
    patience: float


@dataclass(frozen=True)
class Change:
    """A change of a member (added, dropped, or claimed or released by other clients), or a change of the cache (hidden or
    shown).
    """

    kind: str
    pick: int


steps = st.tuples(
    delays,
    st.one_of(
        st.builds(Call, st.sampled_from([0.01, 0.02, 0.03, 5.0]), st.sampled_from([0.01, 0.02, 0.04, 100.0, 100.0])),
        st.builds(Change, st.sampled_from(["put", "put", "drop", "take", "hide", "show"]), picks),
    ),
)


class World:
    """Callers and members, with records of the events."""

    def __init__(self, faults: list[int]) -> None:
        self.faults = faults
        self.claims = 0
        self.backend = FakeBackend(trip_s=0.02, trouble=self.trouble)
        self.accepted = 0
        self.ended = 0
        self.names = 0
        self.calls = 0
        self.got: set[str] = set()
        self.change(Change("put", 1))
        self.change(Change("put", 2))

    def trouble(self, member: Member, _: str) -> None:
        self.claims += 1
        kind = self.faults[self.claims % len(self.faults)] if self.faults else 0
        if kind == 1:
            raise ClaimError(member.uid)
        if kind == 2 and member.uid in self.backend.truth:
            self.backend.put(member.uid, idle=bool(self.claims % 2))
            raise ConflictError(member.uid)

    def change(self, change: Change) -> None:
        backend = self.backend
        known = sorted(backend.truth)
        match change.kind:
            case "put":
                self.names += 1
                backend.put(f"m{self.names}", protected=change.pick % 5 == 0)
            case "drop" if known:
                backend.drop(known[change.pick % len(known)])
            case "take" if known:
                backend.put(known[change.pick % len(known)], idle=False)
            case "hide":
                backend.lagging = True
            case "show":
                backend.lagging = False
                backend.catch_up()
            case _:
                pass

    async def all_ended(self, callers: trio.Nursery) -> None:
        """Wait until all callers have left."""
        while callers.child_tasks:  # noqa: ASYNC110 - a nursery reports only its own end
            await trio.sleep(0.001)

    async def call(self, scheduler: PoolScheduler[str, str], call: Call) -> None:
        begun = trio.current_time()
        with trio.move_on_after(call.patience):
            try:
                self.calls += 1
                self.accepted += 1
                spec = str(self.calls)
                await scheduler.claim(spec, begun + call.deadline)
                self.got.add(spec)
            except PoolFullError:
                self.accepted -= 1
                return
            except NoMemberError as error:
                assert error.answer is not Answer.CLAIMED
                assert error.answer is not Answer.EXPIRED or trio.current_time() >= begun + call.deadline
        self.ended += 1


@given(
    st.lists(steps, min_size=4, max_size=25),
    st.lists(st.integers(0, 2), max_size=5),
    st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.5, 10.0]),
    st.booleans(),
    st.integers(1, 4),
)
def test_every_accepted_request_is_answered_once_whatever_happens(
    schedule: list[tuple[float, Call | Change]], faults: list[int], end_after: float, cancelled: bool, in_flight: int
) -> None:
    async def play() -> None:
        world = World(faults)
        limits = Limits(waiting=6, in_flight=in_flight, attempts=3)
        async with trio.open_nursery() as callers:
            with trio.CancelScope() as service:
                async with open_pool_scheduler(world.backend, limits) as scheduler:
                    world.backend.notify = scheduler.notify_idle
                    for delay, step in schedule:
                        await trio.sleep(delay)
                        if isinstance(step, Call):
                            callers.start_soon(world.call, scheduler, step)
                        else:
                            world.change(step)
                    await trio.sleep(end_after)
                    if cancelled:
                        service.cancel()
            with trio.fail_after(LATE_S):
                await world.all_ended(callers)
        assert world.ended == world.accepted
        assert max(world.backend.owners.values(), default=0) <= 1
        counters = scheduler.metrics.counters
        assert counters.accepted == world.accepted
        for spec, uid in world.backend.claimed:
            assert spec in world.got or uid in world.backend.recycled, (
                "a claimed member was neither handed out nor recycled"
            )
        assert scheduler.snapshot().in_flight == scheduler.snapshot().waiting == 0

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_day_of_churn_leaves_no_state(autojump_clock: trio.testing.MockClock) -> None:
    """For 24 hours, callers send requests and leave, and members change and fail. Afterwards, no state about them is retained."""
    day, count = 24 * HOUR_S, scaled(20_000, 400)
    world = World([0, 0, 2, 0, 1, 0])
    async with open_pool_scheduler(world.backend, Limits(waiting=64, in_flight=8, attempts=4)) as scheduler:
        world.backend.notify = scheduler.notify_idle
        sizes: list[int] = []
        async with trio.open_nursery() as callers:
            for number in range(count):
                await trio.sleep(day / count)
                world.change(Change("put", number + 1))
                if number % 7 == 0:
                    world.change(Change("hide" if number % 14 else "show", number))
                call = Call(deadline=5.0 if number % 3 else 0.01, patience=0.01 if number % 5 == 0 else 100.0)
                callers.start_soon(world.call, scheduler, call)
                if number % 2:
                    world.change(Change("drop", number))
                if number % 97 == 0:
                    world.change(Change("show", 0))
                    sizes.append(len(callers.child_tasks))
        world.change(Change("show", 0))
        await trio.sleep(LATE_S)
        assert trio.current_time() >= day
        assert world.ended == world.accepted == count
        state = scheduler._state
        assert (len(state.line), len(state.claims), len(state.reserved), len(scheduler._requests)) == (0, 0, 0, 0)
        assert set(state.members) == set(world.backend.truth)
        assert len(state.line._order) + len(state.line._deadlines) < 300
        assert max(sizes) < 50
        assert scheduler.metrics.counters.accepted == count
    assert max(world.backend.owners.values(), default=0) <= 1
