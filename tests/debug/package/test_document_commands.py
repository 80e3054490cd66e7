import json
from pathlib import Path

import pytest
import yaml

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from wharfinger.debug.package.document_commands import add_snapshots, add_tasks, add_values, task_lines
from wharfinger.runtime.package_details import DaemonTaskSnapshot


async def test_values_are_printed_in_every_format(tmp_path: Path) -> None:
    code, out, _ = await typed(add_values, ["prod.shop"], CannedInspector(), tmp_path)
    assert (code, yaml.safe_load(out)) == (0, {"replicas": 2, "internal": {"ready": True}})
    _, out, _ = await typed(add_values, ["prod.shop", "--settings", "-o", "json"], CannedInspector(), tmp_path)
    assert json.loads(out) == {"replicas": 2}
    path = ["prod.shop", "-o", "jsonpath={.internal.ready}"]
    assert (await typed(add_values, path, CannedInspector(), tmp_path))[1] == "true\n"
    assert (await typed(add_values, ["nope"], CannedInspector(), tmp_path))[0] == 1
    with pytest.raises(SystemExit):
        await typed(add_values, ["a", "-o", "wide"], CannedInspector(), tmp_path)


async def test_snapshots_of_hooks_are_printed(tmp_path: Path) -> None:
    code, out, _ = await typed(add_snapshots, ["prod.shop"], CannedInspector(), tmp_path)
    assert code == 0
    assert yaml.safe_load(out) == {
        "hooks/001-config.sh": {"configmaps": [{"filterResult": {"name": "a"}}], "none": []},
    }
    assert (await typed(add_snapshots, ["prod.shop", "--hook", "x"], CannedInspector(), tmp_path))[1] == "{}\n"
    code, _, err = await typed(add_snapshots, ["nope"], CannedInspector(), tmp_path)
    assert (code, err) == (1, "error: no package named 'nope'; `wharfinger get packages` lists them\n")


async def test_tasks_of_the_daemon_are_printed(tmp_path: Path) -> None:
    code, out, _ = await typed(add_tasks, [], CannedInspector(), tmp_path)
    assert (code, out) == (0, "main\n  queue prod.shop [prod.shop] (version changed) at slots.use\n")
    _, out, _ = await typed(add_tasks, ["--package", "prod.shop", "-o", "yaml"], CannedInspector(), tmp_path)
    assert [each["name"] for each in yaml.safe_load(out)["tasks"]] == ["queue prod.shop"]
    assert await typed(add_tasks, ["--package", "x"], CannedInspector(), tmp_path) == (0, "", "no tasks\n")
    assert task_lines([DaemonTaskSnapshot("\x1b[31m", 3)]) == ["\\x1b[31m"]
