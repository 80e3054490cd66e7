"""The pool of an interpreter: when its zygote (the process that forks the workers) is replaced, no run is lost or repeated."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from tests.pools.interpreters.warm import GIB, LIMITS, command_of, package, ready, until, until_ready
from wharfinger.pools.interpreters.pool import open_interpreter_pool
from wharfinger.pools.interpreters.scripts import Interpreter
from wharfinger.pools.interpreters.zygote import Idle
from wharfinger.pools.memory.budget import MemoryBudget


async def test_a_pool_keeps_the_wanted_number_of_workers_ready() -> None:
    async with open_interpreter_pool(Interpreter(sys.executable, ()), 3, None, MemoryBudget(GIB)) as pool:
        await until_ready(pool, 3)
        found = pool.snapshot()
        assert (found.ready, found.waiting, pool.serves) == (3, 0, True)


async def test_a_started_zygote_is_reported_to_the_memory_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    started = trio.Event()
    monkeypatch.setattr(MemoryBudget, "note_start", lambda _: started.set())
    async with open_interpreter_pool(Interpreter(sys.executable, ()), 0, None, MemoryBudget(GIB)):
        await started.wait()


async def test_a_worker_that_was_killed_is_replaced() -> None:
    async with open_interpreter_pool(Interpreter(sys.executable, ()), 2, None, MemoryBudget(GIB)) as pool:
        await until_ready(pool, 2)
        before = set(pool._workers._idle)
        idle = next(iter(pool._workers._idle.values())).idle
        os.kill(idle.child.mark.pid, signal.SIGKILL)
        await until(lambda: set(pool._workers._idle) != before and pool.snapshot().ready == 2)


async def test_surplus_workers_are_ended_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A surplus arises because a worker is forked for each request, even if the request ends before the worker is ready."""
    monkeypatch.setattr("wharfinger.pools.interpreters.pool.SURPLUS_S", 0.01)
    script = package(tmp_path / "package", "print('done')")
    async with ready(command_of(script, tmp_path / "first"), 4) as starts:
        (pool,) = starts.pools()
        await until_ready(pool, 4)
        pids = {watched.idle.child.mark.pid for watched in pool._workers._idle.values()}
        pool.size = 1
        assert (await starts.run(command_of(script, tmp_path / "second"), LIMITS)).stdout == b"done\n"
        await until(lambda: len(pool._workers) == 1 and pool.snapshot().ready == 1)
        kept = {watched.idle.child.mark.pid for watched in pool._workers._idle.values()}
        assert kept < pids
        await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids - kept))
        assert (await starts.run(command_of(script, tmp_path / "third"), LIMITS)).stdout == b"done\n"
        await until_ready(pool, 1)


@pytest.mark.slow
async def test_a_zygote_killed_under_load_is_replaced_and_no_run_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wharfinger.pools.interpreters.pool.RESTART_S", 0.005)
    script = package(
        tmp_path / "package", "import os\nos.close(os.open('ran', os.O_CREAT | os.O_EXCL | os.O_WRONLY))\nprint('done')"
    )
    ended: list[object] = []
    async with ready(command_of(package(tmp_path / "plain", "pass"), tmp_path / "first"), 2) as starts:
        (pool,) = starts.pools()
        limiter = trio.CapacityLimiter(6)

        async def run(number: int) -> None:
            async with limiter:
                outcome = await starts.run(command_of(script, tmp_path / f"run{number}"), LIMITS)
            ended.append((outcome.ok and outcome.stdout == b"done\n") or outcome)
            if number % 8 == 3 and pool.zygote_pid:
                with suppress(ProcessLookupError):  # The zygote was killed a moment ago and is already reaped.
                    os.kill(pool.zygote_pid, signal.SIGKILL)

        async with trio.open_nursery() as nursery:
            for number in range(60):
                nursery.start_soon(run, number)
        assert [end for end in ended if end is not True] == [], ended
        assert len(ended) == 60
        assert pool.restarts >= 1
        assert starts.warm > 10
        await until(lambda: pool.serves)
        await until_ready(pool, 2)
        assert (await starts.run(command_of(script, tmp_path / "last"), LIMITS)).ok
    assert len(list(tmp_path.glob("run*/ran"))) == 60


async def test_a_worker_that_begins_late_is_waited_for_and_its_script_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit for getting a worker no longer applies once a worker has received the script."""
    script = package(
        tmp_path / "package", "import os\nos.close(os.open('ran', os.O_CREAT | os.O_EXCL | os.O_WRONLY))\nprint('done')"
    )
    async with ready(command_of(package(tmp_path / "plain", "pass"), tmp_path / "first"), 2) as starts:
        monkeypatch.setattr("wharfinger.pools.interpreters.pool.CLAIM_S", 0.0)
        outcome = await starts.run(command_of(script, tmp_path / "run"), LIMITS)
        assert (outcome.ok, outcome.stdout) == (True, b"done\n"), outcome
        assert (starts.warm, starts.cold) == (1, 1)


async def test_an_interpreter_that_cannot_serve_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
    )
    interpreter = Interpreter(sys.executable, (("PYTHONPATH", str(tmp_path)),))
    async with open_interpreter_pool(interpreter, 1, None, MemoryBudget(GIB)) as pool:
        await until(lambda: pool.unfit)
        assert "has started a thread" in pool.unfit
        assert (pool.serves, pool.restarts) == (False, 0)


async def test_no_more_workers_are_forked_than_requested(tmp_path: Path) -> None:
    """Only one worker is forked for each run, in addition to the wanted number of idle workers."""
    script = package(tmp_path / "package", "pass")
    async with ready(command_of(package(tmp_path / "plain", "pass"), tmp_path / "first"), 2) as starts:
        (pool,) = starts.pools()
        forked: list[str] = []
        add = pool._workers.add

        def counting(idle: Idle) -> None:
            forked.append(idle.uid)
            add(idle)

        pool._workers.add = counting  # type: ignore[method-assign]
        for burst in range(3):
            async with trio.open_nursery() as nursery:
                for number in range(10):
                    nursery.start_soon(starts.run, command_of(script, tmp_path / f"run{burst}.{number}"), LIMITS)
        await until_ready(pool, 2)
        assert (starts.warm, len(forked), pool.snapshot().ready) == (30, 30, 2)


async def test_an_interpreter_that_does_not_start_is_given_up_after_some_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("wharfinger.pools.interpreters.pool.RESTART_S", 0.001)
    interpreter = Interpreter(sys.executable, (("PYTHONHOME", str(tmp_path)),))
    async with open_interpreter_pool(interpreter, 1, None, MemoryBudget(GIB)) as pool:
        await until(lambda: pool.unfit)
        assert "did not start" in pool.unfit
        assert (pool.serves, pool.restarts) == (False, 4)
    assert caplog.text.count("another one is started in") == 4
