"""A package whose hooks are all in one executable. The executable also checks the settings, and whether the package is ready."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import find_str

BATCH = """\
#!/usr/bin/env bash
set -eu
case "$1 $2" in
"hook config")
  echo '{"version": "v1", "hooks": [{"metadata": {"name": "start"}, "onStartup": 1}],'
  echo ' "readiness": {"kubernetes": [{"name": "maps", "kind": "ConfigMap"}]}, "has_settings_check": true}'
  ;;
"hook run") echo "$APPLICATION_NAMESPACE/$APPLICATION_NAME run $3" >>FOLDER/notes ;;
"hook ready") [ -e FOLDER/ready ] || { echo "still warming up" >&2; exit 1; } ;;
"hook check") [ "$(jq .batched.size "$CONFIG_VALUES_PATH")" -lt 10 ] || { echo "size is too large" >&2; exit 1; } ;;
*) exit 2 ;;
esac
"""


def batched(folder: Path, *, ready: bool) -> Path:
    write(
        folder / "batched",
        {
            "package.yaml": "apiVersion: v1\ntype: Application\nname: batched\nversion: 1.0.0\nbatchHooks: [hooks/main]\n",
            "openapi/settings.yaml": "type: object\nproperties: {size: {type: integer, default: 1}}\n",
            "templates/out.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\n",
            "hooks/main": BATCH.replace("FOLDER", str(folder)),
        },
    )
    (folder / "batched" / "hooks" / "main").chmod(0o755)
    if ready:
        (folder / "ready").touch()
    return folder / "batched"


async def test_hooks_of_a_batch_run_and_check_settings(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(batched(tmp_path, ready=True), "batched", "1.0.0")
        await world.create("prod", "app", package="batched")
        await world.until_state("prod", "app", "Ready")
        assert (tmp_path / "notes").read_text() == "prod/app run 0\n"
        await world.change("prod", "app", {"settings": {"size": 11}})
        refused = await world.until("prod", "app", has_reason("SettingsInvalid"))
        assert "size is too large" in find_str(refused, "status", "summary", "message")
        await world.change("prod", "app", {"settings": {"size": 2}})
        await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_a_package_is_ready_when_its_readiness_hook_succeeds(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(batched(tmp_path, ready=False), "batched", "1.0.0")
        await world.create("prod", "app", package="batched")
        waiting = await world.until(
            "prod", "app", lambda obj: "warming up" in find_str(obj, "status", "summary", "message")
        )
        assert find_str(waiting, "status", "currentVersion", "version") == "1.0.0"
        (tmp_path / "ready").touch()
        await world.until_state("prod", "app", "Ready")
