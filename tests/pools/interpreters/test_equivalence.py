"""A script that is started warm does what it does in a new process: outputs, exit status, files, and what it sees."""

import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.pools.interpreters.scripts_to_compare import SCRIPTS
from wharfinger.pools.interpreters.warm_start import WarmStarts, open_warm_starts
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Outcome

PATIENT = 60.0
LIMITS = Limits(
    wall_s=PATIENT, stdout_bytes=8 * 1024 * 1024, memory_bytes=2 * 1024**3, open_files=200, file_bytes=64 * 1024**2
)
ADDRESS = re.compile(rb"0x[0-9a-f]+")


def package(folder: Path, text: str) -> Path:
    """A folder with the script, and what some of the scripts expect beside it."""
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


def files_in(folder: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() if path.is_file() else "" for path in sorted(folder.rglob("*"))}


@asynccontextmanager
async def ready(command: Command, size: int = 1) -> AsyncGenerator[WarmStarts]:
    """The way to start scripts, with the pool of this one's interpreter ready."""
    async with open_warm_starts(size, None) as starts:
        await starts.run(command, LIMITS)
        with trio.fail_after(PATIENT):
            while not (starts.pools() and starts.pools()[0].snapshot().ready == size):
                assert not any(pool.unfit for pool in starts.pools())
                await trio.sleep(0.005)
        yield starts


def comparable(outcome: Outcome, *folders: Path) -> tuple[object, ...]:
    """What must be equal; the folder of the run is not, and neither are addresses of objects."""

    def text(data: bytes) -> bytes:
        for folder in folders:
            data = data.replace(str(folder).encode(), b"FOLDER")
        return ADDRESS.sub(b"0x", data)

    return outcome.ending, outcome.returncode, text(outcome.stdout), text(outcome.stderr)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_cold_and_warm_are_the_same(name: str, tmp_path: Path) -> None:
    script = package(tmp_path / "package", SCRIPTS[name])
    cold, warm = command_of(script, tmp_path / "cold"), command_of(script, tmp_path / "warm")
    other = command_of(package(tmp_path / "first", "pass"), tmp_path / "other")
    expected = await run_child(cold, LIMITS)
    async with ready(other) as starts:
        found = await starts.run(warm, LIMITS)
        assert starts.warm == 1
    assert comparable(found, warm.cwd) == comparable(expected, cold.cwd)
    assert files_in(warm.cwd) == files_in(cold.cwd)
    assert sorted(path.name for path in script.parent.iterdir()) == ["data.txt", "helper.py", "hook_script.py", "inner"]
