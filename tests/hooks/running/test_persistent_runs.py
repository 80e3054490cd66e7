"""Persistent hooks (hooks that keep running), as the process runner runs them: the examples in docs/pools.md, the files of
runs, failures, and containment.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hooks.support.contained import IS_ROOT, LIMITS, package_in, state_folder, users
from tests.hooks.support.scripts import run_of, write_hook
from tests.pools.persistent.programs import GIB
from tests.process.children import PATH, is_alive
from wharfinger.hooks.config.bindings import HookPool
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.runner import HookRun
from wharfinger.pools.memory.budget import open_memory_budget
from wharfinger.pools.persistent.programs import PersistentPrograms, open_persistent_programs
from wharfinger.process.child import run_child
from wharfinger.process.command import Command

DOCS = Path(__file__).resolve().parents[3] / "docs" / "pools.md"

LOOP = """
import json, os, sys
def patch(path, value):
    with open(os.environ["VALUES_JSON_PATCH_PATH"], "w") as file:
        json.dump([{"op": "add", "path": path, "value": value}], file)
runs = 0
for line in sys.stdin:
    asked = json.loads(line)
    os.environ.update(asked["environment"])
    runs += 1
    status = 0
    BODY
    print(json.dumps({"run": asked["run"], "status": status}), flush=True)
"""


def looping(folder: Path, body: str, python: str = sys.executable) -> Path:
    """Write a persistent hook in Python that executes ``body`` in each run."""
    return write_hook(folder, f"#!{python} -IS\n{LOOP.replace('BODY', body)}\n", name="10-hook.py")


def persistent(script: Path) -> HookRun:
    """Return a run of a persistent hook."""
    return replace(run_of(script), pool=HookPool.PERSISTENT, owner="prod.app")


@asynccontextmanager
async def keeping(
    folder: Path, containment: Containment = NO_CONTAINMENT
) -> AsyncGenerator[tuple[ProcessHookRunner, PersistentPrograms]]:
    """Open a runner that can run persistent hooks. Yield it together with the persistent processes."""
    async with open_memory_budget(GIB) as budget, open_persistent_programs(None, budget) as programs:
        environment = {"PATH": PATH}
        yield (
            ProcessHookRunner(
                folder / "scratch", LIMITS, environment=environment, containment=containment, persistent=programs
            ),
            programs,
        )


def example(language: str) -> str:
    """Return the example in this language from docs/pools.md."""
    found = re.search(rf"```{language}\n(#!.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("language", ["python", "bash"])
async def test_documentation_examples_run_persistently_and_standalone(language: str, tmp_path: Path) -> None:
    if language == "bash" and shutil.which("jq", path=PATH) is None:
        pytest.skip("jq is not installed")
    script = write_hook(tmp_path, example(language), name="10-hook")
    asked = await run_child(Command((str(script), "--config"), tmp_path, {"PATH": PATH}), LIMITS)
    assert read_hook_config(asked.stdout, hook="example").pool is HookPool.PERSISTENT
    async with keeping(tmp_path) as (runner, programs):
        for number in range(1, 4):
            outcome = await runner.run(persistent(script))
            assert outcome.succeeded, outcome
            assert outcome.log_lines == ("got 2 contexts",)
            assert (programs.counters.runs, programs.counters.started) == (number, 1)
        alone = await runner.run(replace(persistent(script), pool=HookPool.NONE))
        assert alone.succeeded
        assert alone.log_lines == ("got 2 contexts",)
        assert programs.counters.runs == 3


async def test_runs_of_a_persistent_process_have_separate_files(tmp_path: Path) -> None:
    body = "patch('/runs', [runs, os.getpid(), json.load(open(os.environ['VALUES_PATH'])) != {}, os.environ['HOME']])"
    script = looping(tmp_path, body)
    async with keeping(tmp_path) as (runner, _):
        values = [(await runner.run(persistent(script))).values_patch for _ in range(3)]
    found = [json.loads(json.dumps(patch))[0]["value"] for patch in values]
    assert [each[0] for each in found] == [1, 2, 3]
    assert len({each[1] for each in found}) == 1
    assert all(each[2] for each in found)
    assert len({each[3] for each in found}) == 3
    assert not is_alive(found[0][1])
    assert not [path for path in (tmp_path / "scratch").iterdir() if any(path.iterdir())]


async def test_failed_run_reports_its_last_output_and_the_next_succeeds(tmp_path: Path) -> None:
    body = (
        "print('no such volume', file=sys.stderr, flush=True); status = 3 if runs == 1 else 0; runs == 2 and print('?')"
    )
    script = looping(tmp_path, body)
    async with keeping(tmp_path) as (runner, programs):
        failed = await runner.run(persistent(script))
        assert (failed.succeeded, failed.exit_description) == (False, "exit status 3: no such volume")
        broken = await runner.run(persistent(script))
        assert not broken.succeeded
        assert "print everything else to stderr" in broken.exit_description
        assert programs.counters.broken == 1


async def test_packages_do_not_share_a_process(tmp_path: Path) -> None:
    script = looping(tmp_path, "patch('/a', os.getpid())")
    async with keeping(tmp_path) as (runner, programs):
        one = await runner.run(persistent(script))
        other = await runner.run(replace(persistent(script), owner="prod.other"))
        assert one.values_patch != other.values_patch
        assert len(programs) == 2


async def test_given_home_is_not_replaced(tmp_path: Path) -> None:
    script = looping(tmp_path, "patch('/a', os.environ['HOME'])")
    async with keeping(tmp_path) as (runner, _):
        outcome = await runner.run(replace(persistent(script), environment={"HOME": "/named"}))
    assert json.loads(json.dumps(outcome.values_patch))[0]["value"] == "/named"


@pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")
async def test_hook_users_require_a_new_process_for_each_run() -> None:
    text = "import os, sys\nprint(os.getuid(), os.environ.get('WHARFINGER_POOL'))"
    with state_folder() as state:
        script = write_hook(package_in(state), f"#!/usr/bin/env python3\n{text}\n", name="10-hook.py")
        held = users(2)
        async with keeping(state, Containment(users=held, state_dir=state)) as (runner, programs):
            outcome = await runner.run(persistent(script))
            assert programs.counters.started == 0
        (line,) = outcome.log_lines
        assert held.first <= int(line.split()[0]) <= held.last
        assert line.split()[1] == "None"
    assert os.getuid() == 0
