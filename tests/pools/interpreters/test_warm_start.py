"""Commands that run warm (in a worker that a zygote process has forked) if possible, and otherwise cold (in a new process).
Many runs leak no process, no descriptor and no memory.
"""

import gc
import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.pools.interpreters.warm import (
    GIB,
    LIMITS,
    PATIENT,
    command_of,
    descriptors,
    package,
    ready,
    until,
    until_ready,
)
from tests.scale import scaled
from wharfinger.pools.interpreters.warm_start import open_warm_starts
from wharfinger.pools.memory.budget import MemoryBudget
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Sinks
from wharfinger.process.errors import SpawnError
from wharfinger.process.ledger import open_ledger


def below() -> set[int]:
    """Return the children of this process, including zombies."""
    found = (task.joinpath("children").read_text().split() for task in Path("/proc/self/task").iterdir())
    return {int(pid) for children in found for pid in children}


async def test_the_first_run_is_cold_and_the_next_ones_are_warm(tmp_path: Path) -> None:
    script = package(tmp_path / "package", "print('x')")
    async with ready(command_of(script, tmp_path / "a")) as starts:
        assert (starts.warm, starts.cold) == (0, 1)
        outcome = await starts.run(command_of(script, tmp_path / "b"), LIMITS)
        assert (outcome.ok, outcome.stdout, starts.warm) == (True, b"x\n", 1)


async def test_without_workers_all_starts_are_cold(tmp_path: Path) -> None:
    script = package(tmp_path / "package", "print('x')")
    async with open_warm_starts(0, None, MemoryBudget(GIB)) as starts:
        assert (await starts.run(command_of(script, tmp_path / "a"), LIMITS)).ok
        assert (starts.cold, starts.pools()) == (1, ())


async def test_other_programs_are_cold_and_the_preparation_is_done_once(tmp_path: Path) -> None:
    done: list[int] = []
    prepare: Callable[[], None] = lambda: done.append(1)  # noqa: E731
    async with open_warm_starts(1, None, MemoryBudget(GIB)) as starts:
        for _ in range(2):
            outcome = await starts.run(Command(("/bin/true",), tmp_path, {}), LIMITS, prepare=prepare)
            assert outcome.ok
        assert (len(done), starts.cold, starts.pools()) == (2, 2, ())
        script = package(tmp_path / "package", "pass")
        assert (await starts.run(command_of(script, tmp_path / "a"), LIMITS, prepare=prepare)).ok
        assert len(done) == 3


async def test_a_preparation_that_fails_starts_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    script = package(tmp_path / "package", "open('ran', 'w')")
    first, second = command_of(script, tmp_path / "a"), command_of(script, tmp_path / "b")
    async with ready(first) as starts:
        with pytest.raises(ZeroDivisionError):
            await starts.run(second, LIMITS, prepare=fail)
    assert not (second.cwd / "ran").exists()


async def test_a_script_refused_by_a_worker_is_started_cold_from_then_on(tmp_path: Path) -> None:
    plain = package(tmp_path / "plain", "pass")
    script = package(tmp_path / "package", "import subprocess\nprint(subprocess.OWN)")
    (script.parent / "subprocess.py").write_text("OWN = 'own'\n")
    async with ready(command_of(plain, tmp_path / "a")) as starts:
        for number in range(2):
            outcome = await starts.run(command_of(script, tmp_path / f"b{number}"), LIMITS)
            assert (outcome.stdout, starts.warm) == (b"own\n", 0)
        assert starts.pools()[0].metrics.counters.claims == 1


async def test_a_program_that_cannot_be_started_has_the_usual_error(tmp_path: Path) -> None:
    script = package(tmp_path / "package", "pass")
    first = command_of(script, tmp_path / "a")
    async with ready(first) as starts:
        with pytest.raises(SpawnError, match="working folder"):
            await starts.run(replace(first, cwd=tmp_path / "missing"), LIMITS)
        script.unlink()
        with pytest.raises(SpawnError, match="no such file"):
            await starts.run(first, LIMITS)


