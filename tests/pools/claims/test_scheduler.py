"""The scheduler over a backend in memory: the cases of spec/schedulers (C.9, C.12), and the defects that this specification
names (C.13).

The table of the cases is `tests/spec_pool_cases.py`.
"""

import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from tests.pools.claims.fake_backend import FakeBackend
from wharfinger.pools.claims.backend import ClaimError, ConflictError
from wharfinger.pools.claims.events import Answer, Limits, Member
from wharfinger.pools.claims.scheduler import (
    CLOSING_S,
    NoMemberError,
    PoolFullError,
    PoolScheduler,
    Request,
    open_pool_scheduler,
)

Scheduler = PoolScheduler[str, str]


@asynccontextmanager
async def opened(backend: FakeBackend, limits: Limits | None = None) -> AsyncGenerator[Scheduler]:
    async with open_pool_scheduler(backend, limits) as scheduler:
        backend.notify = scheduler.notify_idle
        await trio.testing.wait_all_tasks_blocked()
        yield scheduler


def asked(scheduler: Scheduler, *names: str, within: float = math.inf) -> list[Request[str, str]]:
    requests: list[Request[str, str]] = [Request(name, trio.current_time() + within) for name in names]
    for request in requests:
        assert scheduler.enqueue(request)
    return requests


def answers(requests: list[Request[str, str]]) -> list[str]:
    return [request.result if request.answer is Answer.CLAIMED else str(request.answer) for request in requests]  # type: ignore[misc]


settled = trio.testing.wait_all_tasks_blocked


async def test_an_idle_member_is_claimed_at_once(autojump_clock: trio.testing.MockClock) -> None:
    backend = FakeBackend(trip_s=0.02)
    backend.put("a")
    async with opened(backend) as scheduler:
        assert await scheduler.claim("one") == "a"
        assert scheduler.snapshot().last_dispatch == 0.0
        assert trio.current_time() == pytest.approx(0.02)


async def test_requests_are_served_in_their_order() -> None:
    backend = FakeBackend()
    async with opened(backend) as scheduler:
        requests = asked(scheduler, *"12345")
        await settled()
        backend.put(*"abcde")
        await settled()
        assert answers(requests) == list("abcde")
        assert sorted(backend.claimed) == list(zip("12345", "abcde", strict=True))


async def test_a_protected_member_is_passed_over() -> None:
    backend = FakeBackend()
    backend.put("a", protected=True)
    backend.put("b")
    async with opened(backend) as scheduler:
        assert await scheduler.claim("one") == "b"
        assert scheduler.metrics.counters.protected == 1
        late = asked(scheduler, "two")
        await settled()
        assert late[0].answer is None
        backend.put("a")
        await settled()
        assert answers(late) == ["a"]


async def test_after_a_conflict_the_request_gets_the_next_member_and_the_first_stays_reserved() -> None:
    backend = FakeBackend()
    async with opened(backend) as scheduler:
        backend.put("a", "b")
        backend.change_unseen("a")
        assert await scheduler.claim("one") == "b"
        assert scheduler.metrics.counters.conflicts == 1
        waiting = asked(scheduler, "two")
        await settled()
        assert (waiting[0].answer, scheduler.snapshot().reserved) == (None, 2)
        backend.put("a")
        backend.catch_up()
        await settled()
        assert answers(waiting) == ["a"]


async def test_a_conflict_puts_the_request_before_all_later_ones() -> None:
    backend = FakeBackend()
    async with opened(backend, Limits(in_flight=1)) as scheduler:
        backend.put(*"abcd")
        backend.change_unseen("a")
        requests = asked(scheduler, *"123")
        await settled()
        assert answers(requests) == ["b", "c", "d"]


async def test_a_request_is_answered_after_the_maximum_number_of_conflicts() -> None:
    def always(member: Member, spec: str) -> None:
        raise ConflictError(member.uid)

    backend = FakeBackend(trouble=always)
    async with opened(backend, Limits(attempts=3)) as scheduler:
        backend.put(*"abcdef")
        with pytest.raises(NoMemberError) as caught:
            await scheduler.claim("one")
        assert caught.value.answer is Answer.CONFLICTED
        assert isinstance(caught.value.__cause__, ConflictError)
        assert scheduler.metrics.counters.claims == 3
        assert scheduler.snapshot().ready == 3


async def test_another_failure_is_answered_and_releases_the_member() -> None:
    def once(member: Member, spec: str) -> None:
        if spec == "bad":
            raise ClaimError("the image cannot be pulled")

    backend = FakeBackend(trouble=once)
    async with opened(backend) as scheduler:
        backend.put("a")
        with pytest.raises(NoMemberError) as caught:
            await scheduler.claim("bad")
        assert caught.value.answer is Answer.FAILED
        assert str(caught.value.__cause__) == "the image cannot be pulled"
        assert scheduler.snapshot().reserved == 0
        assert await scheduler.claim("good") == "a"


