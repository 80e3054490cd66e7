"""Modules of one exclusive group, end to end. At most one is installed. If it is disabled, the next Module of the group is
installed.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.cluster.watch.object_cache import ObjectChange
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.sources.source import Source
from wharfinger.packages.store.disk_store import open_store
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

pytestmark = pytest.mark.unmeasured

EXCLUDED = has_reason("ExclusiveGroupTaken")


async def publish(world: World, name: str, *, more: str = "") -> None:
    """Push the package of a Module in the group ``cni``. Its chart has one ConfigMap."""
    said = f"apiVersion: v1\ntype: Module\nname: {name}\nversion: 1.0.0\nexclusiveGroup: cni\n{more}"
    template = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{name}}}\n"
    folder = write(world.folder / "made" / name, {"package.yaml": said, "templates/out.yaml": template})
    await world.push_folder(folder, name, "1.0.0")


async def applied(world: World) -> list[str]:
    """Return the Modules whose objects are in the cluster."""
    names = "calico", "cilium", "flannel"
    return [each for each in names if await world.config_map(SYSTEM_NAMESPACE, f"of-{each}") is not None]


async def until_gone(world: World, name: str) -> None:
    """Wait until the objects of a Module are no longer in the cluster."""
    resource = await world.client.resource_type("v1", "ConfigMap")
    await world.until_no_object(ObjectKey(resource, SYSTEM_NAMESPACE, f"of-{name}"))


@pytest.mark.slow
async def test_only_one_module_of_a_group_is_on_and_the_next_replaces_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        for name in ("calico", "cilium", "flannel"):
            await publish(world, name)
        await world.create_module("cilium")
        await world.until_state("", "cilium", "Ready")
        await world.create_module("flannel")
        flannel = await world.until("", "flannel", EXCLUDED)
        assert find_str(flannel, "status", "summary", "message") == (
            "only one Module of the exclusive group 'cni' may be on, and cilium takes precedence"
        )
        assert await applied(world) == ["cilium"]
        # A Module of higher precedence replaces the installed one, even if it is created later.
        await world.create_module("calico")
        await world.until_state("", "calico", "Ready")
        await world.until("", "cilium", EXCLUDED)
        await until_gone(world, "cilium")
        await world.until_state("", "cilium", "Pending")
        assert await applied(world) == ["calico"]
        # If Modules are disabled, the next Module of the group is installed.
        off: JsonObject = {"enabled": False}
        await world.change("", "cilium", off)
        await world.change("", "calico", off)
        await world.until_state("", "flannel", "Ready")
        await until_gone(world, "calico")
        assert await applied(world) == ["flannel"]


@pytest.mark.slow
async def test_a_restart_installs_no_other_module_of_the_group(tmp_path: Path) -> None:
    """The installed Module is the last of its group by name. After the restart, it stays installed, whichever Module of the
    group is loaded first.
    """
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await publish(world, "flannel", more="weight: 10\ncritical: true\n")
            await world.create_module("flannel")
            await world.until_state("", "flannel", "Ready")
            for name in ("calico", "cilium"):
                await publish(world, name)
                await world.create_module(name)
                await world.until("", name, EXCLUDED)
        made: set[str] = set()

        def note(change: ObjectChange) -> None:
            made.add(change.key.name)

        resource = await ground.client.resource_type("v1", "ConfigMap")
        async with (
            open_informer(ground.client, resource, SYSTEM_NAMESPACE, on_change=note),
            ground.open_world() as world,
        ):
            await world.until_runtime(lambda: len(world.runtime.scheduler.enabled_names()) == 1)
            await world.until_runtime(lambda: len(world.runtime.scheduler.graph.entries) == 3)
            for name in ("flannel", "cilium", "calico"):
                await world.runtime.queues.wait_idle(name)
            assert await applied(world) == ["flannel"]
        assert [name for name in made if name.startswith("of-")] == ["of-flannel"]


@pytest.mark.slow
async def test_a_restart_without_a_state_folder_installs_no_other_module_of_the_group(tmp_path: Path) -> None:
    """The second daemon has no state folder, as after the daemon has lost it together with its pod. It downloads the package of
    the installed Module last.
    """
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            for name in ("calico", "cilium"):
                await publish(world, name)
            await world.create_module("calico")
            await world.until_state("", "calico", "Ready")
            await world.create_module("cilium")
            await world.until("", "cilium", EXCLUDED)
        may_load = trio.Event()

        @asynccontextmanager
        async def opened(source: Source, package: str) -> AsyncIterator[tuple[Registry, str]]:
            if package == "calico":
                await may_load.wait()
            async with ground.open_source(source, package) as found:
                yield found

        async with (
            open_store(tmp_path / "other") as store,
            replace(ground, store=store, open_source=opened).open_world() as world,
        ):
            instances = world.runtime.instances
            await world.until_runtime(
                lambda: "cilium" in instances and instances["cilium"].files.definition is not None
            )
            await world.runtime.queues.wait_idle("cilium")
            assert world.runtime.scheduler.node("cilium") is None
            assert await applied(world) == ["calico"]
            may_load.set()
            await world.until_runtime(lambda: world.runtime.scheduler.decision("cilium") is not None)
            decision = world.runtime.scheduler.decision("cilium")
            assert decision is not None
            assert decision.reason == "ExclusiveGroupTaken"
            assert await applied(world) == ["calico"]
