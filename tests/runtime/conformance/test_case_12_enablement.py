"""Case 12: which modules exist, and which of them are on (spec hook-protocol §5.4, §5.6, §6.4a). The rules
of the scheduler are tested in `tests/runtime/scheduler`.

At each change, addon-operator runs all enabled scripts one after the other, in the order of modules. Here a script runs only if
its inputs have changed. These tests therefore compare the results of the scripts, and not how often they run.
"""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.conformance.greek import NEEDS, write_modules
from tests.runtime.support.world import World, open_world
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.enabled_script import EnabledAnswer, run_enabled_script
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.module_folder import camel_name, check_module_name, kebab_name
from wharfinger.packages.definition.modules_dir import ModulesDirs, read_modules_dirs
from wharfinger.packages.errors import ArtifactError
from wharfinger.process.command import Limits
from wharfinger.runtime.controllers.config_map import read_config_map
from wharfinger.runtime.controllers.modules_dir import open_modules_dir
from wharfinger.runtime.resources.resources import CONFIG_MAP

pytestmark = pytest.mark.unmeasured

SETTINGS = ObjectKey(CONFIG_MAP, "prod", "settings")
ALL = ("alpha", "gamma", "delta", "epsilon", "zeta", "eta")
WITHOUT_ALPHA = ("epsilon", "eta")


def names(found: ModulesDirs) -> list[str]:
    return [module.name for module in found.modules]


def runner(folder: Path) -> ProcessHookRunner:
    (folder / "scratch").mkdir(exist_ok=True)
    return ProcessHookRunner(folder / "scratch", Limits(wall_s=60, stdout_bytes=1024 * 1024))


async def ask(folder: Path, module: Path, *enabled: JsonValue) -> EnabledAnswer | None:
    """Run the enabled script of a module as if the modules in ``enabled`` were on."""
    values: JsonObject = {"global": {"enabledModules": [*enabled]}, camel_name(module.name): {}}
    return await run_enabled_script(runner(folder), module, values, {}, masked=str)


def script(module: Path, *lines: str, mode: int = 0o755) -> Path:
    write(module, {"enabled": "\n".join(("#!/usr/bin/env bash", *lines))})
    (module / "enabled").chmod(mode)
    return module


# --- discovery (§5.4) ----------------------------------------------------------------------------------------------------


def test_directories_are_read_in_order_and_through_links(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "dir1/001-module-one/values.yaml": "moduleOne: {from: dir1}",
            "dir2/values.yaml": "moduleOne: {from: dir2}\nmodTwo: {here: dir2}\nglobal: {a: 1}",
            "dir2/010-module-one/values.yaml": "moduleOne: {from: dir2}",
            "shared/mod-two/values.yaml": "modTwo: {own: 1}",
            "dir3/values.yaml": "modThree: {here: dir3}\nglobal: {b: 2}",
            "dir3/mod-three/hooks/a": "",
        },
    )
    (tmp_path / "dir2" / "012-mod-two").symlink_to(Path("..") / "shared" / "mod-two")
    found = read_modules_dirs([tmp_path / "dir1", tmp_path / "dir2", tmp_path / "dir3"])
    assert [(module.name, module.weight, module.dir.name) for module in found.modules] == [
        ("mod-three", 1, "dir3"),
        ("module-one", 1, "dir1"),
        ("mod-two", 12, "dir2"),
    ]
    assert found.static == {"module-one": {}, "mod-two": {"here": "dir2"}, "mod-three": {"here": "dir3"}}
    assert found.global_values == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("name", "key"),
    [("module-one", "moduleOne"), ("module-one01", "moduleOne01"), ("2-module-name", "2ModuleName")],
)
def test_module_names_and_keys_are_converted_both_ways(name: str, key: str) -> None:
    assert (camel_name(name), kebab_name(key)) == (key, name)
    check_module_name(name)


def test_a_name_that_is_not_kebab_case_is_refused() -> None:
    with pytest.raises(ArtifactError, match=r"expected a name in kebab-case"):
        check_module_name("module_one")


# --- flags (§5.6) --------------------------------------------------------------------------------------------------------


def test_flags_of_the_directory_override_those_of_the_module(tmp_path: Path) -> None:
    """The flags of the modules directory take precedence. A module without a flag is off."""
    write(
        tmp_path,
        {
            "values.yaml": "oneEnabled: true\nthreeEnabled: false\n",
            "one/values.yaml": "oneEnabled: false",
            "two/values.yaml": "twoEnabled: true",
            "three/values.yaml": "threeEnabled: true",
            "four/values.yaml": "",
        },
    )
    assert read_modules_dirs([tmp_path]).enabled == {"one": True, "two": True, "three": False}


