"""The table and the reconciler with operations that do nothing: the cost of an object must not depend on the number of objects.

Rows are written in transactions of a thousand while the reconciler works. A round ends when the last row is Done. The yardstick
processes a tenth of the rows ten times. With ``--long``, half a million rows are also compared with ten times fifty thousand,
which takes a minute and 300 MiB.

``python -m bench.reconciler COUNT POLICY`` measures COUNT rows once, with one policy of the garbage collector: ``default``,
``freeze`` (collect, and freeze the existing objects), ``raised`` (thresholds 50000, 20, 50), or ``off``.
"""

import gc
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import trio

from bench.measure import Ratio, compare
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.service import open_reconciler
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import write

SMALL: Final = 5_000
LARGE: Final = 50_000
HUGE: Final = 500_000
WRITTEN: Final = 1000
BUDGET: Final = 2.0
RAISED: Final = (50_000, 20, 50)
OPTIONS: Final = ReconcilerOptions(prune_s=0)


@dataclass(frozen=True, slots=True)
class Row:
    """The smallest possible row."""

    key: int


class Nothing:
    """Operations that only count the updates."""

    updates = 0

    async def update(self, attempt: Attempt[int, Row]) -> None:
        """Count the update."""
        self.updates += attempt.number

    async def delete(self, attempt: Attempt[int, Row]) -> None:
        """Do nothing."""

    async def prune(self, snapshot: Snapshot[int, Row]) -> None:
        """Do nothing."""


def key_of(row: Row) -> int:
    """Return the key of a row."""
    return row.key


def reconciled(count: int) -> None:
    """Write ``count`` new rows, and wait until the last one is Done. Each row is updated once."""
    trio.run(_reconciled, count)


async def _reconciled(count: int) -> None:
    table, nothing = Table("rows", key_of), Nothing()
    async with open_reconciler(table, nothing, name="bench", owner=lambda _: "one", options=OPTIONS) as reconciler:
        for start in range(0, count, WRITTEN):
            with write(table) as tx:
                for key in range(start, start + WRITTEN):
                    tx.insert(table, Row(key))
            await trio.lowlevel.checkpoint()
        await reconciler.wait_until_reconciled(count, "one", until_settled=True)
    assert nothing.updates == count


def measure(long: bool) -> Iterator[Ratio]:
    """Compare the time for an object among 50,000 objects with the time for one among 5,000. With ``long``, also compare
    500,000 objects with 50,000.
    """
    yield _sizes(LARGE, SMALL, rounds=3 if long else 1)
    if long:
        yield _sizes(HUGE, LARGE, rounds=1)


def _sizes(large: int, small: int, rounds: int) -> Ratio:
    times = large // small

    def one_large() -> None:
        reconciled(large)

    def many_small() -> None:
        for _ in range(times):
            reconciled(small)

    return compare(
        "reconciler",
        f"an object among {large}",
        f"the same among {small}",
        one_large,
        many_small,
        budget=BUDGET,
        rounds=rounds,
    ).per(large)


def main() -> int:
    """Measure once, with the number of rows and the garbage collector's policy from the command line."""
    count, policy = int(sys.argv[1]), sys.argv[2]
    if policy == "freeze":
        gc.collect()
        gc.freeze()
    elif policy == "raised":
        gc.set_threshold(*RAISED)
    elif policy == "off":
        gc.disable()
    pauses: list[float] = []

    def watch(phase: str, _info: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            pauses.append(-now)
        else:
            pauses[-1] += now

    gc.callbacks.append(watch)
    start = time.process_time()
    reconciled(count)
    took = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count} {policy}: {took:.2f} s of the processor, {took / count * 1e6:.1f} us each, peak {peak:.0f} MiB;"
        f" {len(pauses)} collections, {sum(pauses):.2f} s, the longest {max(pauses, default=0) * 1e3:.0f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
