"""Modules without ``spec.enabled``, end to end. If the daemon has the option ``--bundle``, only Modules of this bundle are on.
Otherwise, all are on.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.support.world import Ground, World, one_error, open_ground
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.runtime.controllers.service import open_controller
from wharfinger.runtime.core.service import Facts, open_runtime
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION, MODULE
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.writer import StatusWriter

pytestmark = pytest.mark.unmeasured

EDITION = "ee"
BUNDLE = "Default"
PART_OF_IT = f"{{{EDITION}: {{available: true, enabledInBundles: [Minimal, {BUNDLE}]}}}}"
NOT_PART_OF_IT = {
    "elsewhere": f"{{{EDITION}: {{available: true, enabledInBundles: [Minimal]}}}}",
    "unavailable": f"{{{EDITION}: {{available: false, enabledInBundles: [{BUNDLE}]}}}}",
    "foreign": f"{{ce: {{available: true, enabledInBundles: [{BUNDLE}]}}}}",
    "unlicensed": "",
}
OFF_BY_DEFAULT = has_reason("DisabledByDefault")
OFF_BY_WORD = has_reason("DynamicallyDisabled")


@asynccontextmanager
async def open_bundled(ground: Ground, edition: str, bundle: str) -> AsyncIterator[World]:
    """Run the runtime and the controllers of a daemon with the options ``--edition`` and ``--bundle``. An empty text means that
    the option is not given.
    """
    keys = WorkKeys()
    writer = StatusWriter(keys.add, keys.add_later, least_pause_s=0.1)

    def changed(name: str, before: PackageStatus, after: PackageStatus) -> None:
        writer.changed(name, before, after, trio.current_time())

    facts = Facts(await ground.client.server_version(), "", UTC, edition=edition, bundle=bundle)
    async with (
        open_runtime(
            ground.make_tools,
            ground.client,
            ground.filters,
            facts,
            now=lambda: datetime.now(UTC),
            on_change=keys.add,
            on_status=changed,
        ) as runtime,
        open_controller(ground.through, runtime, keys, writer, enabled_by_default=None if bundle else True),
        open_informer(ground.client, APPLICATION) as applications,
        open_informer(ground.client, MODULE) as modules,
    ):
        await applications.wait_synced()
        await modules.wait_synced()
        yield World(
            ground.folder, ground.address, ground.client, applications, modules, runtime, ground.downloads, ground.login
        )


@asynccontextmanager
async def open_world(folder: Path, edition: str = EDITION, bundle: str = BUNDLE) -> AsyncIterator[World]:
    """Open a world (`tests/runtime/support/world.py`) with an edition and a bundle, and create a PackageRepository."""
    with one_error():
        async with open_ground(folder) as ground, open_bundled(ground, edition, bundle) as world:
            await world.repository()
            yield world


async def publish(world: World, name: str, editions: str = "", needs: str = "", *, version: str = "1.0.0") -> None:
    """Push a Module's package with one ConfigMap. ``editions`` and ``needs`` are its editions and its requirements, as YAML."""
    said = f"apiVersion: v1\ntype: Module\nname: {name}\nversion: {version}\n"
    said += f"licensing: {{editions: {editions}}}\n" if editions else ""
    said += f"requirements: {needs}\n" if needs else ""
    template = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{name}}}\ndata: {{version: '{version}'}}\n"
    place = write(world.folder / "made" / f"{name}-{version}", {"package.yaml": said, "templates/out.yaml": template})
    await world.push_folder(place, name, version)


async def is_applied(world: World, name: str) -> bool:
    """Return whether the objects of a Module are in the cluster."""
    return await world.config_map(SYSTEM_NAMESPACE, f"of-{name}") is not None


async def all_off(world: World, packages: Mapping[str, str]) -> None:
    """Create Modules without ``spec.enabled``, and check that all of them are reported as disabled."""
    for name, editions in packages.items():
        await publish(world, name, editions)
        await world.create_module(name)
    for name in packages:
        off = await world.until("", name, OFF_BY_DEFAULT)
        assert find_str(off, "status", "currentVersion", "version") == ""
        assert not world.runtime.scheduler.enabled(name)
        assert not await is_applied(world, name)


async def said_enabled(world: World, name: str, *, enabled: bool | None) -> None:
    """Set ``spec.enabled``, or remove it."""
    spec: JsonObject = {"enabled": enabled}
    await world.change("", name, spec)


