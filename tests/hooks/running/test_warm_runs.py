"""Hooks that the process runner runs in warm interpreters (processes that have already started Python and imported common
modules): the files and the user of a run, hooks that cannot be run warm, failures, and the isolation of runs.
"""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hooks.support.contained import IS_ROOT, LIMITS, package_in, state_folder, users
from tests.hooks.support.scripts import run_of
from tests.pools.interpreters.warm import GIB, until, until_ready
from tests.process.children import PATH
from wharfinger.hooks.config.bindings import HookPool
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.pools.interpreters.warm_start import WarmStarts, open_warm_starts
from wharfinger.pools.memory.budget import MemoryBudget

PATCH = "json.dump([{'op': 'add', 'path': '/a', 'value': %s}], open(os.environ['VALUES_JSON_PATCH_PATH'], 'w'))"


def hook(folder: Path, body: str, python: str = sys.executable) -> Path:
    script = folder / "10-hook.py"
    script.write_text(f"#!{python}\nimport json, os, sys\n{body}\n")
    script.chmod(0o755)
    return script


@asynccontextmanager
async def warmed(
    state: Path, script: Path, containment: Containment = NO_CONTAINMENT
) -> AsyncGenerator[tuple[ProcessHookRunner, WarmStarts]]:
    """Run the hook once without a warm interpreter, and yield the runner once its warm workers are ready."""
    async with open_warm_starts(2, None, MemoryBudget(GIB)) as starts:
        environment = {"PATH": PATH}
        runner = ProcessHookRunner(
            state / "scratch", LIMITS, environment=environment, containment=containment, warm=starts
        )
        await runner.run(run_of(script))
        await until(starts.pools)
        await until_ready(starts.pools()[0], 2)
        yield runner, starts


async def test_warm_run_has_its_own_run_files(tmp_path: Path) -> None:
    body = (
        "context = json.load(open(os.environ['BINDING_CONTEXT_PATH']))\nhome = os.environ['HOME']\n"
        "own = os.path.dirname(os.environ['METRICS_PATH'])\n"
        "print(home == own, os.path.isdir(home), os.getcwd() == os.path.dirname(__file__))\n"
        f"{PATCH % 'len(context)'}\n"
    )
    script = hook(tmp_path, body)
    async with warmed(tmp_path, script) as (runner, starts):
        cold = await runner.run(replace(run_of(script), pool=HookPool.NONE))
        warm = await runner.run(run_of(script))
        assert (starts.warm, starts.cold) == (1, 1)
    assert warm.succeeded
    assert warm.log_lines == cold.log_lines == ("True True True",)
    assert warm.values_patch == cold.values_patch
    assert warm.exit_description == cold.exit_description
    assert 0 < warm.wall_s < 60
    assert not [path for path in (tmp_path / "scratch").iterdir() if any(path.iterdir())]


async def test_hook_with_pool_none_gets_a_new_process(tmp_path: Path) -> None:
    script = hook(tmp_path, "print(len(sys.modules))")
    async with warmed(tmp_path, script) as (runner, starts):
        assert (await runner.run(replace(run_of(script), pool=HookPool.NONE))).succeeded
        assert starts.warm == 0


async def test_failed_warm_run_is_described_like_a_cold_one(tmp_path: Path) -> None:
    script = hook(tmp_path, "raise ValueError('no such thing')")
    async with warmed(tmp_path, script) as (runner, starts):
        cold = await runner.run(replace(run_of(script), pool=HookPool.NONE))
        warm = await runner.run(run_of(script))
        assert starts.warm == 1
    assert (warm.succeeded, warm.exit_description) == (False, cold.exit_description)
    assert warm.exit_description.endswith("ValueError: no such thing")


@pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="others may not enter the folder of this interpreter")
async def test_each_warm_run_has_its_own_user_and_home() -> None:
    body = (
        "home = os.environ['HOME']\nopen(os.path.join(home, 'left'), 'w').write('x')\n"
        "print(os.getuid(), os.stat(home).st_uid, os.environ['TMPDIR'] == home, os.access('/etc/shadow', os.R_OK))\n"
        f"{PATCH % 'os.getuid()'}"
    )
    with state_folder() as state:
        script = hook(package_in(state), body, "/usr/bin/python3")
        held = users(2)
        async with warmed(state, script, Containment(users=held, state_dir=state)) as (runner, starts):
            outcome = await runner.run(run_of(script))
            assert starts.warm == 1, starts.pools()[0].metrics
        assert outcome.succeeded, outcome
        (line,) = outcome.log_lines
        uid, owner, temporary, shadow = line.split()
        assert held.first <= int(uid) == int(owner) <= held.last
        assert (temporary, shadow) == ("True", "False")
        assert json.dumps(outcome.values_patch) == json.dumps([{"op": "add", "path": "/a", "value": int(uid)}])


async def test_changes_of_one_warm_run_are_invisible_to_the_next(tmp_path: Path) -> None:
    body = (
        "print(hasattr(os, 'changed'), os.environ.get('CHANGED'))\nos.changed = True\nos.environ['CHANGED'] = 'yes'\n"
        "sys.path.append('/changed')\njson.dumps = None"
    )
    script = hook(tmp_path, body)
    async with warmed(tmp_path, script) as (runner, starts):
        lines = {(await runner.run(run_of(script))).log_lines for _ in range(4)}
        assert starts.warm == 4
    assert lines == {("False None",)}
    assert "CHANGED" not in os.environ
