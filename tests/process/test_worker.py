"""Children that keep running: the exchange of data, and their complete end in every case.

The fixture ``tag`` checks after each test that no process with the test's tag, no unreaped child and no open descriptor is left.
"""

import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.process.children import Lines, alive_with, is_alive, python, shell, wait_dead
from tests.scale import scaled
from wharfinger.process.command import Command, Limits
from wharfinger.process.errors import SpawnError
from wharfinger.process.ledger import open_ledger
from wharfinger.process.worker import STDERR_BYTES, Worker, open_worker

CAT = "exec cat"
IGNORES_TERM = "trap '' TERM; echo ready; while :; do sleep 1000; done"
UNRULY = {
    "ignores SIGTERM": IGNORES_TERM,
    "a grandchild holds stdout": "(trap '' TERM; exec sleep 1000) & echo ready; exit 0",
    "a daemonised grandchild": "setsid sh -c 'trap \"\" TERM HUP; echo ready; exec sleep 1000' & wait",
    "job control": "set -m; sleep 1000 & sleep 1000 & echo ready; wait",
    "writes without end": "echo ready; while :; do echo 0123456789012345678901234567890123456789; done",
    "floods stderr": "echo ready; while :; do echo 0123456789012345678901234567890123456789 >&2; done",
    "closed its pipes": "echo ready; exec sleep 1000 <&- >&- 2>&-",
    "stops itself": "echo ready; kill -STOP $$",
}
GRACE_S = 0.05


async def read_until(worker: Worker, text: bytes) -> bytes:
    """Return the output of a worker through ``text``, including any output that arrived together with it."""
    said = b""
    while text not in said:
        chunk = await worker.receive_some(4096)
        assert chunk, f"the worker's output ended after {said!r}"
        said += chunk
    return said


async def read_all(worker: Worker) -> bytes:
    said = b""
    while chunk := await worker.receive_some(1 << 20):
        said += chunk
    return said


async def test_data_is_exchanged_with_a_worker(tag: str) -> None:
    async with open_worker(shell(CAT, tag)) as worker:
        assert is_alive(worker.pid)
        for word in (b"one\n", b"two\n"):
            await worker.send(word)
            assert await read_until(worker, b"\n") == word
    assert not is_alive(worker.pid)
    assert await worker.wait() in {0, -signal.SIGTERM}  # It ends by its input or by the signal.


async def test_large_messages_go_both_ways_at_once(tag: str) -> None:
    sent = os.urandom(3_000_000)
    async with open_worker(shell(CAT, tag)) as worker, trio.open_nursery() as nursery:
        nursery.start_soon(worker.send, sent)
        said = b""
        while len(said) < len(sent):
            said += await worker.receive_some(1 << 20)
        assert said == sent


async def test_output_is_not_read_ahead(tag: str) -> None:
    """The pipe is the only buffer, so a worker is blocked if its caller does not read."""
    async with open_worker(shell("echo a; echo b; read x; echo c", tag)) as worker:
        assert await worker.receive_some(1) == b"a"
        await worker.send(b"\n")
        assert (await read_all(worker)).split() == [b"b", b"c"]


async def test_a_worker_may_exit_by_itself(tag: str) -> None:
    async with open_worker(shell("echo bye; echo why >&2; exit 3", tag)) as worker:
        assert await worker.wait() == 3
        assert await read_all(worker) == b"bye\n"
        assert await worker.receive_some(10) == b""
        assert worker.stderr_tail() == b"why\n"
        with pytest.raises(trio.BrokenResourceError):
            await worker.send(b"x")
    assert await worker.wait() == 3


async def test_processes_of_a_worker_do_not_outlive_it(tag: str) -> None:
    """The output of the worker ends although a grandchild still has stdout open."""
    async with open_worker(shell("(trap '' TERM; exec sleep 1000) & echo ready", tag)) as worker:
        assert await read_all(worker) == b"ready\n"
        assert await worker.wait() == 0
        assert alive_with(tag) == []


async def test_a_worker_may_close_its_stdout(tag: str) -> None:
    async with open_worker(shell("exec >&-; read line; exit 5", tag)) as worker:
        assert await worker.receive_some(10) == b""
        assert is_alive(worker.pid)
        await worker.send(b"go\n")
        assert await worker.wait() == 5


async def test_the_tail_of_stderr_is_retained_and_a_sink_gets_everything(tag: str) -> None:
    lines = Lines()
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&2; echo done"
    async with open_worker(shell(script, tag), on_stderr=lines) as worker:
        await read_until(worker, b"done")
        await lines.wait_for("line 19999\n")
        await worker.wait()
        assert len(worker.stderr_tail()) == STDERR_BYTES
        assert lines.data.endswith(worker.stderr_tail())
        assert lines.data.startswith(b"line 0\n")


async def test_a_failing_sink_ends_the_worker(tag: str) -> None:
    def broken(_chunk: bytes) -> None:
        raise ValueError("sink")

    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        async with open_worker(shell("echo >&2; " + IGNORES_TERM, tag), term_grace_s=GRACE_S, on_stderr=broken):
            await trio.sleep_forever()
    assert alive_with(tag) == []


async def test_a_worker_may_clean_up_within_its_grace(tag: str, tmp_path: Path) -> None:
    """The cleanup succeeds even if the worker writes more than fits into the pipe, because its output is still read."""
    script = (
        "import os, signal, sys, pathlib\n"
        "def end(*_):\n"
        "    os.write(1, b'x' * 300000)\n"
        f"    pathlib.Path({str(tmp_path / 'cleaned')!r}).touch()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "os.write(1, b'ready')\n"
        "while True: signal.pause()\n"
    )
    async with open_worker(python(script, tag), term_grace_s=100.0) as worker:
        await read_until(worker, b"ready")
    assert (tmp_path / "cleaned").exists()
    assert await worker.wait() == 0


