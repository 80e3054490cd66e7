"""Global hooks around all packages: the order of runs, the effect of a global value, and Modules that a hook
switches on or off.
"""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import hooked
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import find, find_str
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-NAME}
data: {colour: '{{ .Values.global.colour }}'}
"""
HOOK = """\
#!/usr/bin/env bash
set -e
if [[ ${1:-} == --config ]]; then echo '{"configVersion": "v1", CONFIG}'; exit; fi
echo "$(basename "$0"):$(jq -r '[.[].binding] | join(",")' "$BINDING_CONTEXT_PATH")" >>NOTES
"""


def hook(notes: Path, config: str, patch: str = "") -> str:
    """Return a hook that notes its name and the reason of its run. ``patch`` is shell code that patches the values."""
    script = HOOK.replace("CONFIG", config).replace("NOTES", str(notes))
    return script + (f'echo "{patch}" >"$VALUES_JSON_PATCH_PATH"\n' if patch else "")


def add(path: str, value: str) -> str:
    return f'{{"op":"add","path":"{path}","value":{value}}}'.replace('"', '\\"')


def made(folder: Path, files: dict[str, str]) -> None:
    write(folder, files)
    for name in files:
        if name.endswith(".sh"):
            (folder / name).chmod(0o755)


def noted(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def global_hooks(tmp_path: Path, hooks: dict[str, str]) -> None:
    made(tmp_path / "modules" / "global-hooks", {f"hooks/{name}": text for name, text in hooks.items()})


def a_module(tmp_path: Path, name: str, hooks: dict[str, str]) -> None:
    files = {"templates/map.yaml": MAP.replace("NAME", name), "openapi/values.yaml": "type: object\n"}
    made(tmp_path / "modules" / name, files | {f"hooks/{each}": text for each, text in hooks.items()})


async def begin(world: World, *names: str) -> None:
    await world.local_repository(world.folder / "modules")
    await world.create_module("global", package="global-hooks", version="0.0.0")
    for name in names:
        await world.create_module(name, version="0.0.0")


async def colour(world: World, name: str) -> str:
    return find_str(await world.config_map(SYSTEM_NAMESPACE, f"of-{name}"), "data", "colour")


@pytest.mark.slow
async def test_global_hooks_run_before_and_after_all_packages(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    global_hooks(
        tmp_path,
        {
            "01-all.sh": hook(notes, '"onStartup": 20, "beforeAll": 10', add("/global/colour", '"blue"')),
            "02-start.sh": hook(notes, '"onStartup": 1'),
            "03-end.sh": hook(notes, '"afterAll": 1, "beforeAll": 5'),
        },
    )
    a_module(tmp_path, "alpha", {"own.sh": hook(notes, '"beforeHelm": 1')})
    async with open_world(tmp_path) as world:
        await begin(world, "alpha")
        await world.until_state("", "alpha", "Ready")
        await world.until_notes(notes, {"03-end.sh:afterAll"})
        assert await colour(world, "alpha") == "blue"
        lines = noted(notes)
        assert lines[:4] == [
            "02-start.sh:onStartup",
            "01-all.sh:onStartup",
            "03-end.sh:beforeAll",
            "01-all.sh:beforeAll",
        ]
        assert lines.index("own.sh:beforeHelm") < lines.index("03-end.sh:afterAll")
        assert find(world.runtime.packages.global_values(), "colour") == "blue"


@pytest.mark.slow
async def test_a_hook_may_disable_a_module_unless_spec_enabled_is_set(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"beforeAll": 1', add("/extraOneEnabled", '"false"'))})
    a_module(tmp_path, "extra-one", {})
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.until_notes(notes, {"all.sh:beforeAll"})
        await world.create_module("extra-one", version="0.0.0")
        await world.until_state("", "extra-one", "Ready")
        await world.annotate("", "extra-one", "wharfinger.dev/enabled-by-default", "true")
        await world.until("", "extra-one", has_reason("DisabledByGlobalHook"))
        await world.until("", "extra-one", lambda obj: not find_str(obj, "status", "currentVersion", "version"))
        assert await world.config_map(SYSTEM_NAMESPACE, "of-extra-one") is None
        await world.change("", "extra-one", {"enabled": True})
        await world.until_state("", "extra-one", "Ready")


@pytest.mark.slow
async def test_settings_of_the_global_module_reach_all_packages(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"afterAll": 1')})
    a_module(tmp_path, "alpha", {"own.sh": hook(notes, '"afterHelm": 1')})
    async with open_world(tmp_path) as world:
        await begin(world, "alpha")
        await world.until_state("", "alpha", "Ready")
        await world.until_notes(notes, {"all.sh:afterAll"})
        notes.unlink()
        await world.change("", "global", {"settings": {"colour": "red"}})
        await world.until_notes(notes, {"own.sh:afterHelm", "all.sh:afterAll"})
        assert await colour(world, "alpha") == "red"
        assert noted(notes)[-1] == "all.sh:afterAll"


@pytest.mark.slow
async def test_afterall_hooks_that_never_settle_are_reported(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"afterAll": 1', add("/global/count", "$(date +%s%N)"))})
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.until("", "global", has_reason("ValuesLoop"))
        assert noted(notes) == ["all.sh:afterAll"] * 6


async def test_global_hooks_may_patch_discovery_and_modules(tmp_path: Path) -> None:
    """The daemon's own discovery data and the patch of a hook are both in the global values, but only the patch is stored."""
    notes = tmp_path / "notes"
    patch = add("/global/discovery/clusterDomain", '"cluster.local"')
    global_hooks(tmp_path, {"all.sh": hook(notes, '"beforeAll": 1', patch)})
    async with open_world(tmp_path) as world:
        await begin(world)
        await world.until_state("", "global", "Ready")
        assert find(world.runtime.packages.global_values(), "discovery", "clusterDomain") == "cluster.local"
        assert find(world.runtime.packages.global_values(), "discovery", "kubernetesVersion")
        assert world.runtime.instances["global"].configuration.values == {
            "discovery": {"clusterDomain": "cluster.local"}
        }
        await world.request("", "global")
        await world.until_state("", "global", "Ready")
        assert find(world.runtime.packages.global_values(), "discovery", "clusterDomain") == "cluster.local"


@pytest.mark.slow
async def test_after_a_restart_afterall_hooks_wait_for_packages_being_loaded(tmp_path: Path) -> None:
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"beforeAll": 1, "afterAll": 1')})
    slow = f"[[ -p {gate} ]] && cat {gate} >/dev/null\nset -e\n"
    hooked(
        tmp_path / "modules" / "slow", {"own.sh": hook(notes, '"onStartup": 1').replace("set -e\n", slow)}, name="slow"
    )
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await begin(world)
            await world.create("prod", "shop", package="slow")
            await world.until_state("prod", "shop", "Ready")
            await world.until_notes(notes, {"all.sh:afterAll"})
        notes.unlink()
        os.mkfifo(gate)
        async with ground.open_world() as world:
            await world.until_notes(notes, {"all.sh:beforeAll"})
            await world.runtime.queues.wait_idle("global")
            held_back = noted(notes)
            opened = os.open(gate, os.O_RDWR)
            gate.unlink()
            os.close(opened)
            await world.until_notes(notes, {"all.sh:afterAll"})
        assert held_back == ["all.sh:beforeAll"]
