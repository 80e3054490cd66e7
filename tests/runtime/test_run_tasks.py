"""Run, its rounds, and the way back."""

from pathlib import Path

from tests.runtime.notes import NO_TOOLS, Notes, instance
from tests.runtime.test_hook_runs import bash, hooked, until_data
from tests.runtime.test_start_tasks import notes, noting
from tests.runtime.world import open_world
from wharfinger.cluster.resource import ResourceType
from wharfinger.formats.json_value import find_str
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.pipeline import Pipeline
from wharfinger.runtime.run_tasks import MAX_ROUNDS

DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)


def counting_up(limit: int) -> str:
    """An afterHelm hook that adds one to a value until it is at its limit."""
    return bash(
        "{configVersion: v1, afterHelm: 1}",
        f'seen=$(jq .hooked.seen "$VALUES_PATH"); [ "$seen" -ge {limit} ] || '
        'echo "{\\"op\\":\\"add\\",\\"path\\":\\"/hooked/seen\\",\\"value\\":$((seen + 1))}" >"$VALUES_JSON_PATCH_PATH"',
    )


async def test_after_helm_hooks_that_change_values_are_followed_until_they_rest(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"up.sh": counting_up(3)}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await until_data(world, "out", "seen", "3")


async def test_hooks_that_never_rest_are_named_instead_of_being_run_for_ever(tmp_path: Path) -> None:
    folder = hooked(tmp_path / "hooked", {"up.sh": counting_up(99)})
    values = folder / "openapi" / "values.yaml"
    values.write_text(values.read_text().replace("maximum: 5, ", ""))
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until_state("prod", "app", "Failed")
        message = find_str(failed, "status", "summary", "message")
        assert f"{MAX_ROUNDS} times in a row: hooks/up.sh (seen);" in message
        assert find_str(world.condition(failed, "Ready"), "reason") == "ValuesLoop"


async def test_hooks_surround_the_uninstall(tmp_path: Path) -> None:
    hooks = {
        "before.sh": noting(tmp_path, "{configVersion: v1, beforeDeleteHelm: 1}", "before"),
        "after.sh": noting(tmp_path, "{configVersion: v1, afterDeleteHelm: 1}", "after"),
    }
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert notes(tmp_path) == ["before", "after"]
        assert await world.config_map("prod", "out") is None


async def test_a_package_without_a_chart_has_hooks_only(tmp_path: Path) -> None:
    hooks = {"start.sh": noting(tmp_path, "{configVersion: v1, onStartup: 1}", "start")}
    folder = hooked(tmp_path / "hooked", hooks)
    (folder / "templates" / "out.yaml").unlink()
    (folder / "templates").rmdir()
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        ready = await world.until_state("prod", "app", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.0.0"
        assert notes(tmp_path) == ["start"]
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")


async def test_uninstalling_a_name_that_never_could_be_installed_is_success() -> None:
    one = instance(AppId("prod", "a" * 60))
    one.definition = None
    await Pipeline(one, NO_TOOLS, Notes(), WorkScope("x")).removal()[0].execute()
