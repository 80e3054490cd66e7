"""Weaknesses of statedb's reconciler, with their numbers in ``tests/spec_table_cases.py``.

Each test would fail with statedb's behavior.
"""

from dataclasses import replace

import pytest
import trio
import trio.testing

from tests.cluster.reconciler.samples import OPTIONS, RefusedError, Row, Target, a_table, drop, put
from tests.cluster.reconciler.test_service import Clock, reconciling
from tests.cluster.reconciler.world import FAILED, a_world
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.status import Kind, Statuses


async def test_1_a_slow_target_blocks_nothing_else(autojump_clock: Clock) -> None:
    """While an operation on a slow target hangs, statuses, retries, prunes and health reports continue."""
    table = a_table()
    target = Target(gates={1: trio.Event()}, errors={2: ClusterError("no")})
    async with reconciling(table, target) as reconciler:
        put(table, 1, 2, 3)
        reconciler.prune()
        await trio.sleep(1)
        status = reconciler.status(3)
        assert status is not None
        assert status.kind is Kind.DONE
        assert target.history.count("update(2) fail") > 3
        assert "prune(n=3)" in target.history
        assert reconciler.health().startswith("Degraded, 1 error")
        put(table, Row(1, text="newer"))
        await trio.sleep(1)
        assert target.busy == {1}
        target.gates.pop(1).set()
        await trio.sleep(1)
        assert target.rows[1].text == "newer"


@pytest.mark.parametrize("succeeds", [True, False])
async def test_2_a_retry_is_not_lost_to_the_outcome_of_another_reconciler(
    succeeds: bool, autojump_clock: Clock
) -> None:
    table, statuses = a_table(), Statuses[int]()
    target, others = Target(errors={1: ClusterError("no")}), Target()
    async with (
        reconciling(table, target, name="one", statuses=statuses) as one,
        reconciling(table, others, name="other", statuses=statuses) as other,
    ):
        revision = put(table, 1)
        await target.expect("update(1) fail")
        target.gates[1] = trio.Event()
        await trio.sleep(0.06)
        assert target.busy == {1}
        other.refresh([1])
        await others.expect("update-refresh(1)")
        if succeeds:
            target.errors.clear()
        target.gates.pop(1).set()
        await trio.sleep(0.01)
        assert statuses.of(1).get("one").kind is (Kind.DONE if succeeds else Kind.ERROR)
        target.errors.clear()
        assert (await one.wait_until_reconciled(revision, "a", until_settled=True)).low_watermark == 0
        assert one.health() == "OK, 1 object"


async def test_3_a_refresh_is_made_once_whatever_another_reconciler_does(autojump_clock: Clock) -> None:
    table = a_table()
    target, others = Target(), Target()
    async with reconciling(table, target, name="one") as one, reconciling(table, others, name="other") as other:
        revision = put(table, 1)
        for each in (one, other):
            await each.wait_until_reconciled(revision, "a", until_settled=True)
        target.gates[1] = trio.Event()
        one.refresh([1])
        await trio.testing.wait_all_tasks_blocked()
        other.refresh([1])
        await others.expect("update-refresh(1)")
        target.gates[1].set()
        await trio.sleep(60)
        assert target.history == others.history == ["update(1)", "update-refresh(1)"]


async def test_4_a_deletion_from_before_the_start_does_not_block_a_wait(autojump_clock: Clock) -> None:
    table = a_table()
    put(table, 1)
    revision = drop(table, 1)
    async with reconciling(table, Target()) as reconciler:
        with trio.fail_after(1):
            progress = await reconciler.wait_until_reconciled(revision, "a")
            assert (progress.revision, progress.low_watermark) == (revision, 0)


async def test_5_retries_are_not_starved_if_changes_fill_every_round(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(errors={0: ClusterError("no")})
    async with reconciling(table, target, replace(OPTIONS, concurrency=1, round_size=5)) as reconciler:
        put(table, *range(1000))
        await reconciler.wait_until_reconciled(1, "a")
        for key in range(1, 1000):
            target.gates[key] = trio.Event()
        for key in range(1, 100):
            await trio.sleep(0.1)
            target.gates[key].set()
        assert target.history.count("update(0) fail") >= 5
        assert len(target.history) < 200


def test_6_pauses_are_jittered_and_a_permanent_error_waits_for_a_change() -> None:
    with a_world(a_table()) as world:
        put(world.table, 1, 2, 3)
        world.take_in()
        for draw in (0.0, 0.9):
            attempt = world.take()
            world.machine.finish(attempt, attempt.revision, FAILED, now=world.now, draw=draw)
        first, second = world.machine.failures("a")
        assert first.next_at > second.next_at
        world.run(RefusedError("never"))
        world.wait(599)
        world.rest()
        assert [failure.key for failure in world.machine.failures("a")] == [3]
        put(world.table, Row(3, text="newer"))
        world.take_in()
        world.rest()
        assert world.machine.failures("a") == ()


async def test_6_an_operation_has_a_deadline(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(gates={1: trio.Event()})
    async with reconciling(table, target, replace(OPTIONS, operation_s=10)) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1), "a")
        [failure] = reconciler.failures("a")
        assert str(failure.error) == "updating 1 took longer than 10 s"
        target.gates[1].set()
        await reconciler.wait_until_reconciled(1, "a", until_settled=True)


