"""Fairness: a new row is attempted within the time that turns.py states, even if other operations hang, fail or are slow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.reconciler.samples import Row, RowAttempt, a_table, owner_of, put
from tests.scale import scaled
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.service import READ_EVERY_S, open_reconciler
from wharfinger.cluster.tables.snapshot import Snapshot

OPTIONS = ReconcilerOptions(prune_s=0)
GOOD = "good"
EPSILON_S = 0.01


@dataclass
class Crowd:
    """A target whose operation on a row hangs, takes some time, or fails after some time.

    The text of the row selects this: ``hangs``, ``SECONDS`` or ``SECONDS fails``.

    ``begun`` has the start times of all attempts for each key, and ``turns`` the start time of each owner's last attempt.
    """

    begun: dict[int, list[float]] = field(default_factory=dict)
    turns: dict[str, float] = field(default_factory=dict)

    async def update(self, attempt: RowAttempt) -> None:
        self._note(attempt)
        await self._behave(attempt.row.text)

    async def delete(self, attempt: RowAttempt) -> None:
        await self.update(attempt)

    async def prune(self, snapshot: Snapshot[int, Row]) -> None:
        """Prune nothing."""

    def _note(self, attempt: RowAttempt) -> None:
        self.begun.setdefault(attempt.key, []).append(trio.current_time())
        self.turns[attempt.row.owner] = trio.current_time()

    async def _behave(self, how: str) -> None:
        if how == "hangs":
            await trio.sleep_forever()
        seconds, _, fails = how.partition(" ")
        await trio.sleep(float(seconds))
        if fails:
            raise ClusterError("it fails")


class BatchCrowd(Crowd):
    """A target for batches, each of which takes as long as its slowest row."""

    async def update_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        outcomes: dict[int, ClusterError | None] = {}

        async def one(attempt: RowAttempt) -> None:
            self._note(attempt)
            outcomes[attempt.key] = None
            try:
                await self._behave(attempt.row.text)
            except ClusterError as error:
                outcomes[attempt.key] = error

        async with trio.open_nursery() as nursery:
            for attempt in attempts:
                nursery.start_soon(one, attempt)
        return outcomes

    async def delete_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        return await self.update_batch(attempts)


@dataclass(frozen=True)
class Scene:
    """A scenario: each bad owner's behavior, number of rows and start time, and the pauses between the healthy owner's rows."""

    bad: tuple[tuple[str, int, float], ...]
    good: tuple[float, ...]
    concurrency: int
    slow: int
    batches: bool


async def waits_of(scene: Scene) -> list[tuple[float, float]]:
    """Return how long each row of the healthy owner waited for its first attempt, and the bound for this wait."""
    options = replace(OPTIONS, concurrency=scene.concurrency, slow_concurrency=scene.slow)
    table, crowd = a_table(), BatchCrowd() if scene.batches else Crowd()
    found: list[tuple[float, float]] = []
    came: dict[str, float] = {}

    async def come(number: int, how: str, rows: int, at: float) -> None:
        await trio.sleep(at)
        came[f"bad-{number}"] = trio.current_time()
        put(table, *(Row(1000 * (number + 1) + row, f"bad-{number}", how) for row in range(rows)))

    async with trio.open_nursery() as nursery:
        batch = crowd if isinstance(crowd, BatchCrowd) else None
        async with open_reconciler(
            table, crowd, name="test", owner=owner_of, options=options, batch=batch, draw=lambda: 0.0
        ) as reconciler:
            for number, (how, rows, at) in enumerate(scene.bad):
                nursery.start_soon(come, number, how, rows, at)
            for key, pause in enumerate(scene.good):
                await trio.sleep(pause)
                tried = {owner for owner, at in came.items() if crowd.turns.get(owner, -1.0) >= at}
                began, behind = trio.current_time(), table.snapshot().revision - reconciler.statistics().revision
                reading = (2 + behind / options.round_size) * (READ_EVERY_S + options.round_gap_s)
                with trio.move_on_after(1000):
                    await reconciler.wait_until_reconciled(put(table, Row(key, GOOD, "0.01")), GOOD)
                first = crowd.begun.get(key, [float("inf")])[0]
                untried = sum(owner not in tried and at <= first for owner, at in came.items())
                bound = options.patience_s * (2 + ceil(2 * untried / options.concurrency)) + reading + EPSILON_S
                found.append((first - began, bound))
        nursery.cancel_scope.cancel()
    return found


def waits(scene: Scene) -> list[tuple[float, float]]:
    return trio.run(waits_of, scene, clock=trio.testing.MockClock(autojump_threshold=0))


BEHAVIOURS = st.sampled_from(["hangs", "hangs", "0 fails", "1.9 fails", "1.9", "0.3 fails", "3", "30", "90 fails"])
BAD = st.tuples(BEHAVIOURS, st.integers(1, 12), st.floats(0, 300))
SCENES = st.builds(
    Scene,
    bad=st.lists(BAD, max_size=30).map(tuple),
    good=st.lists(st.floats(0.5, 200), min_size=1, max_size=5).map(tuple),
    concurrency=st.integers(1, 16),
    slow=st.integers(1, 8),
    batches=st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=scaled(1000, 60), deadline=None)
@given(SCENES)
def test_a_healthy_owner_waits_no_longer_than_the_bound(scene: Scene) -> None:
    for waited, bound in waits(scene):
        assert waited <= bound


def test_owners_that_come_during_the_wait_count() -> None:
    """Two new owners appear while a row of the healthy owner waits. They have used less time, so they go first."""
    bad = (
        ("hangs", 1, 42.0),
        ("hangs", 9, 42.0),
        ("hangs", 9, 42.0),
        ("hangs", 1, 66.0),
        ("hangs", 1, 81.0),
        ("hangs", 1, 81.0),
    )
    found = waits(Scene(bad, (78.0, 0.5), concurrency=1, slow=1, batches=False))
    assert all(waited <= bound for waited, bound in found)
    assert found[-1][0] > 2 * OPTIONS.patience_s


@pytest.mark.parametrize("batches", [False, True], ids=["single", "batches"])
@pytest.mark.parametrize("owners", [2, 6, 100])
def test_hanging_owners_do_not_delay_another_one(owners: int, batches: bool) -> None:
    """Hanging operations are cut off after two minutes.

    If they occupied all workers until then, other owners would have to wait.
    """
    scene = Scene((("hangs", 8, 0.0),) * owners, (1.0, 100.0, 100.0, 100.0, 100.0), 16, 8, batches)
    waited = [waited for waited, _ in waits(scene)]
    assert waited[0] <= OPTIONS.patience_s * (2 + 2 * owners / 16)
    assert max(waited[1:]) <= OPTIONS.patience_s


@pytest.mark.parametrize("batches", [False, True], ids=["single", "batches"])
def test_a_new_row_is_not_starved_by_failing_rows(batches: bool) -> None:
    """The owner of the new row also has a hundred rows that fail after 0.1 s and are retried each second.

    There are two workers.
    """

    async def run() -> float:
        options = replace(OPTIONS, concurrency=2, max_retry_s=1.0)
        table, crowd = a_table(), BatchCrowd() if batches else Crowd()
        batch = crowd if isinstance(crowd, BatchCrowd) else None
        async with open_reconciler(
            table, crowd, name="test", owner=owner_of, options=options, batch=batch
        ) as reconciler:
            put(table, *(Row(key, GOOD, "0.1 fails") for key in range(100)))
            await trio.sleep(60)
            began = trio.current_time()
            with trio.move_on_after(3000):
                revision = put(table, Row(1000, GOOD, "0.1"))
                await reconciler.wait_until_reconciled(revision, GOOD)
            return crowd.begun.get(1000, [float("inf")])[0] - began

    assert trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0)) < 1


@pytest.mark.sampled
@pytest.mark.parametrize("batches", [False, True], ids=["single", "batches"])
def test_retries_continue_during_constant_changes(batches: bool) -> None:
    """A failing row is retried regularly, although another owner's rows change all the time."""

    async def run() -> int:
        options = replace(OPTIONS, concurrency=2, max_retry_s=1.0)
        table, crowd = a_table(), BatchCrowd() if batches else Crowd()
        batch = crowd if isinstance(crowd, BatchCrowd) else None
        async with open_reconciler(table, crowd, name="test", owner=owner_of, options=options, batch=batch):
            put(table, Row(0, "bad", "0.1 fails"))
            for number in range(200):
                put(table, *(Row(key, GOOD, f"0.{number % 9 + 11:03}") for key in range(1, 20)))
                await trio.sleep(0.1)
        return len(crowd.begun[0])

    assert trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0)) > 8


def test_a_slow_operation_completes_although_others_hang() -> None:
    """The operations of five owners hang. The operation of a sixth owner takes a minute.

    The sixth owner's operation may be cancelled once, because it takes so long. Its retry then has enough time.
    """

    async def run() -> bool:
        table, crowd = a_table(), Crowd()
        options = replace(OPTIONS, concurrency=4, slow_concurrency=2)
        async with open_reconciler(table, crowd, name="test", owner=owner_of, options=options) as reconciler:
            put(table, *(Row(key, f"bad-{key % 5}", "hangs") for key in range(100)))
            await trio.sleep(500)
            revision = put(table, Row(1000, GOOD, "60"))
            with trio.move_on_after(3600):
                await reconciler.wait_until_reconciled(revision, GOOD, until_settled=True)
            return not reconciler.progress(GOOD)

    assert trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
