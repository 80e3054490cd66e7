"""Tables: the cost of a row in a large table, against a small table and a plain dictionary, and the time until a change is
read.

A dictionary has no revisions, snapshots, transactions or readers, so the ratio to a dictionary is the price of these features.
The ratio between two sizes of tables should be near 1. A higher ratio is due to the processor's cache, which affects a
dictionary as well (the time for a row doubles from 10,000 to 100,000 rows). The garbage collector is on, with Python's
default thresholds, so it runs more often than in the daemon, which raises them. Objects that exist before a measurement are
frozen, so that no collection visits them.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Final

import trio

from bench.measure import ROUNDS, Ratio, compare, compare_async
from wharfinger.cluster.tables.snapshot import Index
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.transaction import write

LARGE: Final = 100_000
SMALL: Final = 10_000
HUGE: Final = 1_000_000
STEP: Final = 1_000
"""The number of rows in a transaction, except where each transaction has one row."""
ALONE: Final = 10_000
"""The number of transactions with one row each."""
TURNS: Final = 1_000
"""The number of changes that a waiting task reads."""


@dataclass(frozen=True, slots=True)
class Row:
    """A small row, as in a table that is only used for lookups."""

    key: str
    group: int
    value: int


Rows = Table[str, Row]


def measure(long: bool) -> Iterator[Ratio]:
    """Measure inserts and reads against smaller tables and a dictionary, commits, and the time until a change is read.

    With ``long``, also measure a million rows.
    """
    gc.collect()
    gc.freeze()
    try:
        large = rows(LARGE)
        rounds = ROUNDS if long else 2
        yield from _inserts(large, rounds)
        yield from _reads(large, rounds)
        yield from _commits(large, rounds)
        yield trio.run(_propagation)
        if long:
            yield _huge()
    finally:
        gc.unfreeze()


def rows(count: int, value: int = 0) -> Sequence[Row]:
    """Return ``count`` rows, a hundred in each group."""
    return [Row(f"prod/web-{number}", number // 100, value) for number in range(count)]


def table(*, indexed: bool = False) -> Rows:
    """Return an empty table."""
    return Table("rows", lambda row: row.key, indexes={"group": Index(lambda row: (row.group,))} if indexed else None)


def fill(into: Rows, some: Sequence[Row], step: int = STEP) -> Rows:
    """Insert rows in transactions of ``step`` rows into a table, and return the table."""
    for start in range(0, len(some), step):
        with write(into) as tx:
            for row in some[start : start + step]:
                tx.insert(into, row)
    return into


def _parts(some: Sequence[Row]) -> Sequence[Sequence[Row]]:
    return [some[start : start + SMALL] for start in range(0, len(some), SMALL)]


def _inserts(large: Sequence[Row], rounds: int) -> Iterator[Ratio]:
    parts = _parts(large)
    small = f"{len(parts)} tables of {SMALL}"
    for indexed, what in ((False, ""), (True, ", with an index")):

        def inserted(*some: Sequence[Row], indexed: bool = indexed) -> None:
            for part in some:
                fill(table(indexed=indexed), part)

        one, many = partial(inserted, large), partial(inserted, *parts)

        yield compare("tables", f"{LARGE} rows inserted{what}", small, one, many, budget=2.0, rounds=rounds).per(LARGE)

    def plain() -> None:
        held: dict[str, tuple[Row, int]] = {}
        for revision, row in enumerate(large):
            held[row.key] = row, revision

    mine, others = table(), cycle((large, rows(LARGE, 1)))

    def ours() -> None:
        fill(mine, next(others))

    yield compare(
        "tables", f"{LARGE} rows replaced", "a dict of (row, revision)", ours, plain, budget=60.0, rounds=rounds
    ).per(LARGE)


def _reads(large: Sequence[Row], rounds: int) -> Iterator[Ratio]:
    whole = fill(table(), large)
    parts = [fill(table(), part) for part in _parts(large)]
    held = {row.key: row for row in large}
    small = f"{len(parts)} tables of {SMALL}"

    def iterated(*tables: Rows) -> None:
        for each in tables:
            assert sum(1 for _ in each.snapshot().entries()) == len(each.snapshot())

    def replayed(*tables: Rows) -> None:
        for each in tables:
            with each.changes("bench") as stream:
                while stream.behind:
                    stream.take(STEP)

    def looked_up(get: Callable[[str], object]) -> None:
        for row in large:
            get(row.key)

    def plain() -> None:
        assert sum(1 for _ in held.values()) == LARGE

    one, many = partial(iterated, whole), partial(iterated, *parts)
    yield compare("tables", f"{LARGE} rows iterated by revision", small, one, many, budget=1.5, rounds=rounds).per(
        LARGE
    )
    yield compare(
        "tables", f"{LARGE} rows iterated by revision", "dict.values()", one, plain, budget=5.0, rounds=rounds
    ).per(LARGE)
    one, many = partial(replayed, whole), partial(replayed, *parts)
    yield compare("tables", f"{LARGE} rows taken from a stream", small, one, many, budget=1.5, rounds=rounds).per(LARGE)
    yield compare(
        "tables", f"{LARGE} rows taken from a stream", "dict.values()", one, plain, budget=50.0, rounds=rounds
    ).per(LARGE)
    ours, theirs = partial(looked_up, whole.snapshot().get), partial(looked_up, held.get)
    yield compare("tables", f"{LARGE} rows looked up by key", "dict.get", ours, theirs, budget=20.0, rounds=rounds).per(
        LARGE
    )


def _commits(large: Sequence[Row], rounds: int) -> Iterator[Ratio]:
    whole, small = fill(table(), large), fill(table(), large[:SMALL])
    among = [fill(table(), large[:SMALL]) for _ in range(100)]
    values = iter(range(1, 10**9))

    def replace(into: Rows) -> None:
        fill(into, rows(ALONE, next(values)), 1)

    def together() -> None:
        some = rows(ALONE, next(values))
        for start in range(0, ALONE, STEP):
            with write(*among) as tx:
                for row in some[start : start + STEP]:
                    tx.insert(among[start // STEP], row)

    def apart() -> None:
        some = rows(ALONE, next(values))
        for start in range(0, ALONE, STEP):
            fill(among[start // STEP], some[start : start + STEP])

    of_large, of_small = partial(replace, whole), partial(replace, small)
    what = f"a row in each transaction, among {LARGE}"
    yield compare("tables", what, f"among {SMALL}", of_large, of_small, budget=1.6, rounds=rounds).per(ALONE)
    what = f"{STEP} rows in a transaction on 100 tables"
    yield compare("tables", what, "in a transaction on one table", together, apart, budget=1.5, rounds=rounds).per(
        ALONE
    )


async def _propagation() -> Ratio:
    """Measure the time from a change to the reaction of a waiting task, which reads the change and sets an event."""
    mine = fill(table(), rows(SMALL))
    said = trio.Event()
    asked = trio.Event()

    async def follow() -> None:
        nonlocal said
        with mine.changes("bench") as stream:
            while True:
                await stream.changed()
                stream.next()
                said.set()

    async def wait() -> None:
        nonlocal asked
        while True:
            await asked.wait()
            asked = trio.Event()
            said.set()

    async def ours() -> None:
        nonlocal said
        for number in range(TURNS):
            said = trio.Event()
            fill(mine, [Row("prod/web-1", 0, number)])
            await said.wait()

    async def theirs() -> None:
        nonlocal said
        for _ in range(TURNS):
            said = trio.Event()
            asked.set()
            await said.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow)
        nursery.start_soon(wait)
        ratio = await compare_async(
            "tables", "a change read by a waiting task", "a bare trio.Event", ours, theirs, budget=4.0
        )
        nursery.cancel_scope.cancel()
    return ratio.per(TURNS)


def _huge() -> Ratio:
    huge = rows(HUGE)
    parts = _parts(huge)

    def use(some: Sequence[Row]) -> None:
        mine = fill(table(), some)
        with mine.changes("bench") as stream:
            while stream.behind:
                stream.take(STEP)

    def many() -> None:
        for part in parts:
            use(part)

    what = f"{HUGE} rows inserted and read as changes"
    return compare(
        "tables", what, f"{len(parts)} tables of {SMALL}", partial(use, huge), many, budget=3.0, rounds=1
    ).per(HUGE)