def test_a_flag_that_is_not_a_boolean_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"values.yaml": "oneEnabled: 'true'", "one/hooks/a": ""})
    with pytest.raises(ArtifactError, match="oneEnabled: expected true or false, found a string"):
        read_modules_dirs([tmp_path])


def test_flags_of_the_config_map_are_read() -> None:
    found = read_config_map(
        {"oneEnabled": "true", "twoEnabled": "false", "four": "a: 1"}, ("one", "two", "three", "four")
    )
    assert {name: module.enabled for name, module in found.modules.items()} == {"four": None, "one": True, "two": False}


# --- scripts (§5.6) ------------------------------------------------------------------------------------------------------


async def test_enabled_scripts_may_answer_with_a_reason_or_be_absent(tmp_path: Path) -> None:
    yes = script(
        tmp_path / "yes", 'printf "  true\\n" >"$MODULE_ENABLED_RESULT"', "[[ $# == 0 && -r $CONFIG_VALUES_PATH ]]"
    )
    assert await ask(tmp_path, yes) == EnabledAnswer(enabled=True, reason="")
    no = script(tmp_path / "no", 'echo false >"$MODULE_ENABLED_RESULT"', 'echo "not here" >"$MODULE_ENABLED_REASON"')
    assert await ask(tmp_path, no) == EnabledAnswer(enabled=False, reason="not here")
    assert await ask(tmp_path, write(tmp_path / "none", {"values.yaml": ""})) is None
    assert await ask(tmp_path, script(tmp_path / "plain", "exit 1", mode=0o644)) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("true", "bad enabled result"),
        ('echo maybe >"$MODULE_ENABLED_RESULT"', "bad enabled result"),
        ('echo true >"$MODULE_ENABLED_RESULT"; exit 3', "the script failed: exit status 3"),
    ],
)
async def test_an_invalid_answer_of_a_script_is_an_error(line: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(HookError, match=why):
        await ask(tmp_path, script(tmp_path / "bad", line))


@pytest.mark.parametrize(("without", "golden"), [((), ALL), (("alpha",), WITHOUT_ALPHA)])
async def test_scripts_run_in_the_order_of_modules(
    without: tuple[str, ...], golden: tuple[str, ...], tmp_path: Path
) -> None:
    """Each script sees the earlier modules that are on, as in addon-operator (spec hook-protocol §6.4a)."""
    found = read_modules_dirs([write_modules(tmp_path / "modules")])
    assert names(found) == list(NEEDS)
    enabled: list[str] = []
    for module in found.modules:
        answer = await ask(tmp_path, module.path, *enabled)
        if found.enabled[module.name] and module.name not in without and answer is not None and answer.enabled:
            enabled.append(module.name)
    assert " ".join(enabled) == " ".join(golden)


# --- the whole chain, in a cluster -----------------------------------------------------------------------------------------


async def configure(world: World, **data: str) -> None:
    metadata: JsonObject = {"namespace": SETTINGS.namespace, "name": SETTINGS.name}
    obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}
    await world.client.apply(obj, field_manager="person", force=True)


async def until_on(world: World, *on: str) -> None:
    """Wait until exactly these modules are on, as reported by the status of all modules."""
    for name in NEEDS:
        await world.until_state("", name, "Ready" if name in on else "Disabled")
    assert [name for name in NEEDS if world.runtime.scheduler.enabled(name)] == list(on)


@pytest.mark.slow
async def test_modules_in_a_cluster_follow_the_chain_of_scripts(tmp_path: Path) -> None:
    """All modules except beta are on. If alpha is switched off and then on again, its dependents follow."""
    modules = write_modules(tmp_path / "modules")
    async with (
        open_world(tmp_path) as world,
        open_modules_dir(world.client, [modules], config_map=SETTINGS, rescan_s=60),
    ):
        await until_on(world, *ALL)
        said = await world.until_state("", "beta", "Disabled")
        assert "there is no nobody" in find_str(said, "status", "summary", "message")
        await configure(world, alphaEnabled="false")
        await until_on(world, *WITHOUT_ALPHA)
        await configure(world, alphaEnabled="true")
        await until_on(world, *ALL)
