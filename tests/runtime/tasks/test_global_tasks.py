"""Global hooks that fail: which packages they block, and for how long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.core.test_global_rounds import a_module, begin, global_hooks, hook, noted
from tests.runtime.support.world import World, one_error, open_ground
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import find_str
from wharfinger.queue.backoff import BackoffPolicy


@asynccontextmanager
async def impatient(folder: Path) -> AsyncIterator[World]:
    """Open a world (`tests/runtime/support/world.py`) in which failed tasks are retried soon."""
    soon = BackoffPolicy(initial_s=0.05, max_s=0.1)
    with one_error():
        async with open_ground(folder) as ground, replace(ground, backoff=soon).open_world() as world:
            yield world


@pytest.mark.slow
async def test_a_broken_beforeall_hook_blocks_packages_for_some_attempts(tmp_path: Path) -> None:
    """After some failed attempts of the hook, packages run without its values. The hook is still retried."""
    notes = tmp_path / "notes"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"beforeAll": 1') + f"[ -e {tmp_path}/mended ]\n"})
    a_module(tmp_path, "alpha", {"own.sh": hook(notes, '"afterHelm": 1')})
    async with impatient(tmp_path) as world:
        await begin(world, "alpha")
        await world.until_state("", "alpha", "Ready")
        assert noted(notes)[:2] == ["all.sh:beforeAll", "all.sh:beforeAll"]
        (tmp_path / "mended").touch()
        await world.until_state("", "global", "Ready")


async def test_invalid_global_hooks_block_new_packages(tmp_path: Path) -> None:
    global_hooks(tmp_path, {"all.sh": "#!/bin/sh\necho 'configVersion: v1'\n"})
    a_module(tmp_path, "alpha", {})
    async with impatient(tmp_path) as world:
        await begin(world, "alpha")
        await world.until("", "global", has_reason("HookInvalid"))
        await world.until("", "alpha", lambda obj: find_str(obj, "status", "summary", "state") != "")
        node = world.runtime.scheduler.snapshot("alpha")
        assert node is None or [each.name for each in node.lacks] == ["-1"]


async def test_a_failed_afterall_hook_is_retried(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"afterAll": 1') + f"[ -e {tmp_path}/mended ]\n"})
    async with impatient(tmp_path) as world:
        await begin(world)
        degraded = await world.until("", "global", has_reason("EventHookFailed"))
        assert "all.sh" in find_str(degraded, "status", "summary", "message")
        (tmp_path / "mended").touch()
        await world.until_state("", "global", "Ready")
        assert set(noted(notes)) == {"all.sh:afterAll"}
