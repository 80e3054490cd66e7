"""Warm runs of a script, that is, runs in a worker that a zygote process has forked. Their outputs, exit status, files and
environment equal those of a run in a new process.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pools.interpreters.scripts_to_compare import SCRIPTS
from tests.pools.interpreters.warm import LIMITS, command_of, package, ready
from wharfinger.process.child import run_child
from wharfinger.process.command import Outcome

ADDRESS = re.compile(rb"0x[0-9a-f]+")
FRAME_BELOW = re.compile(
    rb'  File "[^"\n]*/(?:zygote_program|script_end).py", line \d+ in .*\n|\nExtension modules: .*\n'
)


def files_in(folder: Path) -> Mapping[str, str]:
    return {path.name: path.read_text() if path.is_file() else "" for path in sorted(folder.rglob("*"))}


def comparable(outcome: Outcome, *folders: Path) -> tuple[object, ...]:
    """Return the parts of the outcome that must be equal. Names of the given folders and addresses of objects are replaced.

    A dump of the stack also shows the frames of the zygote below the script. This known difference (docs/pools.md) is removed.
    """

    def text(data: bytes) -> bytes:
        for folder in folders:
            data = data.replace(str(folder).encode(), b"FOLDER")
        return ADDRESS.sub(b"0x", FRAME_BELOW.sub(b"", data))

    return outcome.ending, outcome.returncode, text(outcome.stdout), text(outcome.stderr)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", SCRIPTS)
async def test_cold_and_warm_runs_have_the_same_results(name: str, tmp_path: Path) -> None:
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


async def test_the_usage_is_that_of_the_script(tmp_path: Path) -> None:
    """The usage covers only this run. It excludes the zygote, and the time in which the worker was idle."""
    busy = package(
        tmp_path / "package",
        "import time\nkept = bytearray(80_000_000)\nwhile time.process_time() < 0.3: pass",
    )
    idle = package(tmp_path / "idle", "pass")
    async with ready(command_of(idle, tmp_path / "first")) as starts:
        little = await starts.run(command_of(idle, tmp_path / "second"), LIMITS)
        much = await starts.run(command_of(busy, tmp_path / "third"), LIMITS)
        assert starts.warm == 2
    assert 0.25 < much.usage.user_s + much.usage.system_s < 2.0
    assert little.usage.user_s + little.usage.system_s < 0.2
    assert much.usage.max_rss_bytes > 80_000_000 > little.usage.max_rss_bytes
