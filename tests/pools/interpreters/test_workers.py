"""The workers of an interpreter as a backend: the contract of backends, and the setup of a worker by a claim."""

import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.pools.claims.backend_contract import BackendContract, shown
from tests.pools.interpreters.warm import descriptors
from wharfinger.pools.claims.backend import Backend, ConflictError
from wharfinger.pools.claims.events import Lost
from wharfinger.pools.interpreters.scripts import Interpreter, warm_start
from wharfinger.pools.interpreters.workers import ClaimedWorker, Job, RefusedError, WarmWorkers
from wharfinger.pools.interpreters.zygote import open_zygote
from wharfinger.process.child import conduct
from wharfinger.process.command import Command, Limits, Outcome, User
from wharfinger.process.descendants import read_stat
from wharfinger.process.ledger import ProcessLedger, open_ledger

PYTHON = Interpreter(sys.executable, ())
LIMITS = Limits(wall_s=60.0, stdout_bytes=100_000)


def job_of(folder: Path, text: str, user: User | None = None, limits: Limits = LIMITS) -> Job:
    script = folder / "hook"
    script.write_text(f"#!{sys.executable}\n{text}\n")
    script.chmod(0o755)
    command = Command((str(script),), folder, {"A": "1"})
    start = warm_start(command)
    assert start is not None
    return Job(replace(command, user=user), limits, start)


@asynccontextmanager
async def opened(size: int, ledger: ProcessLedger | None = None) -> AsyncGenerator[WarmWorkers]:
    async with trio.open_nursery() as nursery, open_zygote(PYTHON, ledger) as zygote:
        workers = WarmWorkers(nursery, ledger)
        try:
            for _ in range(size):
                workers.add(await zygote.fork())
            yield workers
        finally:
            await workers.close()


async def run(workers: WarmWorkers, job: Job) -> Outcome:
    claimed = await workers.claim(shown(workers)[0], job)
    return await conduct(claimed.result.take(), job.command, job.limits)


class TestWarmWorkers(BackendContract[Job, ClaimedWorker]):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[tuple[Backend[Job, ClaimedWorker], Job]]:
        async with opened(3) as workers:
            yield workers, job_of(self.tmp_path, "import time\ntime.sleep(1000)")


async def test_a_worker_that_dies_while_it_is_idle_is_shown_as_lost(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal") as ledger:
        async with opened(2, ledger) as workers:
            first, second = shown(workers)
            changed = trio.Event()
            workers.on_change = changed.set
            idle = workers._idle[first.uid].idle
            os.kill(idle.child.mark.pid, signal.SIGKILL)
            with trio.fail_after(300):
                await changed.wait()
            assert list(workers.changes()) == [Lost(first.uid)]
            with pytest.raises(ConflictError):
                await workers.claim(first, job_of(tmp_path, "pass"))
            assert (await workers.claim(second, job_of(tmp_path, "pass"))).version == 2
        assert ledger.entries() == ()


async def test_a_worker_that_dies_with_its_job_is_a_conflict(tmp_path: Path) -> None:
    async with opened(1) as workers:
        (member,) = shown(workers)
        watched = workers._idle[member.uid]
        idle = watched.idle
        watched.scope.cancel()  # Nothing watches the worker now, so its death is noticed only at the claim.
        os.kill(idle.child.mark.pid, signal.SIGKILL)
        with pytest.raises(ConflictError):
            await workers.claim(member, job_of(tmp_path, "pass"))
        assert workers._handed == {}


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        ("json.py", "json.py in its folder"),
        ("logging", "logging in its folder"),
        ("tempfile.so", "tempfile.so in its folder"),
    ],
)
async def test_a_script_beside_a_module_of_a_loaded_name_is_refused(tmp_path: Path, beside: str, why: str) -> None:
    job = job_of(tmp_path, "pass")
    (tmp_path / beside).touch()
    async with opened(1) as workers:
        with pytest.raises(RefusedError, match=why):
            await workers.claim(shown(workers)[0], job)
        assert len(workers) == 0


async def test_an_archive_with_a_first_line_is_refused(tmp_path: Path) -> None:
    import zipapp

    source = tmp_path / "source"
    source.mkdir()
    (source / "__main__.py").write_text("print('archive')")
    job = job_of(tmp_path, "pass")
    zipapp.create_archive(source, tmp_path / "hook", interpreter=sys.executable)
    async with opened(1) as workers:
        with pytest.raises(RefusedError, match="archive"):
            await workers.claim(shown(workers)[0], job)


