"""The state machine of a reconciler: changes (also during an attempt), outcomes, refreshes and prunes."""

from collections.abc import Iterator

import pytest

from tests.cluster.reconciler.samples import RefusedError, Row, a_table, drop, put
from tests.cluster.reconciler.world import FAILED, World, a_world
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.status import Kind

INFINITY = float("inf")


@pytest.fixture
def world() -> Iterator[World]:
    with a_world(a_table()) as world:
        yield world


# --- the matrix ----------------------------------------------------------------------------------------------------------------

MEANWHILE = [
    "nothing",
    "changed",
    "changed-not-taken-in",
    "others-done",
    "others-error",
    "refresh",
    "deleted",
    "replaced",
]
RUNS = ["first", "retry", "refreshing"]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("error", [None, FAILED], ids=["success", "failure"])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_an_outcome_counts_exactly_if_the_row_was_not_changed_during_the_attempt(
    world: World, meanwhile: str, error: ClusterError | None, run: str
) -> None:
    """An outcome does not count if the row was changed during the attempt. The outcome that another reconciler reports for the
    row is no such change.
    """
    with a_world(world.table) as other:
        put(world.table, 1)
        begin(world, run)
        attempt = world.take()
        happen(world, other, meanwhile)
        world.finish(attempt, error)
        other.take_in()
        world.take_in()
        if meanwhile.startswith("changed"):
            expect_dropped(world)
            after = world.run()
            assert (after.row.text, after.deleting, after.replaces) == ("changed", False, False)
        elif meanwhile == "replaced":
            expect_dropped(world)
            assert world.run().replaces
        elif meanwhile == "deleted":
            expect_dropped(world)
            assert world.run().deleting
            assert world.kind(1) is None
            return
        elif error is not None:
            before = 1 if run == "retry" else 0
            assert (world.kind(1), world.failures(1)) == (Kind.ERROR, before + 1)
            assert world.machine.low_watermark("a") == 1
            world.wait(60)
            after = world.run()
            assert (after.number, after.refreshing) == (attempt.number + 1, run == "refreshing")
        elif meanwhile == "refresh":
            assert world.kind(1) is Kind.REFRESHING
            world.wait(0)
            after = world.run()
            assert (after.number, after.refreshing) == (1, True)
        assert (world.kind(1), world.failures(1)) == (Kind.DONE, 0)
        world.wait(3600)
        assert not world.rest()


def begin(world: World, run: str) -> None:
    world.take_in()
    if run == "retry":
        world.run(FAILED)
        world.wait(1)
    elif run == "refreshing":
        world.run()
        world.machine.refresh(1, world.now)
        world.wait(0)


def happen(world: World, other: World, meanwhile: str) -> None:
    match meanwhile:
        case "changed" | "changed-not-taken-in":
            put(world.table, Row(1, text="changed"))
        case "deleted":
            drop(world.table, 1)
        case "replaced":
            drop(world.table, 1)
            put(world.table, 1)
        case "refresh":
            world.machine.refresh(1, world.now)
        case "others-done" | "others-error":
            other.take_in()
            other.run(FAILED if meanwhile == "others-error" else None)
            assert other.kind(1) is (Kind.ERROR if meanwhile == "others-error" else Kind.DONE)
    if meanwhile != "changed-not-taken-in":
        world.take_in()


def expect_dropped(world: World) -> None:
    assert (world.kind(1), world.failures(1), world.machine.dropped) == (Kind.PENDING, 0, 1)


# --- changes -------------------------------------------------------------------------------------------------------------------


def test_a_row_changed_while_waiting_retains_its_place_and_is_attempted_once(world: World) -> None:
    put(world.table, 1, 2)
    world.take_in()
    put(world.table, Row(1, text="newer"))
    world.take_in()
    assert [(attempt.key, attempt.row.text) for attempt in world.rest()] == [(1, "newer"), (2, "")]


