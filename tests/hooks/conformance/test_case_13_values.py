"""Case 13: values patches of module hooks and global hooks. The peers use the same sample values."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hooks.conformance.golden import variables
from tests.hooks.support.scripts import bash
from tests.packages.support.charts import write
from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.results import VALUES_PATCH, read_values_patch
from wharfinger.hooks.running.runner import HookOutcome, HookRun
from wharfinger.hooks.running.values_patch import ValuesPatchError, apply_values_patch, compacted, reapplied
from wharfinger.process.command import Limits
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

CONFIG_VALUES: JsonObject = {"global": {}, "module": {"b": "should-be-deleted"}}
VALUES: JsonObject = {"global": {"z": 1}, "module": {"a": 123, "x": 10}}


async def ran(
    folder: Path, script: str, values: JsonObject = VALUES, config: JsonObject = CONFIG_VALUES
) -> HookOutcome:
    hook = bash(folder, script)
    runner = ProcessHookRunner(folder / "runs", Limits(wall_s=60, stdout_bytes=100_000), environment=variables())
    outcome = await runner.run(HookRun("module/hooks/hook", hook, folder, ({"binding": "afterHelm"},), values, config))
    assert outcome.succeeded, outcome.exit_description
    return outcome


async def test_module_hook_patches_config_values_and_values(tmp_path: Path) -> None:
    outcome = await ran(
        tmp_path,
        """
        a=$(jq .module.a "$VALUES_PATH")
        jq -e '.module.b == "should-be-deleted"' "$CONFIG_VALUES_PATH"
        echo '[{"op": "add", "path": "/module/a", "value": 2}, {"op": "remove", "path": "/module/b"}]' \\
          >"$CONFIG_VALUES_JSON_PATCH_PATH"
        echo '{"op": "add", "path": "/module/c", "value": [3]}' >>"$CONFIG_VALUES_JSON_PATCH_PATH"
        echo '{"op": "add", "path": "/module/a", "value": '$((a / 13))'} {"op": "add", "path": "/module/c", "value": "10"}' \\
          >"$VALUES_JSON_PATCH_PATH"
        """,
    )
    configured = apply_values_patch(CONFIG_VALUES, outcome.config_values_patch, root="module")
    assert configured["module"] == {"a": 2, "c": [3]}
    patched = apply_values_patch(VALUES, outcome.values_patch, root="module")
    assert patched == {"global": {"z": 1}, "module": {"a": 9, "c": "10", "x": 10}}
    stored = compacted((), outcome.values_patch, VALUES)
    assert reapplied(VALUES, stored) == patched
    # With other settings, patched values stay patched, and all other values are new.
    settings: JsonObject = {"global": {}, "module": {"a": 1, "x": 11}}
    assert reapplied(settings, stored)["module"] == {"a": 9, "c": "10", "x": 11}


MODULE_HOOK = """\
#!/usr/bin/env bash
if [[ "${{1:-}}" == --config ]]; then echo '{{"configVersion": "v1", "{binding}": {order}}}'; exit; fi
echo '{{"op": "add", "path": "/module/{binding}", "value": "{value}"}}' >"$VALUES_JSON_PATCH_PATH"
"""
CHART = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: out}
data: {before: '{{ .Values.module.beforeHelm }}', after: '{{ .Values.module.afterHelm | default "not yet" }}'}
"""


@pytest.mark.slow
async def test_module_run_ends_with_the_values_its_hooks_wrote(tmp_path: Path) -> None:
    """If two hooks of one binding write the same value, the hook with the greater order wins, because it runs later."""
    folder = tmp_path / "modules" / "000-module"
    hooks = {
        "01-last.sh": MODULE_HOOK.format(binding="beforeHelm", order=20, value="value-from-before-helm-20"),
        "02-first.sh": MODULE_HOOK.format(binding="beforeHelm", order=1, value="value-from-before-helm-1"),
        "03-after.sh": MODULE_HOOK.format(binding="afterHelm", order=1, value="value-from-after-helm"),
    }
    write(folder, {"templates/out.yaml": CHART, **{f"hooks/{name}": text for name, text in hooks.items()}})
    for name in hooks:
        (folder / "hooks" / name).chmod(0o755)
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("module", package="000-module", version="0.0.0")
        await world.until_state("", "module", "Ready")
        values = world.runtime.instances["module"].configuration.values
        assert values == {"beforeHelm": "value-from-before-helm-20", "afterHelm": "value-from-after-helm"}
        # The change by the afterHelm hook has caused another run of the chart.
        out = await world.config_map(SYSTEM_NAMESPACE, "out")
        assert find_object(out, "data") == {"before": "value-from-before-helm-20", "after": "value-from-after-helm"}


