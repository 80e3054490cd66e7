"""A random simulation in virtual time: rows change while operations take time, fail or hang, and prunes run.

At any time, at most one operation runs for each key, and at most as many operations as there are workers. After the failures
stop, the target finally matches the rows, no work is left, and nothing is repeated.
"""

import random

import pytest
import trio
import trio.testing

from tests.cluster.reconciler.samples import RefusedError, Row, RowAttempt, RowTable, a_table, drop, owner_of, put
from tests.scale import scaled
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.service import Reconciler, open_reconciler
from wharfinger.cluster.tables.snapshot import Snapshot

pytestmark = pytest.mark.unmeasured

OPTIONS = ReconcilerOptions(
    concurrency=4,
    slow_concurrency=2,
    owner_concurrency=3,
    round_size=7,
    operation_s=20,
    permanent_retry_s=120,
    prune_s=100,
    refresh_s=0,
)
STEPS = 150
KEYS = 30


class Moody:
    """A target whose operations take time and may fail before or after their effect."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.moody = True
        self.rows: dict[int, Row] = {}
        self.busy: set[int] = set()
        self.count = 0

    async def update(self, attempt: RowAttempt) -> None:
        await self._perform(attempt)

    async def delete(self, attempt: RowAttempt) -> None:
        await self._perform(attempt)

    async def prune(self, snapshot: Snapshot[int, Row]) -> None:
        await trio.sleep(self.dice.random() * 5)
        if self.moody and self.dice.random() < 0.3:
            raise ClusterError("no prune")
        for key in sorted(self.rows):
            await trio.sleep(self.dice.random())
            if key not in snapshot:
                self.rows.pop(key, None)

    async def _perform(self, attempt: RowAttempt) -> None:
        assert attempt.key not in self.busy
        self.busy.add(attempt.key)
        assert len(self.busy) <= OPTIONS.concurrency + OPTIONS.slow_concurrency
        self.count += 1
        try:
            self._act(attempt)
            mood = self.dice.random() if self.moody else 1.0
            await trio.sleep(100 if mood < 0.02 else self.dice.random())
            if mood < 0.2:
                raise RefusedError("never") if mood < 0.05 else ClusterError("not now")
            self._act(attempt)
        finally:
            self.busy.discard(attempt.key)

    def _act(self, attempt: RowAttempt) -> None:
        if attempt.deleting:
            self.rows.pop(attempt.key, None)
        else:
            self.rows[attempt.key] = attempt.row


async def live(dice: random.Random, table: RowTable, reconcilers: list[Reconciler[int, Row]]) -> None:
    for step in range(STEPS):
        key = dice.randrange(KEYS)
        match dice.choice(["put", "put", "put", "drop", "refresh", "prune", "many"]):
            case "put":
                put(table, Row(key, dice.choice("abc"), str(step)))
            case "drop":
                drop(table, key)
            case "refresh":
                dice.choice(reconcilers).refresh(range(key))
            case "prune":
                dice.choice(reconcilers).prune()
            case _:
                put(table, *(Row(each, "a", str(step)) for each in range(key)))
        await trio.sleep(dice.choice([0, 0.001, 0.2, 1, 5]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(scaled(300, 5)))
async def test_all_targets_match_the_table_in_the_end(seed: int, autojump_clock: trio.testing.MockClock) -> None:
    dice = random.Random(seed)  # noqa: S311 - not a secret
    table, targets = a_table(graves=15), [Moody(dice), Moody(dice)]
    with trio.fail_after(1_000_000):
        async with (
            open_reconciler(table, targets[0], name="one", owner=owner_of, options=OPTIONS, draw=dice.random) as one,
            open_reconciler(table, targets[1], name="two", owner=owner_of, options=OPTIONS, draw=dice.random) as two,
        ):
            await live(dice, table, [one, two])
            for target in targets:
                target.moody = False
            snapshot = table.snapshot()
            for reconciler, target in ((one, targets[0]), (two, targets[1])):
                for owner in "abc":
                    await reconciler.wait_until_reconciled(snapshot.revision, owner)
                await trio.sleep(2000)
                assert target.rows == {entry.row.key: entry.row for entry in snapshot.entries()}
                told = reconciler.statistics()
                assert (told.keys.pending, told.keys.failing, told.keys.refreshing, told.keys.held) == (0, 0, 0, 0)
                assert (told.keys.rows, told.revision) == (len(snapshot), snapshot.revision)
                assert reconciler.health().startswith("OK")
                for owner in "abc":
                    await reconciler.wait_until_reconciled(snapshot.revision, owner, until_settled=True)
            counts = [target.count for target in targets]
            await trio.sleep(10_000)
            assert [target.count for target in targets] == counts
