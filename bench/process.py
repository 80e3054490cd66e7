"""Running children: what own session, sweep and streaming cost over trio's own call."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import trio

from bench.measure import Ratio, compare_async
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits
from wharfinger.process.ledger import open_ledger

ROUNDS = 20


def measure() -> Iterator[Ratio]:
    """/bin/true, with and without the ledger, and a megabyte of output."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    env = {"PATH": os.defpath}
    true = Command(("/bin/true",), Path("/"), env)
    mega = Command(("/bin/sh", "-c", "head -c 1000000 /dev/zero"), Path("/"), env)
    limits = Limits(wall_s=30, stdout_bytes=2_000_000)

    async def trio_true() -> None:
        for _ in range(ROUNDS):
            await trio.run_process(["/bin/true"], env=env, capture_stdout=True, capture_stderr=True)

    async def ours_true() -> None:
        for _ in range(ROUNDS):
            await run_child(true, limits)

    async def trio_mega() -> None:
        for _ in range(ROUNDS):
            await trio.run_process(["/bin/sh", "-c", "head -c 1000000 /dev/zero"], env=env, capture_stdout=True)

    async def ours_mega() -> None:
        for _ in range(ROUNDS):
            await run_child(mega, limits)

    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "journal.db") as ledger:

        async def ours_journalled() -> None:
            for _ in range(ROUNDS):
                await run_child(true, limits, ledger=ledger)

        what = f"{ROUNDS} x /bin/true"
        return [
            await compare_async("process", what, "trio.run_process", ours_true, trio_true, budget=4.0),
            await compare_async(
                "process", f"{what}, journalled", "trio.run_process", ours_journalled, trio_true, budget=5.0
            ),
            await compare_async(
                "process", f"{ROUNDS} x 1 MB of output", "trio.run_process", ours_mega, trio_mega, budget=3.0
            ),
        ]
