"""Snapshots of pools of warm hooks: real pools are shown with their workers, processes and memory."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.pools.interpreters.warm import GIB, LIMITS, command_of, package, ready, until
from tests.pools.persistent.programs import opened, run_of, serving
from tests.runtime.support.world import open_world
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.inspection.warm_pools import persistent_pools, warm_pools


async def test_pools_are_shown_with_their_workers_and_claims(tmp_path: Path) -> None:
    script = package(tmp_path / "package", "pass")
    first = command_of(script, tmp_path / "a")
    other = replace(command_of(script, tmp_path / "b"), env={**first.env, "PYTHONUTF8": "1"})
    async with ready(first, 2) as starts:
        assert (await starts.run(first, LIMITS)).ok
        assert (await starts.run(other, LIMITS)).ok
        await until(lambda: len(starts.pools()) == 2 and all(pool.snapshot().ready == 2 for pool in starts.pools()))
        one, two = warm_pools(starts)
        assert (one.name, two.name) == (sys.executable, f"{sys.executable} #2")
        assert {pool.state for pool in (one, two)} == {"serving"}
        assert [(pool.size, pool.ready, pool.reserved, pool.waiting) for pool in (one, two)] == [(2, 2, 0, 0)] * 2
        assert (one.started, two.started) == (1, 0)
        assert (one.kind, one.memory_limit_bytes) == ("interpreter", GIB)
        assert one.memory_bytes > 1024 * 1024
        starts.pools()[0].unfit = "it has no os.fork"
        assert (warm_pools(starts)[0].state, warm_pools(starts)[0].problem) == ("unfit", "it has no os.fork")


async def test_persistent_hooks_are_shown_with_their_processes_and_memory(tmp_path: Path) -> None:
    async with opened() as programs:
        assert persistent_pools(programs) == ()
        command = serving(tmp_path)
        for _ in range(2):
            assert (await programs.run(run_of(command, owner="shop hooks/serve"), LIMITS)).ok
        assert (await programs.run(run_of(serving(tmp_path, name="other"), owner="app hooks/a"), LIMITS)).ok
        await programs.budget.measure()
        first, second = persistent_pools(programs)
        assert (first.name, second.name) == ("app hooks/a", "shop hooks/serve")
        assert (second.kind, second.state, second.size, second.ready, second.reserved) == (
            "persistent",
            "serving",
            1,
            1,
            0,
        )
        assert (first.started, second.started) == (1, 2)
        assert second.memory_limit_bytes == GIB
        assert first.memory_bytes + second.memory_bytes == programs.budget.used
        assert second.memory_bytes > 1024 * 1024


async def test_the_inspector_answers_with_the_daemons_pools(tmp_path: Path) -> None:
    command = command_of(package(tmp_path / "package", "pass"), tmp_path / "run")
    async with open_world(tmp_path) as world, ready(command, 2) as starts:
        inspector = RuntimeInspector(cluster="here", started=world.runtime.now())
        assert await inspector.pools() == ()
        inspector.runtime = world.runtime
        assert await inspector.pools() == ()
        world.runtime.packages.tools = replace(world.runtime.tools, warm=starts)
        (pool,) = await inspector.pools()
        assert pool.name == sys.executable
        async with opened() as programs:
            assert (await programs.run(run_of(serving(tmp_path)), LIMITS)).ok
            world.runtime.packages.tools = replace(world.runtime.tools, persistent=programs)
            assert [each.kind for each in await inspector.pools()] == ["interpreter", "persistent"]
