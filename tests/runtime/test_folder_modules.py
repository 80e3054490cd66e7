"""Module folders in the form that addon-operator expects, installed from a folder PackageRepository by the whole pipeline.

In a modules directory, a number (the weight) usually precedes a module's name, a module may be a link, and there are no versions.
"""

from pathlib import Path

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_world
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-tuner}\ndata: {sleep: '{{ .Values.sysctlTuner.sleep }}'}\n"
HOOK = """\
#!/usr/bin/env bash
if [[ "${1:-}" == --config ]]; then echo '{"configVersion": "v1", "beforeHelm": 1}'; exit; fi
sleep=$(jq .sysctlTuner.sleep "$VALUES_PATH")
echo '[{"op": "add", "path": "/sysctlTuner/sleep", "value": '$((sleep * 2))'}]' >"$VALUES_JSON_PATCH_PATH"
"""


def tuner(folder: Path, values: str = "sysctlTuner: {sleep: 600}\n") -> Path:
    """Write a module with a hook that doubles the value ``sleep``."""
    write(folder, {"values.yaml": values, "templates/map.yaml": MAP, "hooks/double.sh": HOOK})
    (folder / "hooks" / "double.sh").chmod(0o755)
    return folder


CARELESS = "name: sysctl-tuner\nversion: 1.0\n"
"""A Chart.yaml as in addon-operator's own examples. Helm renders such a chart."""


async def slept(world: World) -> str:
    await world.until_state("", "sysctl-tuner", "Ready")
    return find_str(await world.config_map(SYSTEM_NAMESPACE, "of-tuner"), "data", "sleep")


def asked(package: str, **more: str) -> JsonObject:
    return {"packageName": package, **more}


async def test_a_module_folder_may_have_a_weight_and_no_version(tmp_path: Path) -> None:
    tuner(tmp_path / "modules" / "002-sysctl-tuner")
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("sysctl-tuner", package="002-sysctl-tuner", version="0.0.0")
        assert await slept(world) == "1200"
        definition = world.runtime.instances["sysctl-tuner"].loaded()
        assert (definition.weight, definition.name, definition.version) == (2, "sysctl-tuner", "0.0.0")


async def test_a_module_folder_may_be_a_link(tmp_path: Path) -> None:
    """The link leads out of the modules directory. The module gets its weight from the number at the beginning of the link's
    name, and its name from the rest.
    """
    tuner(tmp_path / "elsewhere" / "checkout", "sleep: 7\n")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "010-sysctl-tuner").symlink_to(tmp_path / "elsewhere" / "checkout")
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("sysctl-tuner", package="010-sysctl-tuner", version="0.0.0")
        assert await slept(world) == "14"
        assert world.runtime.instances["sysctl-tuner"].loaded().weight == 10


async def test_a_module_folder_has_the_version_of_its_chart(tmp_path: Path) -> None:
    folder = tuner(tmp_path / "modules" / "sysctl-tuner")
    write(folder, {"Chart.yaml": "apiVersion: v2\nname: sysctl-tuner\nversion: 0.3.1\n"})
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("sysctl-tuner", version="0.3.1")
        assert await slept(world) == "1200"
        assert world.runtime.instances["sysctl-tuner"].loaded().version == "0.3.1"


async def test_a_chart_file_that_helm_accepts_is_accepted_with_warnings(tmp_path: Path) -> None:
    folder = tuner(tmp_path / "modules" / "001-sysctl-tuner")
    write(folder, {"Chart.yaml": CARELESS})
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("sysctl-tuner", package="001-sysctl-tuner", version="1")
        assert await slept(world) == "1200"
        module = await world.until_state("", "sysctl-tuner", "Ready")
        assert find(module, "status", "warnings") == [
            "Chart.yaml line 2: version: a number is read as the string '1'; put it in quotes",
            "Chart.yaml: apiVersion: missing; read as v1, as Helm reads it",
        ]
