"""Synchronizations after a restart: a hook gets all objects again only if they differ from its last snapshot."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.packages.support.charts import write
from tests.runtime.support.world import Ground, World, one_error, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import PACKAGE, bash, config_map, hooked
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Layout
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.lifecycle.restart_policy import Repeat
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.resources import CONFIG_MAP
from wharfinger.runtime.tasks.synchronizations import remember

CONFIG = """\
configVersion: v1
kubernetes: [{name: maps, kind: ConfigMap, labelSelector: {matchLabels: {watch: me}}, jqFilter: .data}]
"""
NOTE = """jq -r '.[] | "\\(.type) \\([.objects[]?, .] | map(.filterResult.a // empty) | join("+"))"' "$BINDING_CONTEXT_PATH" """


class Always(Ground):
    """The parts of a daemon that runs all Synchronizations at every start."""

    def make_tools(self, services: HookServices, releases: ReleaseEngine, limits: SlotLimits | None = None) -> Tools:
        return replace(Ground.make_tools(self, services, releases, limits), synchronization=Repeat.ALWAYS)


def told(folder: Path) -> list[str]:
    path = folder / "notes"
    return path.read_text().splitlines() if path.exists() else []


@asynccontextmanager
async def watching(tmp_path: Path) -> AsyncIterator[Ground]:
    """Install a package whose hook notes the events of one ConfigMap, and stop the daemon. Yield the parts of later daemons."""
    with one_error():
        async with open_ground(tmp_path) as ground:
            async with ground.open_world() as world:
                await world.repository()
                folder = hooked(tmp_path / "hooked", {"watch.sh": bash(CONFIG, f"{NOTE} >>{tmp_path}/notes")})
                await world.push_folder(folder, "hooked", "1.0.0")
                await world.client.create(config_map("one", {"watch": "me"}))
                await world.create("prod", "app", package="hooked")
                await world.until_state("prod", "app", "Ready")
            assert told(tmp_path) == ["Synchronization 1"]
            yield ground


async def ready(world: World) -> None:
    await world.request("prod", "app")
    await world.until_state("prod", "app", "Ready")


async def set_to(ground: Ground, value: str) -> None:
    await ground.client.merge_patch(ObjectKey(CONFIG_MAP, "prod", "one"), {"data": {"a": value}})


@pytest.mark.slow
async def test_an_up_to_date_hook_is_not_synchronized_again(tmp_path: Path) -> None:
    async with watching(tmp_path) as ground:
        async with ground.open_world() as world:
            await ready(world)
        assert told(tmp_path) == ["Synchronization 1"]


@pytest.mark.slow
async def test_changes_during_a_restart_cause_a_synchronization(tmp_path: Path) -> None:
    async with watching(tmp_path) as ground:
        await set_to(ground, "2")
        async with ground.open_world() as world:
            await ready(world)
        assert told(tmp_path) == ["Synchronization 1", "Synchronization 2"]


@pytest.mark.slow
async def test_handled_events_are_recorded_only_once_hooks_are_idle(tmp_path: Path) -> None:
    """While the hook handles events, the record does not say that the hook is up to date, because the process may be killed
    before the hook has ended.
    """
    async with watching(tmp_path) as ground:
        async with ground.open_world() as world:
            await ready(world)
            record = world.runtime.instances["prod.app"].record
            assert record is not None
            assert [key for key, _ in record.state.synchronized] == ["hooks/watch.sh#0"]
            await set_to(ground, "3")
            await world.until_notes(tmp_path / "notes", {"Event"})
            assert record.state.synchronized == ()
            await set_to(ground, "4")
            await world.until_notes(tmp_path / "notes", {"4"})
            await world.runtime.queues.wait_idle("prod.app")
        known = told(tmp_path)
        async with ground.open_world() as world:
            await ready(world)
        assert told(tmp_path) == known


@pytest.mark.slow
async def test_hooks_are_synchronized_at_every_start_on_request(tmp_path: Path) -> None:
    async with watching(tmp_path) as ground:
        again = Always(*(getattr(ground, name) for name in Ground.__slots__))
        async with again.open_world() as world:
            await ready(world)
        assert told(tmp_path) == ["Synchronization 1", "Synchronization 1"]


TWO = """\
configVersion: v1
kubernetes:
- {name: first, kind: ConfigMap, labelSelector: {matchLabels: {watch: first}}, jqFilter: .data}
- {name: second, kind: ConfigMap, labelSelector: {matchLabels: {watch: second}}, jqFilter: .data}
"""


@pytest.mark.slow
async def test_only_the_binding_with_changes_is_synchronized(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            hook = bash(TWO, f"jq -r '.[].binding' \"$BINDING_CONTEXT_PATH\" >>{tmp_path}/notes")
            await world.push_folder(hooked(tmp_path / "hooked", {"watch.sh": hook}), "hooked", "1.0.0")
            for name in ("first", "second"):
                await world.client.create(config_map(name, {"watch": name}))
            await world.create("prod", "app", package="hooked")
            await world.until_state("prod", "app", "Ready")
        assert told(tmp_path) == ["first", "second"]
        await ground.client.merge_patch(ObjectKey(CONFIG_MAP, "prod", "first"), {"data": {"a": "2"}})
        for _ in range(2):
            async with ground.open_world() as world:
                await ready(world)
            assert told(tmp_path) == ["first", "second", "first"]


@pytest.mark.slow
async def test_a_module_enabled_again_is_synchronized(tmp_path: Path) -> None:
    """The disable deleted everything that the hooks had created, so they have to get all objects again."""
    watching = CONFIG.replace("kind: ConfigMap", "kind: ConfigMap, namespace: {nameSelector: {matchNames: [prod]}}")
    hooks = {
        "watch.sh": bash(watching, f"{NOTE} >>{tmp_path}/notes"),
        "undo.sh": bash("{configVersion: v1, afterDeleteHelm: 1}", f"echo undone >>{tmp_path}/notes"),
    }
    folder = hooked(tmp_path / "hooked", hooks)
    write(folder, {"package.yaml": PACKAGE.format(name="hooked").replace("Application", "Module")})
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.client.create(config_map("one", {"watch": "me"}))
        await world.create_module("hooked")
        await world.until_state("", "hooked", "Ready")
        await world.change("", "hooked", {"enabled": False})
        await world.until_state("", "hooked", "Disabled")
        await world.change("", "hooked", {"enabled": True})
        await world.until_state("", "hooked", "Ready")
    assert told(tmp_path) == ["Synchronization 1", "undone", "Synchronization 1"]


def test_only_module_folders_are_synchronized_at_every_start() -> None:
    assert [Repeat.LAYOUT.always(layout) for layout in (Layout.PACKAGE, Layout.MODULE_FOLDER)] == [False, True]


class HeldClient(LimitedClient):
    """A client whose PUT requests wait for the event ``go_on``."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self.reached, self.go_on = trio.Event(), trio.Event()

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        self.reached.set()
        await self.go_on.wait()
        return await super().replace(obj, subresource=subresource)


@pytest.mark.slow
async def test_an_event_during_the_write_of_the_record_removes_its_entry(tmp_path: Path) -> None:
    async with watching(tmp_path) as ground, ground.open_world() as world:
        await ready(world)
        instance = world.runtime.instances["prod.app"]
        await set_to(ground, "3")
        await world.until_notes(tmp_path / "notes", {"3"})
        await world.runtime.queues.wait_idle("prod.app")
        record, hooks = instance.record, instance.hooks.started
        assert record is not None
        assert hooks is not None
        assert record.state.synchronized == ()
        record.client = held = HeldClient(ground.client)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(remember, instance, world.runtime.tools)
            await held.reached.wait()
            await set_to(ground, "4")
            while not any(box.waiting for box in hooks.inboxes.values()):
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            held.go_on.set()
        await world.until_notes(tmp_path / "notes", {"4"})
        await world.runtime.queues.wait_idle("prod.app")
        assert record.state.synchronized == ()
