"""Places and shares: what owners that hang, fail or are slow may take from others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

import hypothesis.strategies as st
import pytest
import trio
import trio.testing
from hypothesis import given, settings

from tests.cluster.reconciler.samples import Row, RowAttempt, a_table, owner_of, put
from tests.scale import scaled
from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Owner
from wharfinger.cluster.reconciler.service import open_reconciler
from wharfinger.cluster.reconciler.shares import Shares

OPTIONS = ReconcilerOptions(concurrency=4, owner_concurrency=2, slow_s=5, slow_concurrency=8)


def shares_of(options: ReconcilerOptions = OPTIONS) -> Shares[int, Row]:
    return Shares(options)


def test_an_operation_that_is_slow_gives_its_place_up_once() -> None:
    shares, owner = shares_of(), Owner[int, Row]("a")
    operations = [shares.begin(owner, 0.0, retry=False) for _ in range(4)]
    assert shares.next_at() == 5
    assert shares.take_slow(4.9) is None
    assert shares.take_slow(5) is operations[0]
    assert shares.free
    assert (shares.slow, owner.running, owner.halvings) == (1, 4, 1)
    shares.end(operations[0], failed=True)
    assert (shares.slow, owner.running) == (0, 3)
    for operation in operations[1:]:
        shares.end(operation, failed=False)
    assert shares.next_at() == float("inf")


def test_no_more_operations_than_allowed_give_their_places_up() -> None:
    shares, owner = shares_of(replace(OPTIONS, slow_concurrency=2)), Owner[int, Row]("a")
    operations = [shares.begin(owner, 0.0, retry=False) for _ in range(4)]
    while shares.take_slow(10) is not None:
        pass
    assert [operation.slow for operation in operations] == [True, True, False, False]
    [shares.begin(owner, 10.0, retry=False) for _ in range(2)]
    assert not shares.free


def test_a_share_halves_when_slow_doubles_when_it_fails_promptly_and_is_whole_after_a_success() -> None:
    shares, owner = (
        shares_of(replace(OPTIONS, owner_concurrency=8, concurrency=16, slow_concurrency=64)),
        Owner[int, Row]("a"),
    )
    slow = [shares.begin(owner, 0.0, retry=False) for _ in range(3)]
    while shares.take_slow(5) is not None:
        pass
    for operation in slow:
        shares.end(operation, failed=True)
    assert owner.halvings == 3
    shares.end(shares.begin(owner, 6.0, retry=False), failed=True)
    assert owner.halvings == 2
    shares.end(shares.begin(owner, 6.0, retry=False), failed=False)
    assert owner.halvings == 0


def test_the_more_is_slow_the_less_any_owner_may_have() -> None:
    shares = shares_of(replace(OPTIONS, concurrency=16, owner_concurrency=8, slow_concurrency=8))
    allowed: list[int] = []
    for number in range(5):
        owner = Owner[int, Row](f"owner {number}")
        while shares.allows(owner) and shares.free:
            shares.begin(owner, 0.0, retry=False)
        allowed.append(owner.running)
        while shares.take_slow(5) is not None:
            pass
    assert allowed == [8, 1, 1, 1, 1]


def test_retries_leave_a_quarter_of_the_places() -> None:
    shares, owner = shares_of(), Owner[int, Row]("a")
    for _ in range(3):
        assert shares.may_retry
        shares.begin(owner, 0.0, retry=True)
    assert (shares.may_retry, shares.free) == (False, True)


# --- owners that misbehave, in virtual time ---

MOODS = ("hang", "slow", "fail", "crash")
BATCHES = [pytest.param(False, id="single"), pytest.param(True, id="batch")]


class Neighbours:
    """Owners are named after how their operations end; the good one's end at once."""

    def __init__(self) -> None:
        self.attempted: dict[int, float] = {}
        self.healthy = trio.Event()

    async def update(self, attempt: RowAttempt) -> None:
        self.attempted.setdefault(attempt.key, trio.current_time())
        mood, _, _ = attempt.row.owner.partition(" ")
        if mood == "good":
            self.healthy.set()
        if mood == "hang":
            await trio.sleep_forever()
        elif mood == "slow":
            await trio.sleep(30)
        elif mood == "fail":
            raise ClusterError("no")
        elif mood == "crash":
            raise OSError("disk")

    async def delete(self, attempt: RowAttempt) -> None:
        await self.update(attempt)

    async def prune(self, snapshot: object) -> None:
        pass

    async def update_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        for attempt in attempts:
            await self.update(attempt)
        return {attempt.key: None for attempt in attempts}

    async def delete_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        return await self.update_batch(attempts)


async def delay_of_a_healthy_row(bad: list[tuple[str, int]], later_s: float, *, batch: bool) -> float:
    """How long the first row of a healthy owner waits for its first attempt, written so long after the others."""
    options = replace(OPTIONS, slow_concurrency=64, prune_s=0)
    table, target = a_table(), Neighbours()
    async with open_reconciler(
        table, target, name="test", owner=owner_of, options=options, batch=target if batch else None, draw=lambda: 0.5
    ):
        rows = [
            Row(100 * number + key, f"{mood} {number}")
            for number, (mood, count) in enumerate(bad, 1)
            for key in range(count)
        ]
        put(table, *rows)
        await trio.sleep(later_s)
        began = trio.current_time()
        put(table, Row(0, "good"))
        await target.healthy.wait()
        return target.attempted[0] - began


@pytest.mark.parametrize("batch", BATCHES)
@settings(max_examples=scaled(1000, 40), deadline=None)
@given(
    bad=st.lists(st.tuples(st.sampled_from(MOODS), st.integers(1, 12)), max_size=12),
    later_s=st.sampled_from([0.1, 3.0, 12.0, 130.0, 700.0]),
)
def test_bad_owners_delay_a_healthy_one_by_a_bounded_time(
    batch: bool, bad: list[tuple[str, int]], later_s: float
) -> None:
    """The bound that `shares` promises: ``slow_s`` for each round of places that they take."""

    async def run() -> float:
        return await delay_of_a_healthy_row(bad, later_s, batch=batch)

    delay = trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    assert delay <= OPTIONS.slow_s * ceil(len(bad) / OPTIONS.concurrency) + 1


@pytest.mark.parametrize("batch", BATCHES)
async def test_a_hundred_rows_that_fail_do_not_starve_a_new_one(
    batch: bool, autojump_clock: trio.testing.MockClock
) -> None:
    assert await delay_of_a_healthy_row([("fail", 100)] * 3, 300, batch=batch) < 1


async def test_two_owners_with_eight_operations_that_hang_delay_a_third_by_the_time_until_they_are_slow(
    autojump_clock: trio.testing.MockClock,
) -> None:
    assert await delay_of_a_healthy_row([("hang", 8), ("hang", 8)], 1, batch=False) <= OPTIONS.slow_s
