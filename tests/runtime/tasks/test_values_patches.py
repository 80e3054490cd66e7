"""Patches that hooks make to values and to settings. A patch of settings changes ``spec.settings`` of the resource, if the layout
of the package allows that.
"""

from pathlib import Path

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import MODULE, SETTINGS_MAP

SCHEMA = "type: object\nproperties: {a: {type: integer}, b: {type: string}, c: {type: array, items: {type: integer}}}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {seen: '{{ .Values.tuner | toJson }}'}\n"


def patching(operations: str) -> str:
    return bash("{configVersion: v1, beforeHelm: 1}", f"echo '{operations}' >\"$CONFIG_VALUES_JSON_PATCH_PATH\"")


def module_folder(folder: Path, operations: str) -> None:
    """Write a module of addon-operator with a hook that changes the user's settings (the example of spec/hook-protocol §6.4)."""
    hook = patching(operations)
    write(folder, {"openapi/config-values.yaml": SCHEMA, "templates/out.yaml": MAP, "hooks/set.sh": hook})
    (folder / "hooks" / "set.sh").chmod(0o755)


CHANGE = """\
{"op":"add","path":"/tuner/a","value":2}
[{"op":"remove","path":"/tuner/b"},{"op":"add","path":"/tuner/c","value":[3]}]"""
"""A patch that can be applied only once, because it removes a value. A second run of the hook would fail."""
REPEATABLE = '{"op":"add","path":"/tuner/a","value":2}'


async def begin(world: World) -> None:
    await world.local_repository(world.folder / "modules")


async def settings_of(world: World) -> object:
    return find(await world.client.get(ObjectKey(MODULE, "", "tuner")), "spec", "settings")


async def test_a_hook_of_a_module_changes_settings_of_the_user(tmp_path: Path) -> None:
    module_folder(tmp_path / "modules" / "tuner", REPEATABLE)
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.create_module("tuner", version="0.0.0", spec={"settings": {"b": "kept"}})
        await world.until("", "tuner", lambda obj: find(obj, "spec", "settings", "a") == 2)
        await world.until_state("", "tuner", "Ready")
        assert await settings_of(world) == {"a": 2, "b": "kept"}
        out = await world.config_map(SYSTEM_NAMESPACE, "out")
        assert find_str(out, "data", "seen") == '{"a":2,"b":"kept"}'


async def test_a_patch_against_the_schema_changes_nothing(tmp_path: Path) -> None:
    module_folder(tmp_path / "modules" / "tuner", '{"op":"add","path":"/tuner/a","value":"two"}')
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.create_module("tuner", version="0.0.0", spec={"settings": {"b": "kept"}})
        failed = await world.until("", "tuner", has_reason("PackageHookFailed"))
        assert "configuration values" in str(find(failed, "status", "conditions"))
        assert await settings_of(world) == {"b": "kept"}


async def test_settings_from_a_config_map_are_changed_in_the_config_map(tmp_path: Path) -> None:
    module_folder(tmp_path / "modules" / "tuner", CHANGE)
    async with open_world(tmp_path) as world:
        await begin(world)
        kept = config_map("addon-operator")
        kept["data"] = {"tuner": "b: should-be-deleted\n", "other": "x: 1\n"}
        await world.client.create(kept)
        await world.create_module("tuner", version="0.0.0", spec={"settings": {}, "enabled": False})
        await world.annotate("", "tuner", SETTINGS_MAP, "prod/addon-operator")
        await world.change("", "tuner", {"enabled": True})
        await world.until_state("", "tuner", "Ready")
        changed = await world.config_map("prod", "addon-operator")
        assert find(changed, "data") == {"tuner": "a: 2\nc:\n- 3\n", "other": "x: 1\n"}
        assert await settings_of(world) == {}


async def test_hooks_of_a_package_may_not_change_its_settings(tmp_path: Path) -> None:
    hook = patching('{"op":"add","path":"/hooked/mode","value":"x"}')
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"set.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until("prod", "app", has_reason("PackageHookFailed"))
        assert "but only hooks of packages" in str(find(failed, "status", "conditions"))


async def test_patches_of_a_failed_run_are_discarded(tmp_path: Path) -> None:
    """The hook writes one patch of settings and one of values. One of them is refused, so neither is applied."""
    both = bash(
        "{configVersion: v1, beforeHelm: 1}",
        f"echo '{REPEATABLE}' >\"$CONFIG_VALUES_JSON_PATCH_PATH\"\n"
        """echo '{"op":"remove","path":"/tuner/nothing"}' >"$VALUES_JSON_PATCH_PATH" """,
    )
    module_folder(tmp_path / "modules" / "tuner", REPEATABLE)
    (tmp_path / "modules" / "tuner" / "hooks" / "set.sh").write_text(both)
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.create_module("tuner", version="0.0.0", spec={"settings": {"b": "kept"}})
        await world.until("", "tuner", has_reason("PackageHookFailed"))
        assert await settings_of(world) == {"b": "kept"}


async def test_a_module_may_have_the_name_of_a_flag(tmp_path: Path) -> None:
    folder = tmp_path / "modules" / "auto-enabled"
    steps = [
        '{"op":"add","path":"/autoEnabled","value":{"a":1}}',
        '{"op":"add","path":"/autoEnabled/b","value":2}',
        '{"op":"remove","path":"/autoEnabled/b"}',
    ]
    hooks = {
        f"hooks/{number}.sh": bash(
            f"{{configVersion: v1, beforeHelm: {number}}}", f"echo '{step}' >\"$VALUES_JSON_PATCH_PATH\""
        )
        for number, step in enumerate(steps)
    }
    write(folder, {"openapi/values.yaml": "type: object\nadditionalProperties: true\n", **hooks})
    for name in hooks:
        (folder / name).chmod(0o755)
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.create_module("auto-enabled", version="0.0.0")
        await world.until_state("", "auto-enabled", "Ready")
        assert world.runtime.instances["auto-enabled"].configuration.values == {"a": 1}


async def test_true_and_1_are_different_values(tmp_path: Path) -> None:
    folder = tmp_path / "modules" / "tuner"
    hook = bash(
        "{configVersion: v1, beforeHelm: 1}",
        """echo '{"op":"add","path":"/tuner/n","value":true}' >"$VALUES_JSON_PATCH_PATH" """,
    )
    values = "type: object\nadditionalProperties: true\n"
    write(folder, {"values.yaml": "tuner: {n: 1}\n", "openapi/values.yaml": values, "hooks/set.sh": hook})
    (folder / "hooks" / "set.sh").chmod(0o755)
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.create_module("tuner", version="0.0.0")
        await world.until_state("", "tuner", "Ready")
        assert world.runtime.instances["tuner"].configuration.values["n"] is True
