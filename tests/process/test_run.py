"""The code that runs the state machine for ending a run. The tests of commands and of workers are in `test_child` and
`test_worker`.
"""

import math
import os
import signal
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.process.children import SHORT, alive_with, shell
from wharfinger.process.ending import Ended
from wharfinger.process.errors import SpawnError
from wharfinger.process.run import BUSY_S, CHUNK_BYTES, PUMPED_BYTES, Run, read_some, start, wait_zombie, write_all


async def test_a_run_that_is_ended_is_reaped(tag: str) -> None:
    child = await start(shell("sleep 1000", tag), None)
    try:
        run = Run(child, "sleep", replace(SHORT, term_grace_s=60.0))
        run.request_end()

        final = await run.to_end({}, pipes=0, ledger=None)

        assert final == Ended(None)
        assert (run.returncode, run.stuck) == (-signal.SIGTERM, False)
        assert run.usage is not None
        assert "sleep" in str(run.stuck_error())
    finally:
        child.close()


async def test_a_run_is_shielded_and_a_failing_job_ends_it(tag: str) -> None:
    child = await start(shell("trap '' TERM; sleep 1000", tag), None)

    async def fail() -> None:
        raise ValueError("job")

    try:
        run = Run(child, "sh", SHORT)
        with trio.CancelScope() as scope:
            scope.cancel()
            with pytest.RaisesGroup(ValueError):
                await run.to_end({"job": fail}, pipes=0, ledger=None)
        assert run.returncode == -signal.SIGKILL
        assert alive_with(tag) == []
    finally:
        child.close()


async def test_the_end_of_a_child_is_detected_without_reaping_it(tag: str) -> None:
    child = await start(shell("exit 7", tag), None)
    try:
        await wait_zombie(child.pidfd)
        await wait_zombie(child.pidfd)
    finally:
        child.close()
        assert child.popen.wait() == 7


async def test_a_failed_start_leaves_nothing(tag: str) -> None:
    with pytest.raises(SpawnError):
        await start(shell("exit 0", tag, cwd="/no/such/folder"), None)


async def test_data_passes_through_a_pipe(tag: str) -> None:
    reading, writing = os.pipe()
    for fd in (reading, writing):
        os.set_blocking(fd, False)
    sent = os.urandom(5 * CHUNK_BYTES + 1)
    got = bytearray()

    async def read() -> None:
        while chunk := await read_some(reading, 10 * CHUNK_BYTES):
            assert len(chunk) <= CHUNK_BYTES
            got.extend(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await write_all(writing, sent)
        os.close(writing)
    os.close(reading)
    assert got == sent


async def test_writing_to_a_pipe_without_a_reader_raises(tag: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with pytest.raises(BrokenPipeError):
            await write_all(writing, b"x")
    finally:
        os.close(writing)


async def test_a_fast_writer_leaves_half_of_the_time_to_other_tasks(tag: str, mock_clock: MockClock) -> None:
    """Without a pause, a flood of lines would block the event loop for a quarter of a second at a time."""
    child = await start(shell("exit 0", tag), None)
    read, write = os.pipe()
    try:
        run = Run(child, "sh", SHORT)
        os.set_blocking(read, False)
        os.write(write, b"x" * (2 * PUMPED_BYTES + 1))
        os.close(write)
        pieces: list[tuple[int, float]] = []

        def take(chunk: bytes) -> None:
            pieces.append((len(chunk), trio.current_time()))
            mock_clock.jump(100 * BUSY_S)

        mock_clock.autojump_threshold = 0
        await run.pump(read, take)
        begun = pieces[0][1]
        assert [size for size, _ in pieces] == [PUMPED_BYTES, PUMPED_BYTES, 1]
        assert [at - begun for _, at in pieces] == pytest.approx([0, 200 * BUSY_S, 400 * BUSY_S])
        mock_clock.autojump_threshold = math.inf
        mock_clock.rate = 1
        run.request_end()
        await run.to_end({}, pipes=1, ledger=None)
    finally:
        os.close(read)
        child.close()
