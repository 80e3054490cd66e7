"""Helpers for tests of warm interpreters: packages with a script, commands that run it, and a pool that is ready."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from wharfinger.pools.interpreters.pool import InterpreterPool
from wharfinger.pools.interpreters.warm_start import WarmStarts, open_warm_starts
from wharfinger.pools.memory.budget import MemoryBudget
from wharfinger.process.command import Command, Limits
from wharfinger.process.ledger import ProcessLedger

PATIENT = 60.0
GIB = 1024**3
LIMITS = Limits(
    wall_s=PATIENT, stdout_bytes=8 * 1024 * 1024, memory_bytes=2 * 1024**3, open_files=200, file_bytes=64 * 1024**2
)


def package(folder: Path, text: str) -> Path:
    """Create a package folder with the script, and with the files beside it that some scripts expect."""
    folder.mkdir()
    (folder / "helper.py").write_text(
        "VALUE = 5\nclass Kind:\n    def __del__(self): print('del', VALUE)\nprint(__name__)\n"
    )
    (folder / "inner").mkdir()
    (folder / "inner" / "__init__.py").touch()
    (folder / "inner" / "deep.py").write_text("VALUE = 'deep'\n")
    (folder / "data.txt").write_text("data")
    script = folder / "hook_script.py"
    script.write_bytes(f"#!{sys.executable}\n{text}\n".encode("utf-8", "surrogateescape"))
    script.chmod(0o755)
    return script


def command_of(script: Path, cwd: Path) -> Command:
    """Create the folder ``cwd``. Return a command that runs the script in this folder, which is also its home."""
    cwd.mkdir()
    environment = {
        "PATH": os.defpath,
        "HOME": str(cwd),
        "GIVEN": "yes",
        "TZ": "Europe/Berlin",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "7",
    }
    return Command((str(script), "first", "second word"), cwd, environment)


def descriptors() -> set[str]:
    """Return the open descriptors of this process."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def reap(pid: int) -> int:
    """Reap a child that has ended, and return its status."""
    return os.waitpid(pid, 0)[1]


async def until(condition: Callable[[], object]) -> None:
    """Poll until a condition holds. Use this only if no event reports a change of the condition."""
    with trio.fail_after(PATIENT):
        while not condition():  # noqa: ASYNC110 - other processes, and pools that report to their own tasks
            await trio.sleep(0.002)


async def until_ready(pool: InterpreterPool, size: int) -> None:
    """Wait until this number of workers is idle."""
    await until(lambda: pool.snapshot().ready >= size or pool.unfit)
    assert not pool.unfit


@asynccontextmanager
async def ready(command: Command, size: int = 1, ledger: ProcessLedger | None = None) -> AsyncGenerator[WarmStarts]:
    """Run the command once in a new process, and yield a `WarmStarts` once its pool for the command's interpreter has ``size``
    idle workers.
    """
    async with open_warm_starts(size, ledger, MemoryBudget(GIB)) as starts:
        await starts.run(command, LIMITS)
        await until(starts.pools)
        await until_ready(starts.pools()[0], size)
        yield starts
