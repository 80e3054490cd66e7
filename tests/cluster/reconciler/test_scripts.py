"""The test scripts of statedb's reconciler (see docs/reconciler.md), translated to Python.

In each step, the most recent operations must be the expected ones, in any order.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from tests.cluster.reconciler.samples import (
    OPTIONS,
    BatchTarget,
    Row,
    RowTable,
    Target,
    a_table,
    drop,
    owner_of,
    put,
)
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.service import Reconciler, open_reconciler
from wharfinger.cluster.reconciler.status import Kind


@asynccontextmanager
async def script(
    table: RowTable, target: Target, options: ReconcilerOptions = OPTIONS
) -> AsyncIterator[Reconciler[int, Row]]:
    batch = target if isinstance(target, BatchTarget) else None
    with trio.fail_after(100_000):
        async with open_reconciler(
            table, target, name="test", owner=owner_of, options=options, batch=batch, draw=lambda: 0.0
        ) as reconciler:
            yield reconciler


async def healthy(reconciler: Reconciler[int, Row], told: str) -> None:
    watch = reconciler.watch("a")
    while not reconciler.health().startswith(told):
        await watch.wait()
        watch = reconciler.watch("a")


def kinds(reconciler: Reconciler[int, Row], *keys: int) -> list[Kind | None]:
    statuses = [reconciler.status(key) for key in keys]
    return [status.kind if status else None for status in statuses]


async def test_the_oracle_detects_differences(autojump_clock: trio.testing.MockClock) -> None:
    """A wait for operations ends only if the most recent operations are those that are expected, in any order."""
    target = Target(history=["delete(2)", "update(1)", "update(3)", "update(1)"])
    await target.expect("update(1)", "update(1)", "update(3)")
    for other in (("delete(2)",), ("update(1)", "update(3)", "update(3)"), ("update(1)", "update(1)")):
        with trio.move_on_after(60) as waiting:
            await target.expect(*other)
        assert waiting.cancelled_caught


@pytest.mark.parametrize("target", [Target(), BatchTarget()], ids=["incremental", "batching"])
async def test_incremental_and_batched_targets_follow_the_table(
    target: Target, autojump_clock: trio.testing.MockClock
) -> None:
    target = type(target)()
    table = a_table()
    async with script(table, target) as reconciler:
        put(table, 1, 2, 3)
        await target.expect("update(1)", "update(2)", "update(3)")
        await healthy(reconciler, "OK, 3 objects")
        assert kinds(reconciler, 1, 2, 3) == [Kind.DONE] * 3
        put(table, Row(1, faulty=True))
        await target.expect("update(1) fail", "update(1) fail")
        await healthy(reconciler, "Degraded, 1 error: 1: update fail")
        status = reconciler.status(1)
        assert status is not None
        assert (status.kind, status.error) == (Kind.ERROR, "update fail")
        assert kinds(reconciler, 2, 3) == [Kind.DONE] * 2
        put(table, Row(1))
        await target.expect("update(1)")
        await healthy(reconciler, "OK, 3 objects")
        drop(table, 1, 2)
        await target.expect("delete(1)", "delete(2)")
        await healthy(reconciler, "OK, 1 object")
        target.faulty = True
        drop(table, 3)
        await target.expect("delete(3) fail", "delete(3) fail")
        await healthy(reconciler, "Degraded, 1 error: 3: delete fail")
        assert not len(table.snapshot())
        assert kinds(reconciler, 3) == [Kind.ERROR]
        target.faulty = False
        await target.expect("delete(3)")
        await healthy(reconciler, "OK, 0 objects")
        assert kinds(reconciler, 1, 2, 3) == [None] * 3
        told = reconciler.statistics()
        assert (told.keys.rows, told.keys.failing, told.keys.owners) == (0, 0, 0)
        assert told.updates.errors >= 2
        assert told.deletions.errors >= 2
        assert told.updates.count == sum(one.startswith("update") for one in target.history)
        assert told.deletions.count == sum(one.startswith("delete") for one in target.history)


async def test_prune_waits_for_the_initialized_table(autojump_clock: trio.testing.MockClock) -> None:
    """A prune never runs before the table is initialized. A request for a prune that arrives earlier is remembered."""
    target, table = Target(), a_table()
    filling = table.initializer("start")
    async with script(table, target, replace(OPTIONS, prune_s=3600)) as reconciler:
        put(table, 1, 2)
        await target.expect("update(1)", "update(2)")
        reconciler.prune()
        await trio.sleep(7200)
        assert len(target.history) == 2
        filling.done()
        await target.expect("prune(n=2)")
        target.faulty = True
        reconciler.prune()
        await target.expect("prune(n=2) fail")
        await trio.testing.wait_all_tasks_blocked()
        assert reconciler.health() == "Degraded, 1 error: prune: prune fail"
        assert reconciler.statistics().prune_error == "prune fail"
        target.faulty = False
        reconciler.prune()
        await target.expect("prune(n=2)")
        await trio.testing.wait_all_tasks_blocked()
        assert reconciler.health() == "OK, 2 objects"
        drop(table, 1)
        await target.expect("delete(1)")
        reconciler.prune()
        await target.expect("prune(n=1)")
        drop(table, 2)
        await target.expect("delete(2)")
        reconciler.prune()
        await target.expect("prune(n=0)")
        await trio.testing.wait_all_tasks_blocked()
        told = reconciler.statistics()
        assert (told.prunes.count, told.prunes.errors, told.prune_error) == (5, 1, "")


async def test_prune_runs_for_an_empty_table(autojump_clock: trio.testing.MockClock) -> None:
    """A table that is initialized without rows is pruned as well."""
    target, table = Target(), a_table()
    filling = table.initializer("start")
    async with script(table, target, replace(OPTIONS, prune_s=3600)):
        await trio.sleep(1)
        assert not target.history
        filling.done()
        await target.expect("prune(n=0)")


async def test_done_rows_are_refreshed(autojump_clock: trio.testing.MockClock) -> None:
    """A done row is updated again after some time. If this refresh fails, it is retried as a refresh."""
    target, table = Target(), a_table()
    async with script(table, target, replace(OPTIONS, refresh_s=60)) as reconciler:
        put(table, 1)
        await target.expect("update(1)")
        await target.expect("update-refresh(1)")
        assert target.times[1] - target.times[0] == pytest.approx(60)
        target.faulty = True
        await target.expect("update-refresh(1) fail", "update-refresh(1) fail")
        await healthy(reconciler, "Degraded, 1 error: 1: update fail")
        target.faulty = False
        await target.expect("update-refresh(1)")
        await healthy(reconciler, "OK, 1 object")
        assert kinds(reconciler, 1) == [Kind.DONE]