async def test_deadlines_outputs_and_cancellation_are_those_of_any_child(tmp_path: Path) -> None:
    script = package(
        tmp_path / "package", "import time, sys\nsys.stdout.write('x' * 100)\nsys.stdout.flush()\ntime.sleep(1000)"
    )
    quick = replace(LIMITS, wall_s=0.1, term_grace_s=0.1)
    async with ready(command_of(package(tmp_path / "plain", "pass"), tmp_path / "a"), 3) as starts:
        outcome = await starts.run(command_of(script, tmp_path / "b"), quick)
        assert (outcome.ending, outcome.stdout) == (Ending.DEADLINE, b"x" * 100)
        outcome = await starts.run(
            command_of(script, tmp_path / "c"), replace(LIMITS, stdout_bytes=10, term_grace_s=0.1)
        )
        assert (outcome.ending, outcome.stdout) == (Ending.OUTPUT_LIMIT, b"x" * 10)
        begun = trio.Event()
        await until_ready(starts.pools()[0], 3)
        children = below()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                sinks = Sinks(stdout=lambda _: begun.set())
                nursery.start_soon(
                    lambda: starts.run(
                        command_of(script, tmp_path / "d"), replace(LIMITS, cancel_grace_s=0.0), sinks=sinks
                    )
                )
                await begun.wait()
                scope.cancel()
        assert starts.warm == 3
        await until_ready(starts.pools()[0], 3)
        assert len(below()) == len(children)


async def test_the_pool_of_an_idle_interpreter_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = package(tmp_path / "package", "pass")
    async with ready(command_of(script, tmp_path / "a")) as starts:
        assert len(below()) == 2
        monkeypatch.setattr("wharfinger.pools.interpreters.warm_start.IDLE_S", 0.0)
        # The pool's timer was set with the old limit, so the test starts the check itself.
        starts.pools()[0].used_at = trio.current_time()
        starts._nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await until(lambda: not starts._pools)
        assert below() == set()


async def test_the_number_of_interpreters_with_a_pool_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wharfinger.pools.interpreters.warm_start.MAX_INTERPRETERS", 1)
    script = package(tmp_path / "package", "print('x')")
    first = command_of(script, tmp_path / "a")
    other = replace(command_of(script, tmp_path / "b"), env={**first.env, "PYTHONUTF8": "1"})
    async with ready(first) as starts:
        assert (await starts.run(other, LIMITS)).ok
        assert (len(starts.pools()), starts.warm) == (1, 0)


