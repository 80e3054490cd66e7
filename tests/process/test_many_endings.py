"""A hundred runs are cancelled at the same time: within a second, all their processes are dead and removed from the ledger.

The next operation must begin within that second. The time is checked only in a run of `make test-full`, when the machine is
otherwise idle.
"""

import time
from pathlib import Path

import pytest
import trio

from tests.process.children import Lines, alive_with, is_alive, shell
from tests.scale import FULL, scaled
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Sinks
from wharfinger.process.ledger import ProcessLedger, open_ledger
from wharfinger.process.worker import open_worker

RUNS = scaled(100, 10)
TOGETHER_S = 1.0
BY_DEFAULT = Limits(wall_s=1000.0, stdout_bytes=1_000_000)
"""The limits of packages' hooks: five seconds of grace after the deadline, and the default grace after a cancellation."""

UNRULY = {
    "a child ignores SIGTERM": "(trap '' TERM; echo ready; sleep 1000; :) & wait",
    "ignores SIGTERM": "trap '' TERM; echo ready; while :; do sleep 1000; done",
    "ends at once": "echo ready; exec sleep 1000",
    "a daemonised grandchild": "setsid sh -c 'trap \"\" TERM HUP; echo ready; exec sleep 1000' & wait",
    "job control": "set -m; sleep 1000 & sleep 1000 & echo ready; wait",
    "nine daemons each": "for i in 1 2 3 4 5 6 7 8 9; do (setsid sleep 1000 &); done; echo ready; wait; sleep 1000",
}


async def _run(command: Command, ledger: ProcessLedger, ready: trio.MemorySendChannel[None]) -> None:
    lines = Lines()
    async with trio.open_nursery() as nursery:

        async def tell() -> None:
            await lines.wait_for("ready")
            await ready.send(None)

        nursery.start_soon(tell)
        await run_child(command, BY_DEFAULT, sinks=Sinks(stdout=lines), ledger=ledger)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", UNRULY)
async def test_runs_that_are_cancelled_together_end_together(tag: str, tmp_path: Path, what: str) -> None:
    ready, is_ready = trio.open_memory_channel[None](0)
    with open_ledger(tmp_path / "journal.db") as ledger:
        async with trio.open_nursery() as everybody:
            for _ in range(RUNS):
                everybody.start_soon(_run, shell(UNRULY[what], tag), ledger, ready)
            for _ in range(RUNS):
                await is_ready.receive()
            assert len(ledger.entries()) == RUNS
            begin = time.monotonic()
            everybody.cancel_scope.cancel()
        took_s = time.monotonic() - begin
        assert ledger.entries() == ()
    assert alive_with(tag) == []
    if FULL:
        assert took_s < TOGETHER_S


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20, 100])
async def test_runs_cancelled_during_their_start_end(tag: str, tmp_path: Path, turns: int) -> None:
    """The runs are cancelled at different moments of their start: before or while a thread starts the child, or before the
    child is supervised.
    """
    with open_ledger(tmp_path / "journal.db") as ledger:
        async with trio.open_nursery() as everybody:
            for _ in range(RUNS):
                everybody.start_soon(_start, shell(UNRULY["ignores SIGTERM"], tag), ledger)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            everybody.cancel_scope.cancel()
        assert ledger.entries() == ()
    assert alive_with(tag) == []


async def _start(command: Command, ledger: ProcessLedger) -> None:
    await run_child(command, BY_DEFAULT, ledger=ledger)


async def test_workers_and_commands_end_together(tag: str, tmp_path: Path) -> None:
    """One shared sweep kills the processes of all runs that end at the same time, whether they are workers or commands."""
    ready, is_ready = trio.open_memory_channel[None](0)

    async def work() -> None:
        command = shell("trap '' TERM; echo ready; while :; do sleep 1000; done", tag)
        async with open_worker(command, ledger=ledger, term_grace_s=0.1) as worker:
            await worker.receive_some(100)
            await ready.send(None)
            await trio.sleep_forever()

    with open_ledger(tmp_path / "journal.db") as ledger:
        async with trio.open_nursery() as everybody:
            for what in UNRULY.values():
                everybody.start_soon(_run, shell(what, tag), ledger, ready)
                everybody.start_soon(work)
            for _ in range(2 * len(UNRULY)):
                await is_ready.receive()
            everybody.cancel_scope.cancel()
        assert ledger.entries() == ()
    assert alive_with(tag) == []


async def test_other_runs_continue_while_some_end(tag: str, tmp_path: Path) -> None:
    """A shared sweep kills no process of a run that continues."""
    ready, is_ready = trio.open_memory_channel[None](0)
    with open_ledger(tmp_path / "journal.db") as ledger:
        async with trio.open_nursery() as staying:
            for _ in range(RUNS):
                staying.start_soon(_run, shell(UNRULY["ends at once"], tag), ledger, ready)
            for _ in range(RUNS):
                await is_ready.receive()
            before = ledger.entries()
            async with trio.open_nursery() as going:
                for _ in range(RUNS):
                    going.start_soon(_run, shell(UNRULY["a child ignores SIGTERM"], tag), ledger, ready)
                for _ in range(RUNS):
                    await is_ready.receive()
                going.cancel_scope.cancel()
            assert ledger.entries() == before
            assert [entry.pid for entry in before if not is_alive(entry.pid)] == []
            staying.cancel_scope.cancel()
        assert ledger.entries() == ()