async def test_a_slow_cache_hands_no_member_out_twice() -> None:
    backend = FakeBackend()
    async with opened(backend) as scheduler:
        backend.put("a")
        await settled()
        backend.lagging = True
        assert await scheduler.claim("one") == "a"
        late = asked(scheduler, "two")
        await settled()
        assert scheduler.metrics.counters.claims == 1
        assert scheduler.snapshot().reserved == 1
        backend.put("a")  # The member was released. The cache has shown neither the claim nor the release.
        backend.lagging = False
        backend.catch_up()
        await settled()
        assert answers(late) == ["a"]
        assert scheduler.metrics.counters.conflicts == 0


async def test_a_claim_slower_than_any_timer_keeps_its_member(autojump_clock: trio.testing.MockClock) -> None:
    backend = FakeBackend(trip_s=3600.0)
    async with opened(backend) as scheduler:
        backend.put("a")
        first = asked(scheduler, "one")
        late = asked(scheduler, "two", within=7000.0)
        await trio.sleep(3599.0)
        backend.notify()
        await settled()
        assert scheduler.metrics.counters.claims == 1
        await first[0].answered.wait()
        await late[0].answered.wait()
        assert answers(first + late) == ["a", "expired"]


async def test_many_more_requests_than_members(autojump_clock: trio.testing.MockClock) -> None:
    backend = FakeBackend(trip_s=0.01)
    backend.put(*(f"m{number}" for number in range(100)))
    async with opened(backend) as scheduler:
        requests = asked(scheduler, *map(str, range(500)), within=5.0)
        for request in requests:
            await request.answered.wait()
        found = Counter(request.answer for request in requests)
        assert found == {Answer.CLAIMED: 100, Answer.EXPIRED: 400}
        assert len({request.result for request in requests[:100]}) == 100
        assert max(backend.owners.values()) == 1


async def test_a_request_waits_for_a_member_to_become_idle() -> None:
    backend = FakeBackend()
    backend.put("a", idle=False)
    async with opened(backend) as scheduler:
        waiting = asked(scheduler, "one")
        await settled()
        assert (waiting[0].answer, scheduler.snapshot().waiting) == (None, 1)
        backend.put("a")
        await settled()
        assert answers(waiting) == ["a"]


async def test_a_deadline_ends_a_wait(autojump_clock: trio.testing.MockClock) -> None:
    async with opened(FakeBackend()) as scheduler:
        with pytest.raises(NoMemberError) as caught:
            await scheduler.claim("one", trio.current_time() + 7.0)
        assert caught.value.answer is Answer.EXPIRED
        assert trio.current_time() == pytest.approx(7.0)


async def test_a_deadline_during_a_claim_is_kept_and_the_member_recycled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = FakeBackend(trip_s=10.0)
    async with opened(backend) as scheduler:
        backend.put("a")
        with pytest.raises(NoMemberError):
            await scheduler.claim("one", trio.current_time() + 4.0)
        assert trio.current_time() == pytest.approx(4.0)
        assert await scheduler.claim("two") == "a"
        assert backend.recycled == ["a"]


async def test_a_cancelled_caller_leaves_no_member_claimed(autojump_clock: trio.testing.MockClock) -> None:
    backend = FakeBackend(trip_s=1.0)
    async with opened(backend) as scheduler:
        backend.put("a")
        for moment in (0.0, 0.5):
            with trio.move_on_after(moment):
                await scheduler.claim("gone")
        assert await scheduler.claim("one") == "a"


async def test_a_caller_cancelled_in_the_moment_of_success_leaves_no_member_claimed() -> None:
    backend = FakeBackend()
    async with opened(backend) as scheduler:
        scope = trio.CancelScope()
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with scope:
                    await scheduler.claim("gone")

            nursery.start_soon(call)
            await settled()
            cancel_in: Callable[[Member, str], None] = lambda _member, _spec: scope.cancel()  # noqa: E731
            backend.trouble = cancel_in
            backend.put("a")
        await settled()
        backend.trouble = None
        assert backend.recycled == ["a"]
        assert await scheduler.claim("one") == "a"


async def test_a_full_queue_refuses_requests() -> None:
    async with opened(FakeBackend(), Limits(waiting=2)) as scheduler:
        asked(scheduler, "1", "2")
        refused: Request[str, str] = Request("3")
        assert not scheduler.enqueue(refused)
        assert (refused.answer, scheduler.metrics.refused) == (None, 1)
        with pytest.raises(PoolFullError):
            await scheduler.claim("4")


