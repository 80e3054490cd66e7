"""Packages that are disabled, suspended or enabled again: no unwanted object stays, and no wanted object is deleted."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

pytestmark = pytest.mark.unmeasured


async def a_module(world: World, name: str = "web", spec: JsonObject | None = None) -> None:
    await world.create_module(name, spec=spec)
    await world.until_state("", name, "Ready")


async def test_an_unavailable_version_does_not_prevent_a_disable(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await a_module(world)
        await world.change("", "web", {"packageVersion": "9.9.9"})
        await world.until("", "web", has_reason("ArtifactNotFound"))
        await world.change("", "web", {"enabled": False})
        await world.until("", "web", lambda obj: "currentVersion" not in str(obj.get("status")))
        assert await world.config_map(SYSTEM_NAMESPACE, "web") is None
        await world.change("", "web", {"enabled": True, "packageVersion": "1.0.0"})
        await world.until_state("", "web", "Ready")


@pytest.mark.slow
async def test_a_new_version_does_not_undo_a_disable(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "1.1.0")
        await world.repository()
        await a_module(world)
        await world.change("", "web", {"enabled": False})
        await world.change("", "web", {"packageVersion": "1.1.0"})
        await world.until_state("", "web", "Disabled")
        assert await world.config_map(SYSTEM_NAMESPACE, "web") is None
        await world.change("", "web", {"enabled": True})
        ready = await world.until_state("", "web", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.1.0"


@pytest.mark.slow
async def test_a_lost_dependency_suspends_the_package_and_deletes_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        needy = hooked(tmp_path / "needy", {"a.sh": bash("{configVersion: v1, onStartup: 1}", ":")}, name="needy")
        write(
            needy,
            {
                "package.yaml": "apiVersion: v1\ntype: Application\nname: needy\nversion: 1.0.0\n"
                "requirements: {modules: {mandatory: [{name: web, constraint: '>=1.0'}]}}\n"
            },
        )
        await world.push_folder(needy, "needy", "1.0.0")
        await world.create("prod", "app", package="needy")
        await world.until_state("prod", "app", "Pending")
        await a_module(world)
        await world.until_state("prod", "app", "Ready")
        await world.annotate("", "web", "wharfinger.dev/ignore-dependents", "true")
        await world.change("", "web", {"enabled": False})
        await world.until_state("prod", "app", "Suspended")
        assert await world.config_map("prod", "out") is not None
        assert "prod.app" not in world.runtime.tools.hook_services.started()
        await world.change("", "web", {"enabled": True})
        await world.until_state("prod", "app", "Ready")
        assert "prod.app" in world.runtime.tools.hook_services.started()


async def test_removal_hooks_see_the_settings_even_after_a_restart(tmp_path: Path) -> None:
    hook = bash("{configVersion: v1, beforeDeleteHelm: 1}", f'jq -r .hooked.mode "$VALUES_PATH" >>"{tmp_path}/notes"')
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
        settings: JsonObject = {"mode": "careful"}
        await world.create("prod", "app", package="hooked", settings=settings)
        await world.until_state("prod", "app", "Ready")
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert (tmp_path / "notes").read_text() == "careful\n"


@pytest.mark.slow
async def test_the_skip_delete_hooks_annotation_lets_a_removal_continue(tmp_path: Path) -> None:
    hook = bash("{configVersion: v1, beforeDeleteHelm: 1}", "exit 1")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.delete("prod", "app")
        stuck = await world.until(
            "prod", "app", lambda obj: "exit status 1" in find_str(obj, "status", "summary", "message")
        )
        assert "skip-delete-hooks" in find_str(stuck, "status", "summary", "tip")
        await world.annotate("prod", "app", "wharfinger.dev/skip-delete-hooks", "yes")
        await world.until_gone("prod", "app")
        assert await world.config_map("prod", "out") is None