STREAMS: dict[str, list[JsonValue]] = {
    '{"op":"add","path":"/module/a","value":1}': [1],
    '[{"op":"add","path":"/module/a","value":1}]': [1],
    '{"op":"add","path":"/module/a","value":1}{"op":"add","path":"/module/a","value":2}': [1, 2],
    '[{"op":"add","path":"/module/a","value":1},{"op":"add","path":"/module/a","value":2}]\n'
    '{"op":"add","path":"/module/a","value":3}\n\n[{"op":"add","path":"/module/a","value":4}]': [1, 2, 3, 4],
    "[]": [],
    "": [],
}


@pytest.mark.parametrize("text", STREAMS)
def test_a_patch_is_a_stream_of_operations_and_lists_of_them(text: str) -> None:
    patch = read_values_patch(text.encode(), hook="h", file=VALUES_PATCH)
    assert [operation["value"] for operation in patch if isinstance(operation, dict)] == STREAMS[text]


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> JsonObject:
    return {"op": "remove", "path": path}


REFUSED: dict[str, tuple[bool, Sequence[JsonValue]]] = {
    "another module": (False, [add("/other/a", 1)]),
    "global values, by a module": (False, [add("/global/a", 1)]),
    "the spelling of the folder": (False, [add("/module-name/a", 1)]),
    "a flag, by a module": (False, [add("/moduleEnabled", True)]),
    "removal of a missing value": (False, [remove("/module/none")]),
    "a member of a missing value": (False, [add("/module/none/deeper", 1)]),
    "a module, by a global hook": (True, [add("/module/a", 1)]),
    "a flag that is not a boolean": (True, [add("/moduleEnabled", "perhaps")]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_or_forbidden_patch_paths_are_refused(case: str) -> None:
    of_all, patch = REFUSED[case]
    with pytest.raises(ValuesPatchError):
        apply_values_patch({"global": {}, "module": {}}, patch, root="global" if of_all else "module", flags=of_all)


@pytest.mark.parametrize("flag", [True, False, "true", "false"])
def test_global_hook_patches_global_values_and_enables_modules(flag: JsonValue) -> None:
    patched = apply_values_patch(
        {"global": {"a": 1}}, [add("/global/b", 2), add("/moduleNameEnabled", flag)], root="global", flags=True
    )
    assert patched == {"global": {"a": 1, "b": 2}, "moduleNameEnabled": flag}


def test_only_the_last_operation_on_a_path_is_stored() -> None:
    """The patches of three runs are those of the example in the hook contract."""
    values: JsonObject = {"module": {}}
    stored: tuple[JsonValue, ...] = ()
    kept: list[tuple[JsonValue, ...]] = []
    for patch in (
        [add("/module/a", {}), add("/module/a/k", 1)],
        [remove("/module/a")],
        [add("/module/a", []), add("/module/a/0", "x")],
    ):
        stored = compacted(stored, patch, values)
        values = apply_values_patch(values, patch, root="module")
        kept.append(stored)
    assert kept == [
        (add("/module/a", {}), add("/module/a/k", 1)),
        (remove("/module/a"),),
        (add("/module/a", []), add("/module/a/0", "x")),
    ]
    assert reapplied({"module": {}}, stored) == values == {"module": {"a": ["x"]}}
    assert reapplied({"module": {}}, (remove("/module/a"),)) == {"module": {}}
