"""The runtime put up and taken down."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.test_hook_runs import COUNTING, config_map, hooked, until_data
from tests.runtime.test_runtime import SLOW_CONFIG
from tests.runtime.world import Ground, open_ground
from wharfinger.formats.json_value import find_str
from wharfinger.runtime.snapshots import RuntimeInspector


async def installed(ground: Ground) -> None:
    """A package that waits for what never gets ready, and one whose hook watches."""
    async with ground.open_world() as world:
        await world.push("slow", "1.0.0", {"templates/slow.yaml": SLOW_CONFIG})
        await world.push_folder(hooked(ground.folder / "hooked", {"count.sh": COUNTING}), "hooked", "1.0.0")
        await world.repository()
        await world.create("prod", "stuck", package="slow")
        await world.create("prod", "app", package="hooked")
        await world.until("prod", "stuck", lambda obj: find_str(world.condition(obj, "Ready"), "reason") == "NotReady")
        await world.until_state("prod", "app", "Ready")
        assert (await RuntimeInspector("x", datetime.now(UTC), world.runtime).daemon()).packages == 2


async def test_leaving_does_not_wait_for_what_only_waits_and_the_next_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="wharfinger")
    async with open_ground(tmp_path) as ground:
        with trio.fail_after(60):
            await installed(ground)
        # Between two daemons nobody is told of anything, and the next one shows its hooks all there is.
        await ground.client.create(config_map("between", {"watch": "me"}))
        async with ground.open_world() as world:
            await until_data(world, "out", "seen", "1")
            await world.until_state("prod", "app", "Ready")
            assert len(world.downloads) == 2
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_events_and_ticks_reach_the_runtime(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        async with ground.open_world() as world:
            await world.until("prod", "app", lambda _obj: world.runtime.status("prod.app") is not None)
            await world.until_state("prod", "app", "Ready")
            await world.client.create(config_map("new", {"watch": "me"}))
            await until_data(world, "out", "seen", "1")
            world.runtime.build_schedule_tasks("0 0 * * *")  # nobody is bound to it
            await world.until_state("prod", "app", "Ready")
            world.runtime.stop("over")
            await world.client.create(config_map("late", {"watch": "me"}))
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert find_str(await world.config_map("prod", "out"), "data", "seen") == "1"
