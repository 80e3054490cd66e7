"""The scheduler under load, in simulated time: many more requests than members, churn, and a shutdown under load."""

import random
from collections import Counter

import pytest
import trio
import trio.testing

from tests.pools.claims.fake_backend import FakeBackend
from tests.pools.claims.test_scheduler import opened
from wharfinger.pools.claims.backend import ConflictError
from wharfinger.pools.claims.events import Answer, Member
from wharfinger.pools.claims.scheduler import Request

Requests = list[Request[str, str]]


async def test_two_thousand_requests_for_five_hundred_members(autojump_clock: trio.testing.MockClock) -> None:
    backend = FakeBackend(trip_s=0.02)
    backend.put(*(f"m{number}" for number in range(500)))
    async with opened(backend) as scheduler:
        requests: Requests = [Request(str(number), 30.0) for number in range(2000)]
        for request in requests:
            assert scheduler.enqueue(request)
        for request in requests:
            await request.answered.wait()
    assert Counter(request.answer for request in requests) == {Answer.CLAIMED: 500, Answer.EXPIRED: 1500}
    assert len({request.result for request in requests if request.result}) == 500
    assert [request.answer for request in requests[:500]] == [Answer.CLAIMED] * 500


async def test_churn_with_deletions(autojump_clock: trio.testing.MockClock) -> None:
    """Send 800 requests for 400 members, and delete 200 members during claims while the cache is delayed."""
    rng = random.Random(7)  # noqa: S311 - an order
    backend = FakeBackend(trip_s=0.02)
    backend.put(*(f"m{number}" for number in range(400)))
    async with opened(backend) as scheduler:
        requests: Requests = [Request(str(number), 20.0) for number in range(800)]
        for request in requests:
            assert scheduler.enqueue(request)
        for number in range(200):
            await trio.sleep(0.001)
            backend.lagging = number % 3 != 0
            backend.drop(rng.choice(sorted(backend.truth)))
            backend.lagging = False
            if number % 10 == 0:
                backend.catch_up()
        backend.catch_up()
        for request in requests:
            await request.answered.wait()
    found = Counter(request.answer for request in requests)
    assert found[Answer.CLAIMED] + found[Answer.EXPIRED] == 800
    assert 200 <= found[Answer.CLAIMED] <= 400
    assert max(backend.owners.values()) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("moment", [0.0, 0.005, 0.02, 0.031, 0.6])
async def test_a_shutdown_answers_all_concurrent_callers(autojump_clock: trio.testing.MockClock, moment: float) -> None:
    def third(member: Member, spec: str) -> None:
        if member.version % 3 == 0:
            backend.put(member.uid)
            raise ConflictError(member.uid)

    backend = FakeBackend(trip_s=0.02, trouble=third)
    backend.put(*(f"m{number}" for number in range(200)))
    accepted: Requests = []
    refused = 0
    async with opened(backend) as scheduler, trio.open_nursery() as nursery:

        async def call(number: int) -> None:
            nonlocal refused
            await trio.sleep(number * 0.001)
            request: Request[str, str] = Request(str(number))
            if scheduler.enqueue(request):
                accepted.append(request)
                await request.answered.wait()
            else:
                refused += 1

        for number in range(600):
            nursery.start_soon(call, number)
        await trio.sleep(moment)
        await scheduler.shutdown()
        assert trio.current_time() <= moment + 5.0
    assert len(accepted) + refused == 600
    assert all(request.answer is not None for request in accepted)
    assert max(backend.owners.values(), default=0) <= 1
