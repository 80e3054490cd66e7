"""A running reconciler in virtual time: its workers, rounds, waits and prunes, and several reconcilers of one table."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from tests.cluster.reconciler.samples import (
    OPTIONS,
    BatchTarget,
    RefusedError,
    Row,
    RowAttempt,
    RowTable,
    Target,
    a_table,
    drop,
    owner_of,
    put,
)
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.metrics import MemoryMetrics, Operation
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.cluster.reconciler.service import Progress, Reconciler, open_reconciler
from wharfinger.cluster.reconciler.status import Kind, Statuses
from wharfinger.cluster.tables.snapshot import Snapshot

Clock = trio.testing.MockClock
RowReconciler = Reconciler[int, Row]


@asynccontextmanager
async def reconciling(
    table: RowTable,
    target: Target,
    options: ReconcilerOptions = OPTIONS,
    name: str = "test",
    statuses: Statuses[int] | None = None,
) -> AsyncIterator[RowReconciler]:
    batch = target if isinstance(target, BatchTarget) else None
    with trio.fail_after(100_000):
        async with open_reconciler(
            table,
            target,
            name=name,
            owner=owner_of,
            options=options,
            statuses=statuses,
            batch=batch,
            draw=lambda: 0.0,
        ) as reconciler:
            yield reconciler


# --- waiting -------------------------------------------------------------------------------------------------------------------


async def test_a_wait_for_revision_0_returns_at_once(autojump_clock: Clock) -> None:
    async with reconciling(a_table(), Target()) as reconciler:
        began = trio.current_time()
        assert await reconciler.wait_until_reconciled(0, "a") == Progress(0, 0)
        assert await reconciler.wait_until_reconciled(0, "a", until_settled=True) == Progress(0, 0)
        assert trio.current_time() == began


async def test_a_wait_for_a_future_revision_ends_when_it_is_reconciled(autojump_clock: Clock) -> None:
    table = a_table()
    async with reconciling(table, Target()) as reconciler, trio.open_nursery() as nursery:
        told: list[Progress] = []

        async def wait() -> None:
            told.append(await reconciler.wait_until_reconciled(1, "a"))

        nursery.start_soon(wait)
        await trio.sleep(60)
        assert not told
        put(table, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert told == [Progress(1, 0)]


async def test_the_watermark_is_the_failing_revision(autojump_clock: Clock) -> None:
    """The watermark is the lowest revision of a failing row, or 0. A wait with ``until_settled`` lasts until it is 0."""
    target, table = Target(errors={2: ClusterError("no")}), a_table()
    async with reconciling(table, target) as reconciler:
        revision = put(table, 1, 2, 3)
        assert await reconciler.wait_until_reconciled(revision, "a") == Progress(3, 2)
        [failure] = reconciler.failures("a")
        assert (failure.key, failure.attempts, failure.permanent) == (2, 1, False)
        assert reconciler.progress("a") == (2,)
        del target.errors[2]
        assert await reconciler.wait_until_reconciled(revision, "a", until_settled=True) == Progress(3, 0)
        assert reconciler.failures("a") == ()


async def test_a_wait_for_settled_rows_ends_when_they_are_given_up(autojump_clock: Clock) -> None:
    target, table = Target(errors={1: ClusterError("no"), 2: RefusedError("never")}), a_table()
    async with reconciling(table, target, replace(OPTIONS, give_up=3)) as reconciler:
        revision = put(table, Row(1, "a"), Row(2, "b"))
        await reconciler.wait_until_reconciled(revision, "b", until_settled=True)
        assert [(failure.key, failure.attempts) for failure in reconciler.failures("b")] == [(2, 1)]
        await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        assert [(failure.key, failure.attempts) for failure in reconciler.failures("a")] == [(1, 3)]
        assert trio.current_time() - target.times[0] == pytest.approx(0.15)


async def test_failing_objects_of_one_owner_do_not_block_another(autojump_clock: Clock) -> None:
    """The operations of one owner hang, and take all workers that one owner may have. The operations of another owner still
    succeed.
    """
    target = Target(gates={key: trio.Event() for key in range(100)})
    table = a_table()
    async with reconciling(table, target) as reconciler:
        put(table, *(Row(key, "hangs") for key in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        assert target.most == OPTIONS.owner_concurrency
        began = trio.current_time()
        revision = put(table, *(Row(key, "b") for key in range(100, 200)))
        progress = await reconciler.wait_until_reconciled(revision, "b", until_settled=True)
        assert progress == Progress(200, 0)
        assert trio.current_time() - began < 0.01
        assert len(reconciler.progress("hangs")) == 100


async def test_a_removed_row_is_settled_when_its_object_is_deleted(autojump_clock: Clock) -> None:
    table, target = a_table(), Target()
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1, 2), "a", until_settled=True)
        target.gates[1] = trio.Event()
        revision = drop(table, 1)
        with trio.move_on_after(60) as scope:
            await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        assert scope.cancelled_caught
        status = reconciler.status(1)
        assert status is not None
        assert status.kind is Kind.PENDING
        target.gates[1].set()
        await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        assert sorted(target.rows) == [2]


# --- statuses ------------------------------------------------------------------------------------------------------------------


async def test_each_of_several_reconcilers_performs_each_row_once(autojump_clock: Clock) -> None:
    """Reconcilers do not write statuses to the table, so the table gets only one revision for each write of a row."""
    table, targets = a_table(), [Target(), Target(errors={2: RefusedError("no")})]
    statuses = Statuses[int]()
    async with (
        reconciling(table, targets[0], name="apply", statuses=statuses) as first,
        reconciling(table, targets[1], name="labels", statuses=statuses) as second,
    ):
        revision = put(table, 1, 2, 3)
        for one in (first, second):
            await one.wait_until_reconciled(revision, "a", until_settled=True)
            await one.wait_until_reconciled(revision, "a")
        await trio.sleep(60)
        assert sorted(targets[0].history) == ["update(1)", "update(2)", "update(3)"]
        assert sorted(targets[1].history) == ["update(1)", "update(2) fail", "update(3)"]
        assert table.snapshot().revision == 3
        assert statuses.of(1).text(trio.current_time()) == "Done: apply labels (60.0s ago)"
        assert statuses.of(2).text(trio.current_time()).startswith("Errored: labels (no), Done: apply")
        assert [one.statistics().name for one in (first, second)] == ["apply", "labels"]
        assert [one.statistics().updates.errors for one in (first, second)] == [0, 1]
    assert not statuses.names


async def test_a_failure_is_retried_although_another_reconciler_succeeded(autojump_clock: Clock) -> None:
    """Another reconciler may finish the row while an attempt of this reconciler is running. If this attempt then fails, this
    reconciler retries it nevertheless.
    """
    table, statuses = a_table(), Statuses[int]()
    slow = Target(errors={1: ClusterError("no")}, gates={1: trio.Event()})
    async with (
        reconciling(table, slow, name="slow", statuses=statuses) as first,
        reconciling(table, Target(), name="quick", statuses=statuses) as second,
    ):
        revision = put(table, 1)
        await second.wait_until_reconciled(revision, "a", until_settled=True)
        slow.gates.pop(1).set()
        await first.wait_until_reconciled(revision, "a")
        assert first.health() == "Degraded, 1 error: 1: no"
        assert first.statistics().keys.failing == 1
        assert statuses.of(1).get("slow").kind is Kind.ERROR
        await slow.expect("update(1) fail", "update(1) fail")
        slow.errors.clear()
        await first.wait_until_reconciled(revision, "a", until_settled=True)
        assert first.health() == "OK, 1 object"


async def test_a_status_belongs_to_the_current_row(autojump_clock: Clock) -> None:
    """The status of a changed row is "pending" even before the reconciler has read the change."""
    table, target = a_table(), Target()
    async with reconciling(table, target) as reconciler:
        assert reconciler.status(1) is None
        await reconciler.wait_until_reconciled(put(table, 1), "a", until_settled=True)
        before = reconciler.status(1)
        assert before is not None
        assert before.kind is Kind.DONE
        put(table, Row(1, text="newer"), 2)
        for key in (1, 2):
            status = reconciler.status(key)
            assert status is not None
            assert status.kind is Kind.PENDING
        await reconciler.wait_until_reconciled(table.snapshot().revision, "a", until_settled=True)
        after = reconciler.status(1)
        assert after is not None
        assert after.kind is Kind.DONE
        assert after.id > before.id


async def test_two_reconcilers_of_one_name_cannot_share_statuses(autojump_clock: Clock) -> None:
    statuses = Statuses[int]()
    async with reconciling(a_table(), Target(), statuses=statuses):
        with pytest.raises(ValueError, match="'test'"):
            async with reconciling(a_table(), Target(), statuses=statuses):
                raise AssertionError
    assert not statuses.names


# --- rounds --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(("rows", "rounds"), [(9, [9]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (21, [10, 10, 1])])
async def test_a_round_takes_a_limited_number_of_changes(
    rows: int, rounds: list[int], batches: bool, autojump_clock: Clock
) -> None:
    table, target = a_table(), BatchTarget() if batches else Target()
    async with reconciling(table, target, replace(OPTIONS, round_size=10)) as reconciler:
        await trio.testing.wait_all_tasks_blocked()
        revision = put(table, *range(rows))
        await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        told = reconciler.statistics()
        taken = len(rounds) if rows % 10 else len(rounds) + 1  # one more round may run, and finds nothing
        assert len(rounds) <= told.rounds <= taken
        assert (told.updates.count, told.revision) == (rows, rows)
        if isinstance(target, BatchTarget):
            assert target.sizes == rounds


async def test_the_next_round_does_not_wait_for_slow_operations(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(gates={0: trio.Event()})
    async with reconciling(table, target, replace(OPTIONS, round_size=10)) as reconciler:
        put(table, *range(100))
        await trio.sleep(1)
        assert len(target.history) == 99
        assert reconciler.progress("a") == (0,)


async def test_changes_are_read_slowly_while_all_workers_are_busy(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(gates={key: trio.Event() for key in range(1000)})
    async with reconciling(table, target, replace(OPTIONS, concurrency=2, round_size=10)) as reconciler:
        put(table, *range(1000))
        await trio.sleep(1.05)
        assert reconciler.statistics().keys.rows == 10 * 11


async def test_changes_are_read_during_constant_retries(autojump_clock: Clock) -> None:
    """A retry is always due for the only worker, but new changes must still be read."""

    class Slow(Target):
        async def update(self, attempt: RowAttempt) -> None:
            await trio.sleep(0.1)
            await super().update(attempt)

    table, target = a_table(), Slow(faulty=True)
    options = replace(OPTIONS, concurrency=1, round_size=10, max_retry_s=OPTIONS.first_retry_s)
    async with reconciling(table, target, options):
        put(table, *range(40))
        await trio.sleep(30)
        assert {attempt.key for attempt in target.attempts} == set(range(40))


async def test_changes_between_rounds_are_combined(autojump_clock: Clock) -> None:
    """Several quick writes of a row cost only one attempt."""
    table, target = a_table(), Target()
    async with reconciling(table, target, replace(OPTIONS, round_gap_s=1)):
        for number in range(30):
            put(table, Row(1, text=str(number)))
            await trio.sleep(0.1)
        await trio.sleep(2)
        assert len(target.history) in {4, 5}
        assert target.rows[1].text == "29"


@pytest.mark.slow
async def test_retries_are_made_during_constant_changes(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(errors={0: ClusterError("no")})
    async with reconciling(table, target, replace(OPTIONS, concurrency=1, round_size=10)):
        put(table, 0)
        await target.expect("update(0) fail")
        for number in range(200):
            put(table, *(Row(key, text=str(number)) for key in range(1, 30)))
            await trio.sleep(0.01)
        pauses = [0.05, 0.1, 0.2, 0.4, 0.8]
        assert target.history.count("update(0) fail") > len(pauses)


# --- batches -------------------------------------------------------------------------------------------------------------------


async def test_in_batches_deletions_come_first_and_retries_are_single(autojump_clock: Clock) -> None:
    table, target = a_table(), BatchTarget()
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1, 2, 3), "a", until_settled=True)
        target.history.clear()
        target.sizes.clear()
        target.errors[4] = ClusterError("no")
        put(table, 4, 5)
        drop(table, 1, 2)
        await target.expect("delete(1)", "delete(2)", "update(4) fail", "update(5)", "update(4) fail")
        assert target.history[:2] in (["delete(1)", "delete(2)"], ["delete(2)", "delete(1)"])
        assert target.sizes == [2, 2]


# --- drift, assumptions, prunes ------------------------------------------------------------------------------------------------


async def test_a_drift_is_corrected_at_once(autojump_clock: Clock) -> None:
    table, target = a_table(), Target()
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1, 2), "a", until_settled=True)
        target.rows.clear()
        began = trio.current_time()
        reconciler.refresh([1, 7])
        status = reconciler.status(1)
        assert status is not None
        assert status.kind is Kind.REFRESHING
        await reconciler.wait_until_reconciled(2, "a", until_settled=True)
        assert sorted(target.rows) == [1]
        assert trio.current_time() == began
        assert target.history[-1] == "update-refresh(1)"


async def test_a_drift_during_an_attempt_is_corrected_afterwards(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(gates={1: trio.Event()})
    async with reconciling(table, target) as reconciler:
        revision = put(table, 1)
        await trio.testing.wait_all_tasks_blocked()
        reconciler.refresh([1])
        target.gates[1].set()
        await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        assert target.history == ["update(1)", "update-refresh(1)"]


async def test_rows_known_to_be_done_are_not_updated_again_after_a_restart(autojump_clock: Clock) -> None:
    table, target = a_table(), Target()
    filling = table.initializer("records")
    async with reconciling(table, target, replace(OPTIONS, prune_s=3600)) as reconciler:
        put(table, 1, 2)
        for key, revision in ((1, 1), (2, 1), (3, 3)):
            reconciler.assume_done(key, revision)
        told = reconciler.status(1)
        assert told is not None  # the reconciler has not read the row yet
        assert told.kind is Kind.DONE
        filling.done()
        await reconciler.wait_until_reconciled(2, "a", until_settled=True)
        await trio.sleep(1)
        assert sorted(target.history) == ["prune(n=2)", "update(2)"]


async def test_an_assumption_ends_a_wait(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(errors={1: ClusterError("no")})
    async with reconciling(table, target) as reconciler, trio.open_nursery() as nursery:
        revision = put(table, 1)
        await target.expect("update(1) fail")
        target.errors[1] = RefusedError("no")
        nursery.start_soon(lambda: reconciler.wait_until_reconciled(revision, "a", until_settled=True))
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        reconciler.assume_done(1, revision)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == began
        assert not nursery.child_tasks


async def test_a_row_written_during_a_prune_is_not_pruned(autojump_clock: Clock) -> None:
    """A slow prune uses the rows that existed at its beginning. It would delete the objects of rows that were written later."""
    gate = trio.Event()
    table, target = a_table(), Target(prune_gate=gate)
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1), "a", until_settled=True)
        target.rows[9] = Row(9)
        reconciler.prune()
        await trio.testing.wait_all_tasks_blocked()
        revision = put(table, 2, Row(1, text="newer"))
        await trio.sleep(1)
        assert target.history[-1] == "update(1)"
        gate.set()
        await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        assert sorted(target.rows) == [1, 2]


async def test_a_prune_waits_while_the_table_is_filled_again(autojump_clock: Clock) -> None:
    table, target = a_table(), Target()
    async with reconciling(table, target, replace(OPTIONS, prune_s=60)) as reconciler:
        await target.expect("prune(n=0)")
        filling = table.initializer("late")
        reconciler.prune()
        await trio.sleep(600)
        assert len(target.pruned) == 1
        filling.done()
        await target.expect("prune(n=0)", "prune(n=0)")
        assert reconciler.statistics().prunes.count == 2


async def test_prunes_requested_at_once_are_combined(autojump_clock: Clock) -> None:
    table, target = a_table(), Target()
    async with reconciling(table, target) as reconciler:
        for _ in range(5):
            reconciler.prune()
        await trio.sleep(60)
        assert target.history == ["prune(n=0)"]


# --- falling behind, ending ----------------------------------------------------------------------------------------------------


async def test_forgotten_deletions_are_found_by_comparison(autojump_clock: Clock) -> None:
    """If one commit deletes more rows than the table remembers, a prune finds the objects of the forgotten rows."""
    table, target = a_table(graves=3), Target()
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, *range(20)), "a", until_settled=True)
        revision = drop(table, *range(10))
        assert table.statistics().expired == ("test",)
        await reconciler.wait_until_reconciled(revision, "a", until_settled=True)
        assert sorted(target.rows) == [*range(10, 20)]
        await trio.sleep(1)
        assert reconciler.health() == "OK, 10 objects"
        assert target.history.count("prune(n=10)") == 1
        assert target.history.count("update(15)") == 1


async def test_leaving_cancels_running_operations(autojump_clock: Clock) -> None:
    table, target = a_table(), Target(gates={1: trio.Event()}, prune_gate=trio.Event())
    async with reconciling(table, target) as reconciler:
        put(table, 1)
        reconciler.prune()
        await trio.testing.wait_all_tasks_blocked()
        assert target.busy == {1}
    assert not target.busy
    assert table.statistics().trackers == ()


class Broken(BatchTarget):
    """A target that raises the exception ``raises`` for key 1 and in prunes, unless it is None."""

    raises: BaseException | None = OSError("disk")

    async def update(self, attempt: RowAttempt) -> None:
        if self.raises is not None and attempt.key == 1:
            self._note("raised")
            raise self.raises
        await super().update(attempt)

    async def update_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        if self.raises is not None and any(attempt.key == 1 for attempt in attempts):
            raise self.raises
        return await super().update_batch(attempts)

    async def prune(self, snapshot: Snapshot[int, Row]) -> None:
        if self.raises is not None:
            self._note("raised")
            raise self.raises
        await super().prune(snapshot)


@pytest.mark.parametrize("raised", [OSError("disk"), ExceptionGroup("both", [OSError("disk"), KeyError(1)])])
async def test_any_exception_of_an_operation_is_a_failure_of_its_row(
    raised: Exception, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception is logged once with its traceback, and the row is reported and retried. Other rows are processed."""
    table, target = a_table(), Broken()
    target.raises = raised
    async with open_reconciler(table, target, name="test", owner=owner_of, options=OPTIONS) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1, 2), "a")
        await target.expect("raised", "raised", "raised")
        [failure] = reconciler.failures("a")
        assert (failure.key, failure.permanent, type(raised).__name__ in str(failure.error)) == (1, False, True)
        assert failure.error.__cause__ is None
        assert target.rows.keys() == {2}
        [record] = caplog.records
        assert record.getMessage().startswith(f"reconciler test: updating 1 raised {type(raised).__name__}: ")
        assert record.exc_info is not None
        assert record.exc_info[1] is raised
        target.raises = None
        await reconciler.wait_until_reconciled(2, "a", until_settled=True)
        assert target.rows.keys() == {1, 2}