def test_a_change_resets_the_failures(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    for _ in range(3):
        world.run(FAILED)
        world.wait(60)
    put(world.table, Row(1, text="newer"))
    world.take_in()
    assert (world.failures(1), world.machine.low_watermark("a"), world.machine.next_at()) == (0, 0, INFINITY)
    assert world.run(FAILED).number == 1
    assert world.failures(1) == 1


def test_a_failed_delete_is_retried_until_it_succeeds(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.run()
    drop(world.table, 1)
    world.take_in()
    assert world.run(FAILED).deleting
    world.wait(1)
    assert world.run().number == 2
    assert (world.kind(1), world.machine.counts().rows, world.machine.next_at()) == (None, 0, INFINITY)


def test_a_row_inserted_again_cancels_its_failing_delete(world: World) -> None:
    """Only the update of the new row runs. It has ``replaces`` set, because the live object may be a different one."""
    put(world.table, 1)
    world.take_in()
    world.run()
    drop(world.table, 1)
    world.take_in()
    world.run(FAILED)
    put(world.table, 1)
    world.take_in()
    world.wait(3600)
    [attempt] = world.rest()
    assert (attempt.deleting, attempt.number, attempt.replaces) == (False, 1, True)
    world.wait(3600)
    assert not world.rest()
    put(world.table, Row(1, text="newer"))
    world.take_in()
    assert not world.run().replaces


def test_a_row_inserted_again_during_its_delete_is_updated_afterwards(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.run()
    drop(world.table, 1)
    world.take_in()
    deleting = world.take()
    put(world.table, 1)
    world.take_in()
    assert world.machine.take(world.now) is None
    world.finish(deleting)
    assert not world.run().deleting
    assert world.kind(1) is Kind.DONE


def test_a_row_moved_to_another_owner_counts_for_the_new_owner(world: World) -> None:
    put(world.table, 1, 2, 3)
    world.take_in()
    running, failing = world.take(), world.take()
    world.finish(failing, FAILED)
    assert [attempt.key for attempt in (running, failing)] == [1, 2]
    put(world.table, Row(1, "b"), Row(2, "b"), Row(3, "b"))
    world.take_in()
    assert (world.machine.open_keys("a"), world.machine.open_keys("b")) == ((), (1, 2, 3))
    assert world.machine.low_watermark("a") == 0
    assert world.machine.settled("a", 6)
    world.finish(running)
    assert sorted(attempt.key for attempt in world.rest()) == [1, 2, 3]
    assert world.machine.counts().owners == 1


def test_rows_missing_after_a_gap_are_deleted(world: World) -> None:
    put(world.table, 1, 2)
    world.take_in()
    world.rest()
    drop(world.table, 1)
    world.machine.missed(world.table.snapshot(), world.now)
    [attempt] = world.rest()
    assert (attempt.key, attempt.deleting) == (1, True)
    assert (world.kind(1), world.kind(2)) == (None, Kind.DONE)


def test_an_attempt_whose_row_went_missing_is_dropped(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    attempt = world.take()
    drop(world.table, 1)
    world.machine.missed(world.table.snapshot(), world.now)
    world.finish(attempt)
    assert world.machine.dropped == 1
    assert world.run().deleting


def test_a_deletion_is_attempted_again_if_the_row_came_and_went_unread(world: World) -> None:
    """During the deletion, the row was inserted again, and then deleted again. The machine has read neither of these two
    changes.
    """
    put(world.table, 1)
    world.take_in()
    world.rest()
    drop(world.table, 1)
    world.take_in()
    deletion = world.take()
    put(world.table, 1)
    world.finish(deletion)
    drop(world.table, 1)
    world.machine.missed(world.table.snapshot(), world.now)
    assert world.run().deleting
    assert (world.machine.counts().rows, world.machine.open_keys("a")) == (0, ())


# --- failures ------------------------------------------------------------------------------------------------------------------


def test_pauses_double_up_to_a_limit(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    pauses = []
    for _ in range(12):
        world.run(FAILED)
        pauses.append(round(world.machine.next_at() - world.now, 3))
        world.wait(pauses[-1])
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0]


def test_the_servers_retry_after_sets_the_pause(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    error = ClusterError("slow down")
    error.retry_after_s = 7.5
    world.run(error)
    assert world.machine.next_at() == 7.5


def test_a_permanent_error_has_a_long_pause_that_a_refresh_skips(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.run(RefusedError("no such field"))
    [failure] = world.machine.failures("a")
    assert (failure.permanent, failure.next_at) == (True, 600)
    assert world.machine.settled("a", 1)
    world.machine.refresh(1, world.now)
    world.wait(0)
    assert world.run(RefusedError("no such field")).number == 2
    assert world.machine.next_at() == 600
    attempt = world.take() if world.machine.ready else None
    assert attempt is None


def test_a_refresh_does_not_shorten_the_pause_of_a_failing_row(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.run(FAILED)
    world.machine.refresh(1, world.now)
    world.wait(0.05)
    assert not world.machine.ready
    world.wait(0.05)
    assert not world.run().refreshing


def test_a_row_is_settled_when_it_is_given_up_and_retries_continue(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    for failures in range(1, 6):
        assert not world.machine.settled("a", 1)
        world.run(FAILED)
        assert world.failures(1) == failures
        world.wait(60)
    assert world.machine.settled("a", 1)
    world.run()
    assert (world.kind(1), world.machine.failures("a")) == (Kind.DONE, ())


def test_giving_up_an_older_row_does_not_settle_the_new_one(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.run(RefusedError("no"))
    revision = put(world.table, Row(1, text="newer"))
    assert not world.machine.settled("a", revision)
    world.take_in()
    assert not world.machine.settled("a", revision)
    world.run()
    assert world.machine.settled("a", revision)


# --- progress ------------------------------------------------------------------------------------------------------------------


def test_progress_is_reported_per_owner(world: World) -> None:
    put(world.table, Row(1, "a"), Row(2, "b"), Row(3, "a"))
    world.take_in()
    first, second = world.take(), world.take()
    assert {first.key, second.key} == {1, 2}
    world.finish(second, FAILED)
    world.finish(first, FAILED if first.key == 2 else None)
    assert world.machine.attempted("b") == 3
    assert (world.machine.low_watermark("a"), world.machine.low_watermark("b")) in {(1, 0), (0, 2)}
    assert world.machine.attempted("a") == 2
    world.rest()
    assert (world.machine.attempted("a"), world.machine.attempted("nobody")) == (3, 3)


def test_an_owner_without_rows_is_forgotten(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.rest()
    drop(world.table, 1)
    world.take_in()
    world.rest()
    assert world.machine.counts().owners == 0


# --- refreshing ----------------------------------------------------------------------------------------------------------------


def test_refreshes_are_limited_in_rate(world: World) -> None:
    """After an idle time, the refreshes that are allowed in one second may all run immediately.

    The remaining refreshes follow one by one.
    """
    put(world.table, *range(300))
    world.take_in()
    world.rest()
    world.wait(60)
    for key in range(300):
        world.machine.refresh(key, world.now)
    assert world.machine.counts().refreshing == 300
    counts = []
    for _ in range(4):
        world.wait(0.5)
        counts.append(len(world.rest()))
    assert counts == [pytest.approx(100, abs=2), 50, 50, 50]


def test_a_refresh_of_a_missing_or_waiting_row_has_no_effect(world: World) -> None:
    put(world.table, 1, 2)
    drop(world.table, 2)
    world.take_in()
    for key in (1, 2, 3):
        world.machine.refresh(key, world.now)
    world.wait(1)
    assert [attempt.refreshing for attempt in world.rest()] == [False, False]
    world.wait(1)
    assert not world.rest()


def test_rows_are_refreshed_by_age_and_not_by_revision() -> None:
    """The age of a row is the time since its last successful attempt, not since its write."""
    with a_world(a_table(), ReconcilerOptions(refresh_s=100)) as world:
        put(world.table, 1, 2)
        world.take_in()
        world.rest()
        world.wait(60)
        world.machine.refresh(1, world.now)
        world.wait(0)
        assert world.run().key == 1
        assert world.machine.next_at() == 100
        world.wait(40)
        assert [attempt.key for attempt in world.rest()] == [2]
        assert world.machine.next_at() == 160
        drop(world.table, 1, 2)
        world.take_in()
        world.rest()
        assert world.machine.next_at() == INFINITY


# --- assumptions ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken_in", [False, True])
def test_a_row_assumed_done_is_not_attempted(world: World, taken_in: bool) -> None:
    revision = put(world.table, 1)
    if taken_in:
        world.take_in()
    world.machine.assume_done(1, revision, world.now)
    world.take_in()
    assert (world.kind(1), world.rest()) == (Kind.DONE, [])
    assert world.machine.settled("a", revision)
    put(world.table, Row(1, text="newer"))
    world.take_in()
    assert len(world.rest()) == 1


def test_an_assumption_about_another_revision_has_no_effect(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.machine.assume_done(1, 0, world.now)
    world.machine.assume_done(7, 1, world.now)
    assert len(world.rest()) == 1


@pytest.mark.parametrize("taken_in", [False, True])
def test_an_assumption_about_a_running_row_has_no_effect(world: World, taken_in: bool) -> None:
    """An attempt with the previous row is still running, and may write the old content once more. So the new row is applied
    even if it is assumed to be done.
    """
    put(world.table, 1)
    world.take_in()
    attempt = world.take()
    revision = put(world.table, Row(1, text="newer"))
    if taken_in:
        world.take_in()
    world.machine.assume_done(1, revision, world.now)
    world.finish(attempt)
    world.take_in()
    assert [attempt.row.text for attempt in world.rest()] == ["newer"]


def test_an_attempt_begun_after_an_assumption_revokes_it(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    revision = put(world.table, Row(1, text="newer"))
    world.machine.assume_done(1, revision, world.now)
    world.run()
    world.take_in()
    assert [attempt.row.text for attempt in world.rest()] == ["newer"]


def test_a_failing_row_assumed_done_is_done(world: World) -> None:
    revision = put(world.table, 1)
    world.take_in()
    world.run(FAILED)
    world.machine.assume_done(1, revision, world.now)
    assert (world.kind(1), world.failures(1), world.machine.low_watermark("a")) == (Kind.DONE, 0, 0)
    world.wait(3600)
    assert not world.rest()


# --- pruning -------------------------------------------------------------------------------------------------------------------


def test_new_rows_are_not_updated_while_a_prune_runs(world: World) -> None:
    """A prune does not know the new rows, so it could delete their objects. The rows that it knows are updated and deleted."""
    put(world.table, 1, 2)
    world.take_in()
    world.machine.hold(world.table.snapshot())
    put(world.table, Row(1, text="newer"), 3)
    drop(world.table, 2)
    world.take_in()
    world.machine.assume_done(3, world.table.snapshot().revision - 1, world.now)
    assert [(attempt.key, attempt.deleting) for attempt in world.rest()] == [(1, False), (2, True)]
    assert (world.kind(3), world.machine.counts().held, world.machine.attempted("a")) == (Kind.PENDING, 1, 3)
    world.machine.release()
    assert [attempt.key for attempt in world.rest()] == [3]
    assert world.machine.attempted("a") == 5


def test_a_row_held_by_a_prune_and_removed_is_deleted(world: World) -> None:
    world.machine.hold(world.table.snapshot())
    put(world.table, 1)
    world.take_in()
    drop(world.table, 1)
    world.take_in()
    assert world.run().deleting
    world.machine.release()
    assert not world.rest()


def test_a_row_deleted_before_a_prune_and_inserted_during_it_is_held(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    world.rest()
    drop(world.table, 1)
    world.take_in()
    world.machine.hold(world.table.snapshot())
    put(world.table, 1)
    world.take_in()
    assert not world.rest()
    world.machine.release()
    assert [attempt.replaces for attempt in world.rest()] == [True]


def test_a_refresh_requested_during_a_dropped_attempt_is_not_made_twice(world: World) -> None:
    put(world.table, 1)
    world.take_in()
    attempt = world.take()
    put(world.table, Row(1, text="newer"))
    world.take_in()
    world.machine.refresh(1, world.now)
    world.finish(attempt)
    assert not world.run().refreshing
    world.wait(1)
    assert not world.rest()


# --- batches -------------------------------------------------------------------------------------------------------------------


def test_a_batch_has_one_owner_and_begins_with_deletions() -> None:
    with a_world(a_table(), ReconcilerOptions(round_size=3)) as world:
        put(world.table, Row(1), Row(2), Row(3))
        world.take_in()
        for attempt in world.machine.take_batch(world.now)[0]:
            world.finish(attempt)
        put(world.table, Row(1, text="newer"), Row(4), Row(5, "b"))
        drop(world.table, 3)
        world.take_in()
        batches = [world.machine.take_batch(world.now) for _ in range(3)]
        told = [[(attempt.key, attempt.deleting) for attempt in batch] for batch, _ in batches]
        assert sorted(told) == [[], [(3, True), (1, False), (4, False)], [(5, False)]]
        assert not any(is_retry for _, is_retry in batches)
        for batch, _ in batches:
            for attempt in batch:
                world.finish(attempt, FAILED)
        assert world.machine.take_batch(world.now) == ((), False)
        world.wait(1)
        world.wait(0)
        retries = [world.machine.take_batch(world.now) for _ in range(5)]
        assert sorted([attempt.key for attempt in batch] for batch, is_retry in retries if is_retry) == [
            [1],
            [3],
            [4],
            [5],
        ]