async def test_leaving_the_block_closes_stdin(tag: str, tmp_path: Path) -> None:
    script = f"trap '' TERM; echo ready; cat; touch {tmp_path}/saw-the-end"
    async with open_worker(shell(script, tag), term_grace_s=100.0) as worker:
        await read_until(worker, b"ready")
    assert (tmp_path / "saw-the-end").exists()


async def test_a_worker_is_closed_after_the_block(tag: str) -> None:
    async with open_worker(shell(CAT, tag)) as worker:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await worker.send(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await worker.receive_some(1)


async def test_pending_calls_end_when_the_block_is_left(tag: str) -> None:
    async with trio.open_nursery() as nursery, open_worker(shell(CAT, tag)) as worker:
        nursery.start_soon(_expect_closed, worker)
        await trio.testing.wait_all_tasks_blocked()


async def _expect_closed(worker: Worker) -> None:
    with pytest.raises(trio.ClosedResourceError):
        await worker.receive_some(1)


async def test_a_failed_start_is_raised_before_the_block(tag: str, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        with pytest.raises(SpawnError, match="not on PATH"):
            async with open_worker(Command(("no-such-program",), Path("/"), {"PATH": "/usr/bin"}), ledger=ledger):
                raise AssertionError("never")
        assert ledger.entries() == ()


async def test_a_command_with_input_is_refused(tag: str) -> None:
    with pytest.raises(AssertionError, match="must have no input"):
        async with open_worker(replace(shell(CAT, tag), stdin=b"x")):
            raise ValueError("never")


async def test_an_error_in_the_block_ends_the_worker(tag: str) -> None:
    with pytest.RaisesGroup(ValueError):
        async with open_worker(shell(IGNORES_TERM, tag), term_grace_s=GRACE_S) as worker:
            await read_until(worker, b"ready")
            raise ValueError("body")
    assert alive_with(tag) == []


async def test_the_ledger_has_a_worker_only_while_it_lives(tag: str, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        async with open_worker(shell(CAT, tag), ledger=ledger) as worker:
            (entry,) = ledger.entries()
            assert entry.pid == worker.pid
        assert ledger.entries() == ()
        async with open_worker(shell("exit 0", tag), ledger=ledger) as worker:
            await worker.wait()
            assert ledger.entries() == ()


async def test_a_worker_killed_from_outside_has_its_signal(tag: str) -> None:
    async with open_worker(shell(IGNORES_TERM, tag)) as worker:
        await read_until(worker, b"ready")
        os.kill(worker.pid, signal.SIGKILL)
        await wait_dead(worker.pid)
        assert await worker.wait() == -signal.SIGKILL


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", UNRULY)
async def test_no_process_survives_a_cancellation_at_any_moment(tag: str, what: str) -> None:
    """The cancellation comes at a random moment: immediately, after some turns of the event loop, or after some bytes of
    output.
    """
    draw = random.Random(what)  # noqa: S311 - the same moments in every run
    for _ in range(scaled(200, 10)):
        turns, size = draw.choice([0, 1, 2, 3, 5, 10, 50, 200, 1000]), draw.choice([1, 6, 1000, 100_000])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, turns, nursery.cancel_scope)
            async with open_worker(shell(UNRULY[what], tag), term_grace_s=GRACE_S) as worker:
                got = 0
                while got < size and (chunk := await worker.receive_some(4096)):
                    got += len(chunk)
            nursery.cancel_scope.cancel()
        assert alive_with(tag) == []


async def _cancel_after(turns: int, scope: trio.CancelScope) -> None:
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_thirty_workers_run_at_once(tag: str) -> None:
    async def one() -> None:
        async with open_worker(shell(CAT, tag)) as worker:
            await worker.send(b"ping\n")
            assert await read_until(worker, b"\n") == b"ping\n"

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(one)


async def test_unread_output_and_input_are_known_without_waiting(tag: str) -> None:
    async with open_worker(shell("read line; echo 'said' >&2; echo out; read more; exit 0", tag)) as worker:
        assert not worker.has_output()
        await worker.send(b"first\n")
        assert await read_until(worker, b"out\n") == b"out\n"
        with trio.fail_after(60):
            await worker.settle_stderr()
        assert worker.stderr_tail() == b"said\n"
        assert (worker.has_output(), worker.unread_bytes()) == (False, 0)
        await worker.send(b"second\nthird\n")
        assert await worker.wait() == 0
        assert worker.has_output(), "the end of its output is still unread"
        assert worker.unread_bytes() == len(b"third\n")
        assert worker.usage is not None
        assert worker.usage.max_rss_bytes > 0


async def test_limits_of_the_kernel_hold_for_a_worker(tag: str) -> None:
    bounds = Limits(wall_s=1.0, stdout_bytes=0, open_files=77)
    async with open_worker(shell("ulimit -n; read end", tag), bounds=bounds) as worker:
        assert await read_until(worker, b"\n") == b"77\n"


async def test_a_worker_reads_the_end_of_its_input(tag: str) -> None:
    async with open_worker(python("import sys; print(len(sys.stdin.read()))", tag)) as worker:
        await worker.send(b"abc")
        worker.end_input()
        worker.end_input()
        with pytest.raises(trio.ClosedResourceError):
            await worker.send(b"d")
        assert await read_all(worker) == b"3\n"
        assert await worker.wait() == 0