async def test_an_exception_of_a_batch_is_a_failure_of_its_rows_and_logged_once(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    table, target = a_table(), Broken()
    async with reconciling(table, target) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1, 2, 3), "a", until_settled=True)
        assert target.rows.keys() == {2, 3}  # the rows were tried again one by one
        assert len(caplog.records) == 1


async def test_an_exception_of_a_prune_is_a_failure_of_the_prune(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    table, target = a_table(), Broken()
    async with reconciling(table, target) as reconciler:
        reconciler.prune()
        await target.expect("raised", "raised", "raised")
        assert reconciler.statistics().prune_error == "OSError: disk"
        assert [record.getMessage() for record in caplog.records] == [
            "reconciler test: pruning raised OSError: disk",
            "reconciler test: pruning failed, next try in 0.1 s: OSError: disk",
        ]
        target.raises = None
        await target.expect("prune(n=0)")


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3)])
async def test_an_exception_that_ends_the_process_ends_the_reconciler(
    raised: BaseException, autojump_clock: Clock
) -> None:
    table, target = a_table(), Broken()
    target.raises = raised
    with pytest.raises(BaseExceptionGroup) as group:
        async with open_reconciler(table, target, name="test", owner=owner_of, options=OPTIONS):
            put(table, 1)
            await trio.sleep_forever()
    assert group.group_contains(type(raised))


