"""Child processes: their cost compared with ``trio.run_process``, one after another and many at the same time.

Wharfinger starts each child in a new session, streams its output, and then kills its descendants that still run (a *sweep*).
"""

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import trio

from bench.measure import Ratio, compare_async
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Sinks
from wharfinger.process.ledger import ProcessLedger, open_ledger

Run = Callable[[], Awaitable[object]]
Many = Callable[[Run], Awaitable[None]]

ENV = {"PATH": os.defpath}
TRUE = Command(("/bin/true",), Path("/"), ENV)
MEGA = Command(("/bin/sh", "-c", "head -c 1000000 /dev/zero"), Path("/"), ENV)
LIMITS = Limits(wall_s=30, stdout_bytes=2_000_000)
ROUNDS = 20
TOGETHER = 100
ENDINGS = 5
DEAF = Command(("/bin/bash", "-c", "(trap '' TERM; echo ready; sleep 1000; :) & wait"), Path("/"), ENV)
"""A command whose child ignores SIGTERM, so each cancellation takes the whole grace period, and the sweep finds the
child."""


def measure(long: bool) -> Iterator[Ratio]:
    """Measure runs of /bin/true one by one and many at the same time, runs with a megabyte of output, and cancellations.

    Some runs are recorded in a process ledger (``wharfinger/process/ledger.py``), as in the daemon.
    """
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "journal.db") as ledger:
        return [
            *await _compare_true(ledger),
            await _compare_output(),
            await _compare_endings(ledger),
        ]


async def _compare_true(ledger: ProcessLedger) -> list[Ratio]:
    async def ours() -> None:
        await run_child(TRUE, LIMITS)

    async def journalled() -> None:
        await run_child(TRUE, LIMITS, ledger=ledger)

    async def theirs() -> None:
        await trio.run_process(TRUE.argv, env=ENV, capture_stdout=True, capture_stderr=True)

    async def compared(what: str, many: Many, one: Run, budget: float) -> Ratio:
        return await compare_async(
            "process", what, "trio.run_process", lambda: many(one), lambda: many(theirs), budget=budget
        )

    return [
        await compared(f"{ROUNDS} x /bin/true", _in_turn, ours, 4.0),
        await compared(f"{ROUNDS} x /bin/true, journalled", _in_turn, journalled, 5.0),
        await compared(f"{TOGETHER} x /bin/true at once, journalled", _at_once, journalled, 3.0),
    ]


async def _compare_output() -> Ratio:
    async def ours() -> None:
        await run_child(MEGA, LIMITS)

    async def theirs() -> None:
        await trio.run_process(MEGA.argv, env=ENV, capture_stdout=True)

    what = f"{ROUNDS} x 1 MB of output"
    return await compare_async(
        "process", what, "trio.run_process", lambda: _in_turn(ours), lambda: _in_turn(theirs), budget=3.0
    )


async def _in_turn(run: Run) -> None:
    for _ in range(ROUNDS):
        await run()


async def _at_once(run: Run) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(TOGETHER):
            nursery.start_soon(run)


async def _compare_endings(ledger: ProcessLedger) -> Ratio:
    """Measure the time until many children that are cancelled together have ended, against the time for one child.

    Both times include the grace period of 0.3 s, so a ratio of 1 means that further children cost nothing. The budget of 3
    allows about a second for all children.
    """
    pairs = [(await _ending_s(TOGETHER, ledger), await _ending_s(1, ledger)) for _ in range(ENDINGS)]
    many, one = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Ratio(
        "process", f"{TOGETHER} x cancelled at once, ignoring SIGTERM", "one such child", many, one, budget=3.0
    )


async def _ending_s(count: int, ledger: ProcessLedger) -> float:
    """Return the seconds from the cancellation of ``count`` running children to the death of the last of their descendants."""
    started, starts = trio.open_memory_channel[None](count)

    async def run() -> None:
        limits = Limits(wall_s=1000, stdout_bytes=1000)
        await run_child(DEAF, limits, sinks=Sinks(stdout=lambda _: started.send_nowait(None)), ledger=ledger)

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(run)
        for _ in range(count):
            await starts.receive()
        begin = time.perf_counter()
        nursery.cancel_scope.cancel()
    return time.perf_counter() - begin