def test_7_a_replaced_row_is_marked_as_replaced() -> None:
    """A row may be deleted and inserted again between two reads.

    The next attempt is marked, because the live object may be a different one.
    """
    with a_world(a_table()) as world:
        put(world.table, 1, 2)
        world.take_in()
        world.rest()
        drop(world.table, 1)
        put(world.table, 1, Row(2, text="newer"))
        world.take_in()
        world.run(FAILED)
        world.rest()
        world.wait(1)
        world.rest()
        with a_world(world.table) as later:
            later.take_in()
            assert [attempt.replaces for attempt in later.rest()] == [False, False]
        put(world.table, Row(1, text="newer"))
        world.take_in()
        assert [attempt.replaces for attempt in world.rest()] == [False]


def test_7_a_row_is_marked_as_replaced_until_it_is_done() -> None:
    with a_world(a_table()) as world:
        put(world.table, 1)
        world.take_in()
        world.rest()
        drop(world.table, 1)
        put(world.table, 1)
        world.take_in()
        assert world.run(FAILED).replaces
        world.wait(1)
        assert world.run().replaces
        world.machine.refresh(1, world.now)
        world.wait(0)
        assert not world.run().replaces


async def test_8_a_failed_prune_is_retried_soon_and_an_early_request_is_remembered(
    autojump_clock: Clock,
) -> None:
    table, target = a_table(), Target(faulty=True)
    filling = table.initializer("start")
    async with reconciling(table, target, replace(OPTIONS, prune_s=60)):
        await trio.sleep(600)
        assert not target.pruned
        filling.done()
        await target.expect("prune(n=0) fail", "prune(n=0) fail", "prune(n=0) fail")
        target.faulty = False
        await target.expect("prune(n=0)")
        assert trio.current_time() < 602 + autojump_clock.autojump_threshold
        await trio.sleep(59)
        assert target.history.count("prune(n=0)") == 1
        await trio.sleep(2)
        assert target.history.count("prune(n=0)") == 2


async def test_9_an_outcome_does_not_change_the_table(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(errors={2: ClusterError("no")})
    async with reconciling(table, target) as reconciler:
        revision = put(table, 1, 2)
        watch = table.watch()
        await reconciler.wait_until_reconciled(revision, "a")
        await trio.sleep(60)
        assert not watch.fired
        assert table.snapshot().revision == 2
        assert reconciler.statistics().rounds == 1


def test_10_the_same_events_have_the_same_order() -> None:
    """Owners alternate, and each owner's rows are processed in the order of their revisions, and not of the hashes of their
    keys.
    """
    orders = []
    for _ in range(3):
        with a_world(a_table()) as world:
            put(world.table, Row(7, "c"), Row(5, "c"), Row(6, "a"), Row(1, "a"), Row(3, "c"))
            world.take_in()
            orders.append([attempt.key for attempt in world.rest()])
    assert orders == [[7, 6, 5, 1, 3]] * 3


async def test_14_a_refreshed_row_is_young_however_old_its_revision(autojump_clock: Clock) -> None:
    table, target = a_table(), Target()
    async with reconciling(table, target, replace(OPTIONS, refresh_s=100)) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1, 2), "a", until_settled=True)
        await trio.sleep(60)
        reconciler.refresh([1])
        await trio.sleep(60)
        assert target.history[2:] == ["update-refresh(1)", "update-refresh(2)"]


async def test_15_a_failure_has_a_history(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(errors={1: ClusterError("no route")})
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1), "a")
        await target.expect("update(1) fail", "update(1) fail")
        target.errors[1] = RefusedError("no such field")
        await reconciler.wait_until_reconciled(1, "a", until_settled=True)
        [failure] = reconciler.failures("a")
        assert [(outcome.message, outcome.times) for outcome in failure.history] == [
            ("no route", 2),
            ("no such field", 1),
        ]
        assert (failure.since, failure.attempts) == (target.times[0], 3)
