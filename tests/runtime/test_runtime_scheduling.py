"""The scheduler in the runtime: dependencies of packages, and packages that follow their dependencies."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import hooked
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.runtime.inspector import InvalidSettings, ValidSettings

pytestmark = pytest.mark.unmeasured

TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{name}}}\n"


def needing(folder: Path, name: str, *modules: str, kind: str = "Application", more: str = "") -> Path:
    """Write a package that needs modules, each given as ``name constraint``."""
    needs = ", ".join("{{name: {}, constraint: '{}'}}".format(*module.split(" ", 1)) for module in modules)
    text = (
        f"apiVersion: v1\ntype: {kind}\nname: {name}\nversion: 1.0.0\n"
        f"requirements: {{modules: {{mandatory: [{needs}]}}{more}}}\n"
    )
    return write(folder / name, {"package.yaml": text, "templates/out.yaml": TEMPLATE.format(name=name)})


async def pushed(world: World, folder: Path) -> None:
    await world.push_folder(folder, folder.name, "1.0.0")


@pytest.mark.slow
async def test_an_application_follows_the_module_it_needs(tmp_path: Path) -> None:
    """The Application waits for the Module, and then runs. When the Module is disabled, the Application is paused, but its
    objects stay. It runs again with the Module.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await pushed(world, needing(tmp_path, "shop", "database >=1.0"))
        await world.push("database", "1.0.0")
        await world.create("prod", "shop", package="shop")
        waits = await world.until("prod", "shop", has_reason("DependencyNotEnabled"))
        assert find_str(waits, "status", "summary", "state") == "Pending"
        assert "database" in find_str(waits, "status", "summary", "message")
        assert await world.config_map("prod", "of-shop") is None

        await world.create_module("database")
        await world.until_state("prod", "shop", "Ready")
        await world.until_state("", "database", "Ready")
        downloads = len(world.downloads)

        await world.annotate("", "database", "wharfinger.dev/ignore-dependents", "true")
        await world.change("", "database", {"enabled": False})
        suspended = await world.until_state("prod", "shop", "Suspended")
        assert has_reason("DependencyNotEnabled")(suspended)
        assert find_str(suspended, "status", "currentVersion", "version") == "1.0.0"
        assert await world.config_map("prod", "of-shop") is not None
        await world.until_state("", "database", "Disabled")

        await world.change("", "database", {"enabled": True})
        await world.until_state("", "database", "Ready")
        again = await world.until_state("prod", "shop", "Ready")
        assert find_int(again, "status", "release", "revision") == 1
        assert len(world.downloads) == downloads


@pytest.mark.slow
async def test_a_dependency_of_a_wrong_version_is_reported(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await pushed(world, needing(tmp_path, "shop", "database >=2.0"))
        await world.push("database", "1.0.0")
        await world.push("database", "2.1.0")
        await world.create_module("database")
        await world.create("prod", "shop", package="shop")
        waits = await world.until("prod", "shop", has_reason("DependencyVersionMismatch"))
        message = find_str(waits, "status", "summary", "message")
        assert ">=2.0" in message
        assert "1.0.0" in message
        await world.change("", "database", {"packageVersion": "2.1.0"})
        await world.until_state("prod", "shop", "Ready")


async def test_a_cycle_is_reported_with_all_its_members_and_disturbs_no_other_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await pushed(world, needing(tmp_path, "ham", "eggs >=1", kind="Module"))
        await pushed(world, needing(tmp_path, "eggs", "ham >=1", kind="Module"))
        await world.push("web", "1.0.0")
        await world.create_module("ham")
        await world.until("", "ham", has_reason("DependencyNotEnabled"))
        await world.create_module("eggs")
        cycle = await world.until("", "eggs", has_reason("DependencyCycle"))
        message = find_str(cycle, "status", "summary", "message")
        assert "ham" in message
        assert "eggs" in message
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.parametrize(
    ("more", "reason", "word"),
    [
        (", kubernetes: {constraint: '>=99.0'}", "KubernetesRequirementsUnmet", ">=99.0"),
        (", platform: {constraint: '>=1.0'}", "VersionLookupFailed", "platform"),
    ],
    ids=["kubernetes", "platform"],
)
async def test_unmet_or_unknown_kubernetes_and_platform_versions_are_reported(
    tmp_path: Path, more: str, reason: str, word: str
) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await pushed(world, needing(tmp_path, "shop", more=more))
        await world.create("prod", "shop", package="shop")
        waits = await world.until("prod", "shop", has_reason(reason))
        assert word in find_str(waits, "status", "summary", "message")
        assert find_str(waits, "status", "summary", "tip")
        assert await world.config_map("prod", "of-shop") is None


async def test_settings_are_validated_once_the_package_is_known(tmp_path: Path) -> None:
    wrong: JsonObject = {"mode": 3, "mod": "x"}
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {}), "hooked", "1.0.0")
        assert await world.runtime.validate_settings("prod.app", wrong) is None
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        answer = await world.runtime.validate_settings("prod.app", wrong)
        assert isinstance(answer, InvalidSettings)
        assert sorted(problem.path.partition(".")[0] for problem in answer.problems) in (["", "mode"], ["mod", "mode"])
        assert await world.runtime.validate_settings("prod.app", {"mode": "fast"}) == ValidSettings("1.0.0", ())