async def test_an_exception_during_cancellation_is_a_failure_of_the_row(autojump_clock: Clock) -> None:
    class Closing(Target):
        async def update(self, attempt: RowAttempt) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.close)
                await trio.sleep_forever()

        async def close(self) -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise OSError("close")

    table = a_table()
    async with reconciling(table, Closing()) as reconciler:
        await reconciler.wait_until_reconciled(put(table, 1), "a")
        assert len(reconciler.failures("a")) == 1


async def test_the_number_of_tasks_does_not_depend_on_the_rows(autojump_clock: Clock) -> None:
    """There are as many tasks as workers and a few more, however many rows are pending."""
    table, target = a_table(), Target(gates={key: trio.Event() for key in range(500)})
    async with reconciling(table, target, replace(OPTIONS, concurrency=4)):
        before = trio.lowlevel.current_statistics().tasks_living
        put(table, *range(500))
        await trio.testing.wait_all_tasks_blocked()
        assert target.most == 4
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_operations_run_in_the_context_of_their_owner(autojump_clock: Clock) -> None:
    whose: list[str] = []

    @contextmanager
    def during(row: Row) -> Iterator[None]:
        whose.append(row.owner)
        yield

    table, target = a_table(), Target()
    async with open_reconciler(table, target, name="test", owner=owner_of, during=during) as reconciler:
        revision = put(table, Row(1, "a"), Row(2, "b"))
        for owner in ("a", "b"):
            await reconciler.wait_until_reconciled(revision, owner, until_settled=True)
    assert sorted(whose) == ["a", "b"]


