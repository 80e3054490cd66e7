"""Settings are converted, validated by rules, and compared with the former settings. Some settings cause warnings."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.support.world import open_ground, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked, until_data
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.hooks.watching.jq_pool import JqLimits, open_jq_pool

pytestmark = pytest.mark.unmeasured

SETTINGS = """\
type: object
x-config-version: 2
x-kubernetes-validations:
  - {rule: "!has(self.low) || !has(self.high) || self.low <= self.high", message: low is more than high}
properties:
  mode: {type: string}
  old: {type: string, deprecated: true, description: use mode}
  place: {type: string, x-deckhouse-immutable: true}
  low: {type: integer}
  high: {type: integer}
"""
VALUES = """\
x-extend: {schema: settings.yaml}
type: object
x-deckhouse-validations:
  - {expression: "self.seen < 3", message: seen too much}
properties:
  seen: {type: integer, default: 0}
"""
CONVERSION = "version: 2\nconversions: ['.mode = .kind | del(.kind)']\n"
FILES = {
    "openapi/settings.yaml": SETTINGS,
    "openapi/values.yaml": VALUES,
    "openapi/conversions/v2.yaml": CONVERSION,
    "templates/out.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\n"
        "data: {mode: {{ .Values.mode | quote }}, seen: {{ .Values.seen | quote }}}\n"
    ),
}


@pytest.mark.slow
async def test_settings_of_an_older_version_are_converted_with_a_warning(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {}, files=FILES), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked", settings={"kind": "fast"}, more={"settingsVersion": 1})
        ready = await world.until_state("prod", "app", "Ready")
        await until_data(world, "out", "mode", "fast")
        assert "version 1 of the schema, and are converted to version 2" in str(find(ready, "status", "warnings"))
        await world.change(
            "prod", "app", {"settingsVersion": 2, "settings": {"kind": None, "mode": "slow", "old": "x"}}
        )
        newer = await world.until_state("prod", "app", "Ready")
        await until_data(world, "out", "mode", "slow")
        assert "spec.settings.old" in str(find(newer, "status", "warnings"))
        assert "converted" not in str(find(newer, "status", "warnings"))
        await world.change("prod", "app", {"settingsVersion": 7})
        await world.until("prod", "app", has_reason("SettingsInvalid"))
        await until_data(world, "out", "mode", "slow")


@pytest.mark.slow
async def test_rules_and_immutable_settings_are_enforced_even_after_a_restart(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await world.push_folder(hooked(tmp_path / "hooked", {}, files=FILES), "hooked", "1.0.0")
            settings: JsonObject = {"place": "north", "low": 1, "high": 2}
            await world.create("prod", "app", package="hooked", settings=settings)
            await world.until_state("prod", "app", "Ready")
            await world.change("prod", "app", {"settings": {"low": 3}})
            refused = await world.until("prod", "app", has_reason("SettingsInvalid"))
            assert "low is more than high" in find_str(refused, "status", "summary", "message")
            await world.change("prod", "app", {"settings": {"low": 2}})
            await world.until_state("prod", "app", "Ready")
        async with ground.open_world() as world:
            await world.until_state("prod", "app", "Ready")
            await world.change("prod", "app", {"settings": {"place": "south"}})
            refused = await world.until("prod", "app", has_reason("SettingsInvalid"))
            assert "place" in find_str(refused, "status", "summary", "message")
            await world.change("prod", "app", {"settings": {"place": "north"}})
            await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_values_patched_by_hooks_are_validated_by_rules(tmp_path: Path) -> None:
    hook = bash(
        "{configVersion: v1, onStartup: 1}",
        'echo \'{"op":"add","path":"/hooked/seen","value":5}\' >"$VALUES_JSON_PATCH_PATH"',
    )
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}, files=FILES), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until("prod", "app", has_reason("PackageHookFailed"))
        assert "seen too much" in find_str(failed, "status", "summary", "message")


async def test_a_package_with_an_invalid_rule_is_refused(tmp_path: Path) -> None:
    broken = {**FILES, "openapi/settings.yaml": SETTINGS.replace("self.low <= self.high", "self.nothing(")}
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {}, files=broken), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until("prod", "app", has_reason("ArtifactInvalid"))
        assert "settings schema: x-kubernetes-validations[0]: does not compile" in find_str(
            failed, "status", "summary", "message"
        )


@pytest.mark.slow
async def test_an_immutable_default_cannot_change_until_a_reset(tmp_path: Path) -> None:
    def schema(kind: str) -> dict[str, str]:
        text = f"type: object\nproperties:\n  disk: {{type: string, default: {kind}, x-deckhouse-immutable: true}}\n"
        return {**FILES, "openapi/settings.yaml": text, "openapi/conversions/v2.yaml": ""}

    async with open_world(tmp_path) as world:
        await world.repository()
        for version, kind in (("1.0.0", "ssd"), ("2.0.0", "hdd")):
            files = {name: text for name, text in schema(kind).items() if text}
            files["package.yaml"] = f"apiVersion: v1\ntype: Application\nname: hooked\nversion: {version}\n"
            await world.push_folder(hooked(tmp_path / version, {}, files=files), "hooked", version)
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"packageVersion": "2.0.0"})
        refused = await world.until("prod", "app", has_reason("SettingsInvalid"))
        assert "disk" in find_str(refused, "status", "summary", "message")
        assert "reset-requested-at" in find_str(refused, "status", "summary", "tip")
        await world.annotate("prod", "app", "wharfinger.dev/reset-requested-at", "now")
        await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_a_package_with_inconvertible_settings_can_be_removed(tmp_path: Path) -> None:
    endless = {**FILES, "openapi/conversions/v2.yaml": "version: 2\nconversions: ['def f: f; f']\n"}
    async with (
        open_jq_pool(None, limits=JqLimits(seconds=1.0)) as filters,
        open_ground(tmp_path) as ground,
        replace(ground, filters=filters).open_world() as world,
    ):
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {}, files=endless), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked", settings={"kind": "fast"}, more={"settingsVersion": 1})
        await world.until("prod", "app", has_reason("SettingsInvalid"))
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
