"""The runtime's own methods (spec/runtime §1), and how one operation supersedes another."""

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.core.test_runtime import SLOW_CONFIG
from tests.runtime.support.killing import held, held_hook, watched
from tests.runtime.support.nodes import depends, group
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import VALUES, hooked
from tests.runtime.tasks.test_start_tasks import notes
from wharfinger.formats.json.value import find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.requirements import Requirements
from wharfinger.runtime.inspector import UnknownSettings
from wharfinger.runtime.lifecycle.desired_state import DecisionKind
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import CONFIG_MAP, read_module
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.scheduler import ConstraintsError

pytestmark = pytest.mark.unmeasured


@pytest.mark.slow
async def test_a_dump_has_every_package_by_name(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        assert world.runtime.dump() == ()
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        await world.create("prod", "shop")
        await world.create("prod", "absent", package="absent")
        await world.until_state("", "web", "Ready")
        await world.until_state("prod", "shop", "Ready")
        await world.until_state("prod", "absent", "Failed")
        dump = world.runtime.dump()
        assert [(one.name, one.kind, one.state) for one in dump] == [
            ("prod.absent", "Application", "Failed"),
            ("prod.shop", "Application", "Ready"),
            ("web", "Module", "Ready"),
        ]
        assert dump[2].namespace == SYSTEM_NAMESPACE
        assert world.runtime.dump_by_name("web") == dump[2]
        assert world.runtime.dump_by_name("nobody") is None
        assert world.runtime.status("nobody") is None
        assert isinstance(await world.runtime.validate_settings("prod.absent", {"any": "thing"}), UnknownSettings)
        assert await world.runtime.validate_settings("nobody", {}) is None


async def test_only_a_changed_desired_state_begins_an_operation(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        obj = await world.until_state("", "web", "Ready")
        source = world.runtime.instances["web"].desired.source
        assert source is not None
        spec = read_module(obj)
        assert world.runtime.update_module(spec, source, ResolvedSettings({})).kind is DecisionKind.NONE
        assert (
            world.runtime.update_module(spec, source, ResolvedSettings({"text": "a"})).kind is DecisionKind.RECONFIGURE
        )


@pytest.mark.slow
async def test_a_desired_state_set_during_a_removal_is_applied_afterwards(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        obj = await world.until_state("", "web", "Ready")
        source = world.runtime.instances["web"].desired.source
        assert source is not None
        hold = ObjectKey(CONFIG_MAP, SYSTEM_NAMESPACE, "web")
        await world.client.merge_patch(hold, {"metadata": {"finalizers": ["example.com/hold"]}})
        await world.delete("", "web")
        await world.until_state("", "web", "Removing")
        assert world.runtime.update_module(read_module(obj), source, ResolvedSettings({})).kind is DecisionKind.REMOVING
        await world.client.merge_patch(hold, {"metadata": {"finalizers": []}})
        await world.until_gone("", "web")


@pytest.mark.slow
async def test_a_superseded_hook_is_killed_before_its_successor_runs(tmp_path: Path) -> None:
    """Both hooks hang. A new version supersedes the first one, and a removal the second one. Each is killed with its
    descendants.
    """
    os.mkfifo(tmp_path / "held")
    startup = "{configVersion: v1, onStartup: 1}"
    folder = hooked(tmp_path / "hooked", {"a.sh": held_hook(tmp_path, startup, "first")})
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        (folder / "package.yaml").write_text((folder / "package.yaml").read_text().replace("1.0.0", "1.1.0"))
        (folder / "hooks" / "a.sh").write_text(held_hook(tmp_path, startup, "second"))
        await world.push_folder(folder, "hooked", "1.1.0")
        await world.create("prod", "app", package="hooked")
        first, below = await trio.to_thread.run_sync(held, tmp_path)
        with watched(first) as hook, watched(below) as child:
            await world.change("prod", "app", {"packageVersion": "1.1.0"})
            second, below_second = await trio.to_thread.run_sync(held, tmp_path)
            assert hook.ended()
            assert child.ended()
        with watched(second) as hook, watched(below_second) as child:
            await world.delete("prod", "app")
            await world.until_gone("prod", "app")
            assert hook.ended()
            assert child.ended()
        assert notes(tmp_path) == ["first", "second"]


@pytest.mark.slow
async def test_new_settings_interrupt_a_hook_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    hooks = {"a.sh": held_hook(tmp_path, "{configVersion: v1, beforeHelm: 1}", "before")}
    async with open_world(tmp_path) as world:
        await world.repository()
        files = {"openapi/values.yaml": f"{VALUES}  mode: {{type: string}}\n"}
        await world.push_folder(hooked(tmp_path / "hooked", hooks, files=files), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        first, _below = await trio.to_thread.run_sync(held, tmp_path)
        with watched(first) as hook:
            (tmp_path / "go").touch()
            await world.change("prod", "app", {"settings": {"mode": "fast"}})
            await world.until_state("prod", "app", "Ready")
            assert hook.ended()
        assert notes(tmp_path) == ["before", "before"]
        assert len(world.downloads) == 1


async def stuck(world: World) -> None:
    """Create a package whose Deployment never becomes ready."""
    await world.push("slow", "1.0.0", {"templates/slow.yaml": SLOW_CONFIG})
    await world.repository()
    await world.create("prod", "stuck", package="slow")
    await world.until("prod", "stuck", lambda obj: find_str(world.condition(obj, "Ready"), "reason") == "NotReady")


async def test_a_stop_interrupts_waiting_tasks(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await stuck(world)
        world.runtime.stop("the test says so")
        with trio.fail_after(300):
            while True:
                errors = [task.error for task in world.runtime.queues.dump_one("prod.stuck").tasks]
                if errors == ["stopped waiting: the test says so"]:
                    break
                await trio.testing.wait_all_tasks_blocked(0.005)


async def test_requirements_can_be_checked_without_a_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push("web", "1.0.0")
        await world.create("prod", "web")
        await world.until_state("prod", "web", "Ready")
        runtime = world.runtime
        runtime.check_constraints("prod.shop", Requirements(mandatory=depends("prod.web >=1")))
        with pytest.raises(ConstraintsError, match=r"not met by version 1\.0\.0") as refused:
            runtime.check_constraints("prod.shop", Requirements(mandatory=depends("prod.web >=2")))
        assert refused.value.reason == "DependencyVersionMismatch"
        for requirements, group_name in (
            (Requirements(any_of=(group("storage", "nfs"),)), "storage"),
            (Requirements(none_of=(group("rivals", "prod.web"),)), "rivals"),
        ):
            with pytest.raises(ConstraintsError, match=group_name):
                runtime.check_constraints("prod.shop", requirements)
        assert [node.name for node in runtime.scheduler.nodes()] == ["prod.web"]