async def test_operations_without_checkpoints_let_other_tasks_run() -> None:
    """Workers let other tasks run although their operations have no checkpoint. This test runs in real time."""

    class Instant(Target):
        async def update(self, attempt: object) -> None:
            pass

    table, turns = a_table(), 0
    async with (
        open_reconciler(table, Instant(), name="test", owner=owner_of) as reconciler,
        trio.open_nursery() as nursery,
    ):

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await trio.lowlevel.checkpoint()

        nursery.start_soon(others)
        await reconciler.wait_until_reconciled(put(table, *range(5000)), "a", until_settled=True)
        nursery.cancel_scope.cancel()
    assert turns > 10


# --- the whole table, metrics, attempts ----------------------------------------------------------------------------------------


async def test_a_wait_for_all_owners_reports_their_progress(autojump_clock: Clock) -> None:
    target, table = Target(errors={2: ClusterError("no")}, gates={3: trio.Event()}), a_table()
    async with reconciling(table, target, replace(OPTIONS, give_up=100)) as reconciler, trio.open_nursery() as nursery:
        told: dict[bool, Progress] = {}
        settled = trio.Event()

        async def wait(until_settled: bool) -> None:
            told[until_settled] = await reconciler.wait_until_all_reconciled(revision, until_settled=until_settled)
            if until_settled:
                settled.set()

        assert await reconciler.wait_until_all_reconciled(0) == Progress(0, 0)
        revision = put(table, Row(1, "a"), Row(2, "b"), Row(3, "c"))
        nursery.start_soon(wait, False)
        nursery.start_soon(wait, True)
        await trio.sleep(0.06)
        assert not told
        target.gates[3].set()
        await trio.testing.wait_all_tasks_blocked()
        assert told == {False: Progress(3, 2)}
        target.errors.clear()
        await settled.wait()
        assert told[True] == Progress(3, 0)