@pytest.mark.slow
async def test_modules_without_spec_enabled_follow_the_bundle(tmp_path: Path) -> None:
    """A Module without ``spec.enabled`` is on if it is available in the daemon's edition, and the daemon's bundle contains it
    in this edition.
    """
    async with open_world(tmp_path) as world:
        await publish(world, "inside", PART_OF_IT)
        await world.create_module("inside")
        await world.until_state("", "inside", "Ready")
        assert await is_applied(world, "inside")
        await all_off(world, NOT_PART_OF_IT)
        assert world.runtime.packages.global_values()["enabledModules"] == ["inside"]


@pytest.mark.slow
async def test_spec_enabled_takes_precedence_over_the_bundle(tmp_path: Path) -> None:
    """If ``spec.enabled`` is set, it alone decides whether a Module is on, whatever the bundle contains."""
    async with open_world(tmp_path) as world:
        await publish(world, "inside", PART_OF_IT)
        await publish(world, "outside")
        await world.create_module("inside", spec={"enabled": False})
        await world.create_module("outside", spec={"enabled": True})
        await world.until("", "inside", OFF_BY_WORD)
        await world.until_state("", "outside", "Ready")
        assert not await is_applied(world, "inside")
        assert await is_applied(world, "outside")
        await said_enabled(world, "inside", enabled=None)
        await world.until_state("", "inside", "Ready")
        assert await is_applied(world, "inside")
        await said_enabled(world, "inside", enabled=False)
        await world.until_state("", "inside", "Disabled")
        assert not await is_applied(world, "inside")


@pytest.mark.slow
async def test_a_bundle_enables_no_module_with_an_unmet_requirement(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await publish(world, "needy", PART_OF_IT, "{modules: {mandatory: [{name: base}]}}")
        await world.create_module("needy")
        await world.until("", "needy", has_reason("DependencyNotEnabled"))
        assert not await is_applied(world, "needy")
        # A Module that is off by default counts as missing. A Module that is part of the bundle does not.
        await publish(world, "base")
        await publish(world, "base", PART_OF_IT, version="1.1.0")
        await world.create_module("base")
        await world.until("", "base", OFF_BY_DEFAULT)
        assert not world.runtime.scheduler.enabled("needy")
        await world.change("", "base", {"packageVersion": "1.1.0"})
        await world.until_state("", "needy", "Ready")
        assert await is_applied(world, "base")


@pytest.mark.slow
async def test_modules_without_spec_enabled_are_on_if_there_is_no_bundle(tmp_path: Path) -> None:
    """The editions in the packages don't matter, and ``spec.enabled: false`` still disables a Module."""
    async with open_world(tmp_path, "", "") as world:
        for name, editions in NOT_PART_OF_IT.items():
            await publish(world, name, editions)
            await world.create_module(name)
        for name in NOT_PART_OF_IT:
            await world.until_state("", name, "Ready")
            assert await is_applied(world, name)
        await publish(world, "unwanted", PART_OF_IT)
        await world.create_module("unwanted", spec={"enabled": False})
        await world.until("", "unwanted", OFF_BY_WORD)
        assert not await is_applied(world, "unwanted")


def is_decided(world: World) -> bool:
    """Return whether the scheduler knows the Module ``outside``, and has enabled the Module ``inside``."""
    scheduler = world.runtime.scheduler
    return scheduler.enabled("inside") and scheduler.node("outside") is not None


@pytest.mark.slow
async def test_a_restart_with_the_same_bundle_switches_no_module(tmp_path: Path) -> None:
    with one_error():
        async with open_ground(tmp_path) as ground:
            async with open_bundled(ground, EDITION, BUNDLE) as world:
                await world.repository()
                await publish(world, "inside", PART_OF_IT)
                await world.create_module("inside")
                await world.until_state("", "inside", "Ready")
                await all_off(world, {"outside": ""})
            async with open_bundled(ground, EDITION, BUNDLE) as world:
                await world.until_runtime(partial(is_decided, world))
                assert not world.runtime.scheduler.enabled("outside")
                assert not await is_applied(world, "outside")
                ready = await world.until_state("", "inside", "Ready")
                assert find_str(ready, "status", "currentVersion", "version") == "1.0.0"
