"""The start and the end of the runtime."""

import dataclasses
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.core.test_runtime import SLOW_CONFIG
from tests.runtime.support.world import Ground, open_ground
from tests.runtime.tasks.test_hook_runs import COUNTING, config_map, hooked, until_data
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.core.service import Facts
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.resources.resources import CONFIG_MAP, SECRET
from wharfinger.runtime.scheduler.rules import Facts as GateFacts

pytestmark = pytest.mark.unmeasured

DONE = ObjectKey(CONFIG_MAP, "prod", "done")


async def installed(ground: Ground) -> None:
    """Install a package that waits for an object that never becomes ready, and a package whose hook watches objects."""
    async with ground.open_world() as world:
        await world.push("slow", "1.0.0", {"templates/slow.yaml": SLOW_CONFIG})
        await world.push_folder(hooked(ground.folder / "hooked", {"count.sh": COUNTING}), "hooked", "1.0.0")
        await world.repository()
        await world.create("prod", "stuck", package="slow")
        await world.create("prod", "app", package="hooked")
        await world.until("prod", "stuck", lambda obj: find_str(world.condition(obj, "Ready"), "reason") == "NotReady")
        await world.until_state("prod", "app", "Ready")
        assert (await RuntimeInspector("x", datetime.now(UTC), world.runtime).daemon()).packages == 2


@pytest.mark.slow
async def test_a_stop_does_not_wait_for_waiting_packages_and_the_next_start_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="wharfinger")
    async with open_ground(tmp_path) as ground:
        with trio.fail_after(60):
            await installed(ground)
        # No events are delivered while no daemon runs, so the next daemon runs the hooks with all objects at its start.
        await ground.client.create(config_map("between", {"watch": "me"}))
        async with ground.open_world() as world:
            await until_data(world, "out", "seen", "1")
            await world.until_state("prod", "app", "Ready")
            assert len(world.downloads) == 2
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.slow
async def test_events_and_ticks_reach_the_runtime(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        async with ground.open_world() as world:
            await world.until_runtime(lambda: world.runtime.status("prod.app") is not None)
            await world.until_state("prod", "app", "Ready")
            await world.client.create(config_map("new", {"watch": "me"}))
            await until_data(world, "out", "seen", "1")
            assert world.runtime.build_schedule_tasks("0 0 * * *") == ()  # no hook has this schedule
            await world.until_state("prod", "app", "Ready")
            world.runtime.stop("over")
            await world.client.create(config_map("late", {"watch": "me"}))
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert find_str(await world.config_map("prod", "out"), "data", "seen") == "1"


def test_gate_facts_contain_versions_bundle_and_bootstrap() -> None:
    facts = Facts("v1.34.0", "1.60", UTC, edition="ee", bundle="Default", bootstrapped_by=DONE)
    assert facts.gate_facts(bootstrapped=False) == GateFacts("v1.34.0", "1.60", False, "ee", "Default")
    assert Facts("v1.34.0", "", UTC).gate_facts(bootstrapped=True) == GateFacts("v1.34.0")


async def test_packages_wait_for_the_bootstrap_once(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground, dataclasses.replace(ground, bootstrapped_by=DONE).open_world() as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        waiting = await world.until(
            "prod", "shop", lambda obj: "bootstrap" in find_str(obj, "status", "summary", "message")
        )
        assert find_str(waiting, "status", "summary", "state") == "Pending"
        await world.client.create(config_map("done"))
        await world.until_state("prod", "shop", "Ready")
        await world.client.delete(DONE)
        await world.create("prod", "second")
        await world.until_state("prod", "second", "Ready")
        await world.until_state("prod", "shop", "Ready")


async def test_a_restarted_daemon_waits_for_the_bootstrap_state_before_it_decides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If the daemon decided before it knows that the cluster is bootstrapped, it would pause running packages, and let them run
    again a moment later.
    """
    async with open_ground(tmp_path) as ground:
        await ground.client.create(config_map("done"))
        bootstrapped = dataclasses.replace(ground, bootstrapped_by=DONE)
        async with bootstrapped.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
        caplog.clear()
        caplog.set_level(logging.INFO, logger="wharfinger")
        async with bootstrapped.open_world() as world:
            await world.until_runtime(lambda: world.runtime.scheduler.enabled("prod.shop"))
            await world.until_state("prod", "shop", "Ready")
        assert not [record.message for record in caplog.records if "bootstrap" in record.message]


class HeldClient(LimitedClient):
    """A client that delays applies until they are released."""

    def __init__(self, client: ClusterClient, held: trio.Event, go: trio.Event) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self._held, self._go = held, go

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        self._held.set()
        await self._go.wait()
        return await super().apply(obj, field_manager=field_manager, force=force, dry_run=dry_run)


async def test_a_running_apply_is_completed_at_the_end_of_the_runtime(tmp_path: Path) -> None:
    """The release engine keeps running until the queues have ended, because their tasks use it. So an apply that is running is
    completed.
    """
    held, go = trio.Event(), trio.Event()
    record = ObjectKey(SECRET, "prod", "sh.helm.release.v1.shop.v1")
    async with open_ground(tmp_path) as ground, trio.open_nursery() as nursery:

        async def release_it() -> None:
            await trio.testing.wait_all_tasks_blocked(0.1)
            go.set()

        slow = dataclasses.replace(ground, engine_client=HeldClient(ground.client, held, go))
        with trio.fail_after(300):
            async with slow.open_world() as world:
                await world.push("web", "1.0.0")
                await world.repository()
                await world.create("prod", "shop")
                await held.wait()
                nursery.start_soon(release_it)
        assert find_str(await ground.client.get(record), "metadata", "labels", "status") == "deployed"