async def test_a_request_is_enqueued_once() -> None:
    async with opened(FakeBackend()) as scheduler:
        request = asked(scheduler, "1")[0]
        with pytest.raises(ValueError, match="only once"):
            scheduler.enqueue(request)


async def test_shutdown_answers_all_that_wait_and_lets_claims_finish(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = FakeBackend(trip_s=1.0)
    async with opened(backend) as scheduler:
        backend.put("a")
        requests = asked(scheduler, *"123")
        await settled()
        await scheduler.shutdown()
        assert answers(requests) == ["a", "closed", "closed"]
        assert not scheduler.enqueue(Request("late"))


async def test_shutdown_does_not_wait_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    backend = FakeBackend(trip_s=math.inf)
    async with opened(backend) as scheduler:
        backend.put("a")
        requests = asked(scheduler, *"12")
        await settled()
        await scheduler.shutdown()
        assert trio.current_time() == pytest.approx(CLOSING_S)
    assert answers(requests) == ["closed", "closed"]
    assert backend.recycled == ["a"]


async def test_cancelling_the_service_answers_everybody() -> None:
    backend = FakeBackend(trip_s=math.inf)
    backend.put("a")
    requests: list[Request[str, str]] = []
    with trio.CancelScope() as scope:
        async with opened(backend) as scheduler:
            requests = asked(scheduler, *"123")
            await settled()
            scope.cancel()
            await trio.sleep_forever()
    assert answers(requests) == ["closed"] * 3
    assert backend.recycled == ["a"]


async def test_a_bug_of_a_backend_answers_everybody_and_is_raised() -> None:
    def bug(member: Member, spec: str) -> None:
        raise ZeroDivisionError

    backend = FakeBackend(trouble=bug)
    backend.put("a")
    requests: list[Request[str, str]] = []
    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        async with opened(backend) as scheduler:
            requests = asked(scheduler, *"12")
            await trio.sleep_forever()
    assert answers(requests) == ["closed"] * 2


async def test_notifying_never_blocks() -> None:
    async with opened(FakeBackend()) as scheduler:
        for _ in range(1000):
            scheduler.notify_idle()
        await settled()
        assert scheduler.snapshot().ready == 0


async def test_a_recreated_member_with_the_same_name_is_another_member() -> None:
    backend = FakeBackend()
    async with opened(backend) as scheduler:
        backend.put("uid-1")
        await settled()
        backend.lagging = True
        assert await scheduler.claim("one") == "uid-1"
        backend.lagging = False
        backend.drop("uid-1")
        backend.put("uid-2")
        backend.catch_up()
        assert await scheduler.claim("two") == "uid-2"
        await settled()
        assert scheduler.snapshot().reserved == 0


async def test_claims_never_exceed_the_limit_and_waiting_claims_hold_no_member(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = FakeBackend(trip_s=1.0)
    async with opened(backend, Limits(in_flight=4)) as scheduler:
        backend.put(*(f"m{number}" for number in range(20)))
        asked(scheduler, *map(str, range(20)))
        await settled()
        found = scheduler.snapshot()
        assert (found.in_flight, found.reserved, found.ready, found.waiting) == (4, 4, 16, 16)


@pytest.mark.parametrize("conflicting", [False, True])
async def test_a_storm_of_requests_with_conflicts_and_a_shutdown(
    autojump_clock: trio.testing.MockClock, *, conflicting: bool
) -> None:
    """Send 600 requests for 200 members, release claimed members so that they are used again, and shut down before all requests
    are answered. If ``conflicting``, about a third of the claims conflict.
    """

    def third(member: Member, spec: str) -> None:
        if conflicting and member.version % 3 == 0:
            backend.put(member.uid)
            raise ConflictError(member.uid)

    backend = FakeBackend(trip_s=0.02, trouble=third)
    backend.put(*(f"m{number}" for number in range(200)))
    requests: list[Request[str, str]] = []
    async with opened(backend) as scheduler:
        requests = asked(scheduler, *map(str, range(600)))
        for round_ in range(20):
            await trio.sleep(0.01)
            for uid in list(backend.truth)[round_::7]:
                if not backend.truth[uid].idle:
                    backend.put(uid)
            if round_ % 5 == 0:
                backend.drop(next(iter(backend.truth)))
    assert all(request.answer is not None for request in requests)
    assert Counter(request.answer for request in requests).keys() <= {Answer.CLAIMED, Answer.CLOSED, Answer.CONFLICTED}
    assert max(backend.owners.values()) == 1