async def test_a_wait_for_all_owners_ends_if_a_row_is_given_up(autojump_clock: Clock) -> None:
    target, table = Target(errors={2: RefusedError("never")}), a_table()
    async with reconciling(table, target) as reconciler:
        revision = put(table, Row(1, "a"), Row(2, "b"))
        assert await reconciler.wait_until_all_reconciled(revision, until_settled=True) == Progress(2, 2)
        assert [(row.owner, failure.key) for row, failure in reconciler.failing_rows()] == [("b", 2)]


async def test_metrics_are_reported_for_every_operation(autojump_clock: Clock) -> None:
    metrics, table, target = MemoryMetrics(), a_table(), Target(errors={2: RefusedError("never")})
    heard: list[tuple[int, bool, int]] = []

    def attempted(attempt: RowAttempt, failure: Failure[int] | None) -> None:
        heard.append((attempt.key, attempt.deleting, 0 if failure is None else failure.attempts))

    async with open_reconciler(
        table, target, name="test", owner=owner_of, options=OPTIONS, metrics=metrics, attempted=attempted
    ) as reconciler:
        await reconciler.wait_until_all_reconciled(put(table, 1, 2))
        await reconciler.wait_until_all_reconciled(drop(table, 1))
        reconciler.prune()
        await target.expect("prune(n=1)")
        await trio.sleep(1)
        told = metrics.of("test")
        assert {operation: (one.count, one.errors) for operation, one in told.items()} == {
            Operation.UPDATE: (2, 1),
            Operation.DELETE: (1, 0),
            Operation.PRUNE: (1, 0),
        }
        assert metrics.current_errors("test") == 1
    assert heard == [(1, False, 0), (2, False, 1), (1, True, 0)]