@pytest.mark.slow
async def test_many_runs_leave_no_process_descriptor_or_row(tmp_path: Path) -> None:
    """After many runs of all kinds, some of them cancelled, there are as many processes, open descriptors and rows in the
    ledger as before.
    """
    kinds = {
        "good": "print('x')",
        "bad": "raise ValueError",
        "dead": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "slow": "import time\ntime.sleep(1000)",
        "forking": "import os, time\nif os.fork() == 0: time.sleep(1000)",
    }
    scripts = {kind: package(tmp_path / kind, text) for kind, text in kinds.items()}
    limits = Limits(wall_s=PATIENT, stdout_bytes=10_000, drain_s=0.0, cancel_grace_s=0.0)
    with open_ledger(tmp_path / "journal") as ledger:
        async with ready(command_of(scripts["good"], tmp_path / "first"), 2, ledger) as starts:
            gc.collect()
            opened, children = len(descriptors()), len(below())
            rows = len(ledger.entries())
            for number in range(12):
                async with trio.open_nursery() as nursery:
                    for kind, script in scripts.items():
                        command = command_of(script, tmp_path / f"{kind}{number}")

                        async def run(command: Command = command, slow: bool = kind == "slow") -> None:
                            with trio.move_on_after(0.05 if slow else PATIENT):
                                await starts.run(command, limits)

                        nursery.start_soon(run)
            await until_ready(starts.pools()[0], 2)
            assert starts.warm > 40
            assert (len(below()), len(ledger.entries())) == (children, rows)
            assert len(descriptors()) == opened
        assert ledger.entries() == ()
    assert below() == set()


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_day_of_churn_leaks_no_processes_descriptors_or_memory(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    """For 24 hours, the pool closes when idle and is opened again by the next run.

    The numbers of processes and descriptors stay constant, and so does the memory after the first hours.
    """
    mock_clock.rate = 1.0  # The clock runs at normal speed during runs, and jumps between them.
    kinds = {
        "good": "print('x')",
        "bad": "raise ValueError",
        "dead": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "forking": "import os, time\nif os.fork() == 0: time.sleep(1000)",
    }
    scripts = {kind: package(tmp_path / kind, text) for kind, text in kinds.items()}
    limits = Limits(wall_s=PATIENT, stdout_bytes=10_000, drain_s=0.0, cancel_grace_s=0.0)
    steps = scaled(144, 12)
    folders = (tmp_path / str(number) for number in itertools.count())
    begin, memory = trio.current_time(), list[int]()
    with open_ledger(tmp_path / "journal") as ledger:
        gc.collect()
        opened, children = len(descriptors()), below()
        async with open_warm_starts(2, ledger, MemoryBudget(GIB)) as starts:
            for _ in range(steps):
                with trio.fail_after(PATIENT):
                    while not starts.pools():  # If a pool is just being closed, the next run opens it again.
                        await starts.run(command_of(scripts["good"], next(folders)), limits)
                        await trio.sleep(0.01)
                for kind in kinds:
                    await until_ready(starts.pools()[0], 2)
                    await starts.run(command_of(scripts[kind], next(folders)), limits)
                    await until_ready(starts.pools()[0], 2)
                    memory.append(_resident())
                mock_clock.jump(24 * 3600 / steps)  # This is longer than a pool may be idle.
                await until(lambda: not starts.pools() and below() == children)
                assert len(descriptors()) == opened
            assert starts.warm >= 4 * steps
            assert trio.current_time() - begin >= 24 * 3600
        assert ledger.entries() == ()
    assert below() == children
    assert max(memory[-10:]) < max(memory[: len(memory) // 4]) + 4 * 1024**2


def _resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_replaced_module_is_loaded_again(tmp_path: Path) -> None:
    """The zygote has loaded the old module. A script that runs after the module was replaced must use the new one."""
    modules = tmp_path / "site-packages"
    (modules / "yaml").mkdir(parents=True)
    (modules / "yaml" / "__init__.py").write_text("VALUE = 'old'\n")
    script = package(tmp_path / "package", "import yaml\nprint(yaml.VALUE)")

    def command(name: str) -> Command:
        found = command_of(script, tmp_path / name)
        return replace(found, env={**found.env, "PYTHONPATH": str(modules)})

    async with ready(command("first")) as starts:
        assert (await starts.run(command("second"), LIMITS)).stdout == b"old\n"
        assert starts.warm == 1
        (modules / "yaml" / "new.py").write_text("VALUE = 'newer'\n")
        (modules / "yaml" / "new.py").replace(modules / "yaml" / "__init__.py")
        assert (await starts.run(command("third"), LIMITS)).stdout == b"newer\n"
        (pool,) = starts.pools()
        await until(lambda: pool.restarts and pool.serves)
        await until_ready(pool, 1)
        warm = starts.warm
        assert (await starts.run(command("fourth"), LIMITS)).stdout == b"newer\n"
        assert starts.warm == warm + 1


async def test_a_script_without_a_locale_has_the_environment_of_a_new_process(tmp_path: Path) -> None:
    """Without a locale, Python sets LC_CTYPE for itself and its children (PEP 538). A script in a warm worker must get the same
    variables of the locale as in a new process.
    """
    script = package(tmp_path / "package", "import os, subprocess, sys\nsys.stdout.flush()\nsubprocess.run(['env'])")

    def command(name: str) -> Command:
        found = command_of(script, tmp_path / name)
        return replace(found, env={key: value for key, value in found.env.items() if not key.startswith("LC_")})

    def of_the_locale(output: bytes) -> list[bytes]:
        return [line for line in output.splitlines() if line.startswith((b"LC_", b"LANG"))]

    cold = await run_child(command("cold"), LIMITS)
    async with ready(command("first")) as starts:
        warm = await starts.run(command("second"), LIMITS)
        assert starts.warm == 1
    assert of_the_locale(warm.stdout) == of_the_locale(cold.stdout)
