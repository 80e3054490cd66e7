"""The metrics of a pool."""

import trio
import trio.abc

from tests.pools.claims.fake_backend import FakeBackend
from wharfinger.pools.claims.events import Enqueued, Limits, Member, Seen
from wharfinger.pools.claims.machine import step
from wharfinger.pools.claims.metrics import Snapshot, snapshot_of
from wharfinger.pools.claims.scheduler import open_pool_scheduler
from wharfinger.pools.claims.state import new_pool_state


def test_a_snapshot_counts_members_and_requests() -> None:
    state = new_pool_state(Limits(in_flight=1))
    for event in (Seen(Member("a", 1)), Seen(Member("b", 1)), Enqueued(0, 9.0), Enqueued(1, 9.0), Enqueued(2, 9.0)):
        state, _ = step(state, event)
    assert snapshot_of(state, 4.0) == Snapshot(
        ready=1, waiting=2, in_flight=1, reserved=1, members=2, closed=False, last_dispatch=4.0
    )


async def test_latencies_are_measured_to_the_first_claim_and_to_its_success(autojump_clock: trio.abc.Clock) -> None:
    backend = FakeBackend(trip_s=0.2)
    async with open_pool_scheduler(backend) as scheduler:
        backend.notify = scheduler.notify_idle
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scheduler.claim, "one")
            await trio.sleep(1.0)
            backend.put("a")
        assert (scheduler.metrics.dispatch_s.total, round(scheduler.metrics.claim_s.total, 3)) == (1.0, 1.2)
        assert sum(scheduler.metrics.dispatch_s.counts) == 1
        assert (scheduler.metrics.counters.accepted, scheduler.metrics.counters.succeeded) == (1, 1)