async def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, "pass")
    elsewhere = Command(job.command.argv, tmp_path / "missing", job.command.env)
    async with opened(1) as workers:
        with pytest.raises(RefusedError, match="missing"):
            await workers.claim(shown(workers)[0], Job(elsewhere, LIMITS, job.start))


async def test_packages_in_the_home_are_refused(tmp_path: Path) -> None:
    import site

    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / ".local" / "lib" / version / "site-packages").mkdir(parents=True)
    job = job_of(tmp_path, "pass")
    command = Command(job.command.argv, tmp_path, {"HOME": str(tmp_path)})
    async with opened(1) as workers:
        if site.ENABLE_USER_SITE:
            with pytest.raises(RefusedError, match="packages"):
                await workers.claim(shown(workers)[0], Job(command, LIMITS, job.start))
        else:  # This environment has no user packages, so none are found.
            await workers.claim(shown(workers)[0], Job(command, LIMITS, job.start))


async def test_limits_of_the_kernel_hold(tmp_path: Path) -> None:
    limits = Limits(
        wall_s=60.0, stdout_bytes=10_000, memory_bytes=10**9, processes=500, open_files=99, file_bytes=10**6
    )
    text = (
        "import json, resource\nkinds = ('AS', 'NPROC', 'NOFILE', 'FSIZE')\n"
        "print(json.dumps([resource.getrlimit(getattr(resource, 'RLIMIT_' + each)) for each in kinds]))"
    )
    async with opened(1) as workers:
        outcome = await run(workers, job_of(tmp_path, text, limits=limits))
    assert json.loads(outcome.stdout) == [[10**9] * 2, [500] * 2, [99] * 2, [10**6] * 2]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_a_worker_has_only_the_ids_of_its_user() -> None:
    text = (
        "import os\nprint(os.getresuid(), os.getresgid(), os.getgroups())\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapPrm', 'NoNewPrivs'))])\n"
        "print(len(os.readlink('/proc/self/exe')) > 0)"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        async with opened(1) as workers:
            outcome = await run(workers, job_of(Path(folder), text, User(231_001, 231_002)))
    ids = "(231001, 231001, 231001) (231002, 231002, 231002) []"
    assert outcome.stdout.decode().splitlines() == [ids, "['0000000000000000', '0000000000000000', '1']", "True"]


async def test_processes_in_a_new_session_of_a_script_are_killed(tmp_path: Path) -> None:
    text = (
        "import os, time\nread, write = os.pipe()\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.setsid()\n"
        "        os.write(write, str(os.getpid()).encode())\n        time.sleep(1000)\n    os._exit(0)\n"
        "print(os.read(read, 100).decode(), flush=True)"
    )
    limits = Limits(wall_s=60.0, stdout_bytes=10_000, drain_s=0.05)
    async with opened(1) as workers:
        outcome = await run(workers, job_of(tmp_path, text, limits=limits))
    assert outcome.survivors_killed == 1
    left = read_stat(int(outcome.stdout))
    assert left is None or not left.alive


async def test_closing_ends_idle_and_unclaimed_workers(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal") as ledger:
        before = descriptors()
        async with opened(3, ledger) as workers:
            pids = [idle.child.mark.pid for idle in (each.idle for each in workers._idle.values())]
            await workers.claim(shown(workers)[0], job_of(tmp_path, "import time\ntime.sleep(1000)"))
        assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
        assert ledger.entries() == ()
        assert descriptors() == before


async def test_a_worker_that_its_pool_has_ended_cannot_be_taken(tmp_path: Path) -> None:
    async with opened(1) as workers:
        claimed = await workers.claim(shown(workers)[0], job_of(tmp_path, "import time\ntime.sleep(1000)"))
        await workers.close()
        with pytest.raises(ConflictError, match="closed"):
            claimed.result.take()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_a_worker_is_killed_even_if_its_pool_is_cancelled_meanwhile(turns: int) -> None:
    before = descriptors()
    async with trio.open_nursery() as nursery:
        async with open_zygote(PYTHON, None) as zygote:
            workers = WarmWorkers(nursery, None)
            workers.add(await zygote.fork())
            (process,) = workers.processes()
        process.end()
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
        await workers.close()
    assert not Path(f"/proc/{process.pid}").exists()
    assert len(workers) == 0
    assert descriptors() == before
