"""Zygotes, the processes that fork workers. The workers become children of this process."""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.pools.interpreters.warm import descriptors, reap, until
from wharfinger.pools.interpreters.scripts import Interpreter
from wharfinger.pools.interpreters.zygote import Idle, Zygote, ZygoteError, open_zygote
from wharfinger.process.ledger import ProcessLedger, open_ledger
from wharfinger.process.proc_stat import parse_tokens
from wharfinger.process.run import wait_zombie

PYTHON = Interpreter(sys.executable, (("PYTHONDONTWRITEBYTECODE", "1"),))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ProcessLedger]:
    with open_ledger(tmp_path / "journal") as opened:
        yield opened


@asynccontextmanager
async def forked(zygote: Zygote, ledger: ProcessLedger | None = None) -> AsyncGenerator[Idle]:
    idle = await zygote.fork()
    try:
        yield idle
    finally:
        idle.control.close()
        with trio.fail_after(300):
            await wait_zombie(idle.child.pidfd)
        assert reap(idle.child.mark.pid) == 0
        idle.child.close()
        if ledger is not None:
            ledger.forget(idle.uid)


async def test_a_worker_is_a_child_of_this_process_in_a_session_of_its_own(ledger: ProcessLedger) -> None:
    async with open_zygote(PYTHON, ledger) as zygote, forked(zygote, ledger) as idle:
        pid = idle.child.mark.pid
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        assert [int(field) for field in fields[1:4]] == [os.getpid(), pid, pid]
        assert (idle.uid, pid) in {(entry.token, entry.pid) for entry in ledger.entries()}
        await until(
            lambda: len(list(Path(f"/proc/{pid}/fd").iterdir())) == 4
        )  # These are the three standard streams and the control socket.


async def test_a_worker_has_its_own_token_and_not_the_zygotes() -> None:
    async with open_zygote(PYTHON, None) as zygote, forked(zygote) as idle:
        of_the_zygote = parse_tokens(Path(f"/proc/{zygote.pid}/environ").read_bytes())
        tokens = parse_tokens(Path(f"/proc/{idle.child.mark.pid}/environ").read_bytes())
        assert idle.uid in tokens
        assert len(of_the_zygote - tokens) == 1


async def test_a_worker_outlives_its_zygote() -> None:
    async with open_zygote(PYTHON, None) as zygote:
        idle = await zygote.fork()
        os.kill(zygote.pid, signal.SIGKILL)
        await zygote.wait()
    assert Path(f"/proc/{idle.child.mark.pid}/cmdline").read_bytes()  # This would be empty if the worker had ended.
    idle.control.close()
    with trio.fail_after(300):
        await wait_zombie(idle.child.pidfd)
    reap(idle.child.mark.pid)
    idle.child.close()


async def test_a_dead_zygote_forks_no_worker_and_leaks_no_descriptor(ledger: ProcessLedger) -> None:
    before = descriptors()
    async with open_zygote(PYTHON, ledger) as zygote:
        os.kill(zygote.pid, signal.SIGKILL)
        await zygote.wait()
        with pytest.raises(ZygoteError, match="has ended"):
            await zygote.fork()
    assert ledger.entries() == ()
    assert descriptors() == before


async def test_a_cancelled_fork_leaves_nothing(ledger: ProcessLedger) -> None:
    before = descriptors()
    async with open_zygote(PYTHON, ledger) as zygote:
        entries = ledger.entries()
        with trio.CancelScope() as scope:
            scope.cancel()
            idle = await zygote.fork()
            idle.control.close()
            await trio.lowlevel.checkpoint()
        if scope.cancelled_caught and ledger.entries() == entries:
            return
        with trio.fail_after(300):
            await wait_zombie(idle.child.pidfd)
        reap(idle.child.mark.pid)
        idle.child.close()
    assert descriptors() == before


async def test_an_interpreter_that_does_not_start_is_reported_with_its_output(tmp_path: Path) -> None:
    broken = Interpreter(sys.executable, (("PYTHONHOME", str(tmp_path)),))
    with pytest.RaisesGroup(ZygoteError, flatten_subgroups=True, allow_unwrapped=True) as caught:
        async with open_zygote(broken, None):
            raise AssertionError("it cannot start")
    assert "did not start" in str(caught.value.exceptions[0] if hasattr(caught.value, "exceptions") else caught.value)


@pytest.mark.slow
async def test_a_worker_that_was_forked_too_late_is_reaped(
    ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zygote is stopped until the fork times out, as on a machine that swaps. Then it forks the worker nevertheless. This
    worker must end, and be reaped.
    """
    monkeypatch.setattr("wharfinger.pools.interpreters.zygote.FORK_S", 0.05)
    before = descriptors()
    async with open_zygote(PYTHON, ledger) as zygote:
        own = {entry.token for entry in ledger.entries()}
        os.kill(zygote.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ZygoteError, match="forked no worker in time"):
                await zygote.fork()
            assert len({entry.token for entry in ledger.entries()} - own) == 1
        finally:
            os.kill(zygote.pid, signal.SIGCONT)
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        await until(lambda: len(children.read_text().split()) >= 2)
    assert children.read_text().split() == []
    assert ledger.entries() == ()
    assert descriptors() == before
