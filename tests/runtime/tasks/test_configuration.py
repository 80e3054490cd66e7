"""Settings in the format of an older version. They are converted before they are compared with other settings, and before
scripts and hooks get them. Values that come from Secrets stay hidden.
"""

import dataclasses
import json
import logging
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.packages.support.real_jq import RealJq
from tests.runtime.core.test_validate import ask
from tests.runtime.support.world import SOON, World, lose_repository, open_ground, open_world
from tests.runtime.tasks.test_crd_tasks import module
from tests.runtime.tasks.test_hook_runs import bash, hooked
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.hooks.watching.filters import FilterError, Filters
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.errors import ConversionError
from wharfinger.runtime.inspector import InvalidSettings, ValidSettings
from wharfinger.runtime.resources.resources import (
    APPLICATION,
    CONFIG_MAP,
    IGNORE_DEPENDENTS,
    MODULE,
    SKIP_DELETE_HOOKS,
)
from wharfinger.runtime.tasks.configuration import comparable_settings

SIZE_1 = "type: object\nproperties:\n  size: {type: integer, x-deckhouse-immutable: true}\n"
SIZE_2 = "x-config-version: 2\ntype: object\nproperties:\n  size: {type: string, x-deckhouse-immutable: true}\n"
TO_GI = """version: 2\nconversions: ['.size = (.size|tostring) + "Gi"']\n"""
TEXT_2 = "x-config-version: 2\ntype: object\nproperties:\n  text: {type: string}\n"
TO_TEXT = "version: 2\nconversions: [.text = .message | del(.message)]\n"
TEXT = {"openapi/settings.yaml": TEXT_2, "openapi/conversions/v2.yaml": TO_TEXT}
OF_1: JsonObject = {"settingsVersion": 1}
NEEDS_WEB = (
    "apiVersion: v1\ntype: Application\nname: hooked\nversion: 1.0.0\n"
    "requirements: {modules: {mandatory: [{name: web, constraint: '>=1.0'}]}}\n"
)
VALUES_WITH_ORPHANS = (
    "x-extend: {schema: settings.yaml}\ntype: object\nproperties:\n  seen: {type: integer, default: 0}\n"
    "  orphanResources: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
)


async def push(world: World, version: str, files: dict[str, str], hooks: dict[str, str] | None = None) -> None:
    """Push a version of the package ``hooked`` with these files and hooks."""
    folder = hooked(world.folder / f"hooked-{version}", hooks or {}, files=files)
    package = folder / "package.yaml"
    package.write_text(package.read_text().replace("1.0.0", version))
    await world.push_folder(folder, "hooked", version)


def telling(note: Path, binding: str, *, what: str = "$CONFIG_VALUES_PATH") -> str:
    """Return a hook that appends one line to the file ``note`` at each run: the settings that it gets."""
    return bash(f"{{configVersion: v1, {binding}: 1}}", f'jq -c .hooked "{what}" >>{note}')


def seen(note: Path) -> list[JsonValue]:
    return [json.loads(line) for line in note.read_text().splitlines()]


# --- earlier configurations ------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_converted_immutable_setting_counts_as_unchanged(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await push(world, "1.0.0", {"openapi/settings.yaml": SIZE_1})
            await push(world, "2.0.0", {"openapi/settings.yaml": SIZE_2, "openapi/conversions/v2.yaml": TO_GI})
            await world.create("prod", "app", package="hooked", settings={"size": 10}, more=OF_1)
            await world.until_state("prod", "app", "Ready")
            await world.change("prod", "app", {"packageVersion": "2.0.0"})
            await world.until_state("prod", "app", "Ready")
            assert isinstance(await ask(world, {"size": "10Gi"}), ValidSettings)
            assert isinstance(await ask(world, {"size": 11}, 1), InvalidSettings)
        async with ground.open_world() as world:
            await world.until_state("prod", "app", "Ready")
            await world.change("prod", "app", {"settings": {"size": 11}})
            await world.until("prod", "app", has_reason("SettingsInvalid"))
            await world.change("prod", "app", {"settings": {"size": "10Gi"}, "settingsVersion": 2})
            await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_a_change_allowed_by_one_version_is_valid_in_the_next(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        for version, schema in (
            ("1.0.0", SIZE_1),
            ("2.0.0", SIZE_1.replace(", x-deckhouse-immutable: true", "")),
            ("3.0.0", SIZE_1),
        ):
            await push(world, version, {"openapi/settings.yaml": schema})
        await world.create("prod", "app", package="hooked", settings={"size": 10})
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"packageVersion": "2.0.0", "settings": {"size": 20}})
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"packageVersion": "3.0.0"})
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"settings": {"size": 30}})
        await world.until("prod", "app", has_reason("SettingsInvalid"))


@pytest.mark.slow
async def test_values_are_compared_only_within_the_same_definition(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        for version, size in (("1.0.0", "{type: integer, default: 10"), ("2.0.0", "{type: string, default: 10Gi")):
            values = (
                "x-extend: {schema: settings.yaml}\ntype: object\nproperties:\n  seen: {type: integer, default: 0}\n"
                f"  size: {size}, x-deckhouse-immutable: true}}\n"
                "  mode: {type: string, x-deckhouse-immutable: true}\n"
            )
            await push(world, version, {"openapi/values.yaml": values})
        await world.create("prod", "app", package="hooked", settings={"mode": "a"})
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"packageVersion": "2.0.0"})
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"settings": {"mode": "b"}})
        refused = await world.until("prod", "app", has_reason("SettingsInvalid"))
        assert "values: mode" in find_str(refused, "status", "summary", "message")


def definition(folder: Path, files: dict[str, str]) -> Definition:
    return read_definition(hooked(folder, {}, files=files), name="hooked", version="1.0.0")


async def test_settings_without_a_conversion_are_not_compared(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    two = definition(tmp_path / "two", TEXT)
    cases: list[tuple[JsonObject | None, int, JsonObject | None]] = [
        (None, 1, None),
        ({"message": "hi"}, 0, None),  # recorded by a daemon that did not record versions yet
        ({"message": "hi"}, 1, {"text": "hi"}),
        ({"text": "hi"}, 2, {"text": "hi"}),
        ({"words": "hi"}, 3, None),  # settings of a version that was withdrawn
        ({}, 1, {}),
    ]
    for settings, version, wanted in cases:
        assert await comparable_settings(two, RealJq(), settings, version) == wanted
    assert not caplog.records

    failing = definition(
        tmp_path / "failing", {**TEXT, "openapi/conversions/v2.yaml": "{version: 2, conversions: ['1']}"}
    )
    assert await comparable_settings(failing, RealJq(), {"message": "hi"}, 1) is None
    assert (
        "hooked: the earlier settings cannot be compared with the new ones: settings cannot be converted" in caplog.text
    )
    with pytest.raises(ConversionError, match="worker died"):
        await comparable_settings(two, RealJq(dying=set(two.conversions.conversions[0].programs)), {"message": "hi"}, 1)


# --- scripts and hooks ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_the_enabled_script_sees_settings_of_the_newest_version(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = (
        f'#!/bin/bash\njq -c "[.mod.text, .mod.message]" $VALUES_PATH $CONFIG_VALUES_PATH >>{note}\n'
        "echo true >$MODULE_ENABLED_RESULT\n"
    )
    files = {
        "module.yaml": "name: mod\nversion: 1.0.0\n",
        "enabled": script,
        "Chart.yaml": "name: mod\nversion: 1.0.0\napiVersion: v2\n",
        "openapi/config-values.yaml": TEXT_2,
        "openapi/conversions/v2.yaml": TO_TEXT,
        "openapi/values.yaml": "x-extend: {schema: config-values.yaml}\ntype: object\n",
        "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\n",
    }
    folder = write(tmp_path / "mod", files)
    (folder / "enabled").chmod(0o755)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "mod", "1.0.0")
        await world.create_module("mod", spec={"settings": {"message": "hi"}, **OF_1})
        await world.until_state("", "mod", "Ready")
        assert set(note.read_text().splitlines()) == {'["hi",null]'}
        await world.change("", "mod", {"settingsVersion": 7})
        await world.until("", "mod", has_reason("SettingsInvalid"))
        # a script that gives no answer does not disable the module
        assert await world.config_map("wharfinger-system", "out") is not None


@pytest.mark.slow
async def test_hooks_of_a_removal_after_a_restart_see_converted_settings(tmp_path: Path) -> None:
    note = tmp_path / "note"
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await push(world, "1.0.0", TEXT, {"a.sh": telling(note, "beforeDeleteHelm")})
            await world.create("prod", "app", package="hooked", settings={"message": "hi"}, more=OF_1)
            await world.until_state("prod", "app", "Ready")
        await ground.client.delete(ObjectKey(APPLICATION, "prod", "app"))
        async with ground.open_world() as world:
            await world.until_gone("prod", "app")
        assert seen(note) == [{"text": "hi"}]


@pytest.mark.slow
async def test_a_package_without_an_adopted_state_is_removed_with_its_settings(tmp_path: Path) -> None:
    """After a restart, the repository is missing, so the daemon adopts no desired state of the Application. Then the
    Application is deleted.

    The beforeDeleteHelm hook still gets the converted settings of the deleted Application.
    """
    note = tmp_path / "note"
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository("other")
            await push(world, "1.0.0", TEXT, {"a.sh": telling(note, "beforeDeleteHelm")})
            await world.create(
                "prod", "app", package="hooked", settings={"message": "hi"}, more=OF_1, repository="other"
            )
            await world.until_state("prod", "app", "Ready")
            await lose_repository(ground.client, "other")
        async with ground.open_world() as world:
            await world.until("prod", "app", has_reason("RepositoryNotFound"))
            await world.delete("prod", "app")
            await world.until_gone("prod", "app")
        assert seen(note) == [{"text": "hi"}]


@pytest.mark.slow
async def test_a_package_waiting_since_a_restart_is_removed_with_its_orphans(tmp_path: Path) -> None:
    note = tmp_path / "note"
    files = {
        **TEXT,
        "package.yaml": NEEDS_WEB,
        "values.yaml": "orphanResources: [{kind: ConfigMap, version: v1}]\n",
        "openapi/values.yaml": VALUES_WITH_ORPHANS,
    }
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await world.push("web", "1.0.0")
            await push(world, "1.0.0", files, {"a.sh": telling(note, "afterDeleteHelm", what="$VALUES_PATH")})
            await world.create_module("web")
            await world.until_state("", "web", "Ready")
            await world.create("prod", "app", package="hooked", settings={"message": "hi"}, more=OF_1)
            await world.until_state("prod", "app", "Ready")
            metadata: JsonObject = {
                "name": "orphan",
                "namespace": "prod",
                "labels": {"app.kubernetes.io/instance": "app"},
            }
            await world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            await world.annotate("", "web", IGNORE_DEPENDENTS, "true")
            await world.change("", "web", {"enabled": False})
            await world.until_state("prod", "app", "Suspended")
        async with ground.open_world() as world:
            await world.until_state("prod", "app", "Suspended")
            await world.runtime.queues.wait_idle("prod.app")
            await world.delete("prod", "app")
            await world.until_gone("prod", "app")
        (values,) = seen(note)
        assert find_str(values, "text") == "hi"
        with pytest.raises(NotFoundError):
            await ground.client.get(ObjectKey(CONFIG_MAP, "prod", "orphan"))


@pytest.mark.slow
async def test_a_package_disabled_at_a_restart_is_uninstalled_with_its_settings(tmp_path: Path) -> None:
    """While no daemon runs, the Module is disabled, and its immutable setting is changed.

    The new settings are not validated. They neither block the uninstall, nor count as former settings when the Module is enabled
    again.
    """
    note = tmp_path / "note"
    hook = bash("{configVersion: v1, beforeDeleteHelm: 1}", f'jq -c .harbour "$CONFIG_VALUES_PATH" >>{note}')
    size: JsonObject = {"settings": {"size": 10}, **OF_1}
    folder = module(
        tmp_path,
        "harbour",
        {"openapi/settings.yaml": SIZE_2, "openapi/conversions/v2.yaml": TO_GI},
        {"a.sh": hook},
    )
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await world.push_folder(folder, "harbour", "1.0.0")
            await world.create_module("harbour", spec=size)
            await world.until_state("", "harbour", "Ready")
        changed: JsonObject = {"spec": {"enabled": False, "settings": {"size": 11}}}
        await ground.client.merge_patch(ObjectKey(MODULE, "", "harbour"), changed)
        async with ground.open_world() as world:
            await world.until_state("", "harbour", "Disabled")
            await world.runtime.queues.wait_idle("harbour")
            assert seen(note) == [{"size": "11Gi"}]
            await world.change("", "harbour", {"enabled": True, "settings": {"size": 10}})
            await world.until_state("", "harbour", "Ready")


# --- settings of removals ----------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Dying:
    """A runner of jq filters whose worker process seems to die: one call of `apply` fails for each entry of ``times``."""

    filters: Filters
    times: list[bool]

    def of(self, owner: str) -> "Dying":
        return Dying(self.filters.of(owner), self.times)

    async def check(self, program: str) -> None:
        await self.filters.check(program)

    async def apply(self, program: str, value: JsonValue) -> JsonValue:
        if self.times:
            self.times.pop()
            raise FilterError(program, "its worker died", transient=True)
        return await self.filters.apply(program, value)

    async def apply_text(self, program: str, text: bytes) -> bytes:
        return await self.filters.apply_text(program, text)


@pytest.mark.slow
async def test_a_dying_worker_does_not_make_a_removal_skip_hooks(tmp_path: Path) -> None:
    note, dying = tmp_path / "note", list[bool]()
    async with open_ground(tmp_path) as given:
        ground = dataclasses.replace(given, filters=Dying(given.filters, dying), backoff=SOON)
        async with ground.open_world() as world:
            await world.repository()
            await push(world, "1.0.0", TEXT, {"a.sh": telling(note, "beforeDeleteHelm")})
            await world.create("prod", "app", package="hooked", settings={"message": "hi"}, more=OF_1)
            await world.until_state("prod", "app", "Ready")
        await ground.client.delete(ObjectKey(APPLICATION, "prod", "app"))
        dying.append(True)
        async with ground.open_world() as world:
            await world.until_gone("prod", "app")
        assert seen(note) == [{"text": "hi"}]


@pytest.mark.sampled
@pytest.mark.parametrize("skipped", [False, True])
async def test_a_package_with_unconvertible_settings_is_removed_without_hooks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, skipped: bool
) -> None:
    """There are two cases. In the first one, the settings can never be converted. In the second one, the conversion fails for
    some time, and the user requests that the hooks be skipped.
    """
    note, dying = tmp_path / "note", list[bool]()
    async with open_ground(tmp_path) as given:
        ground = dataclasses.replace(given, filters=Dying(given.filters, dying))
        async with ground.open_world() as world:
            await world.repository()
            await push(world, "1.0.0", TEXT, {"a.sh": telling(note, "beforeDeleteHelm")})
            await world.create("prod", "app", package="hooked", settings={"message": "hi"}, more=OF_1)
            await world.until_state("prod", "app", "Ready")
            if skipped:
                dying += [True] * 1000
                await world.annotate("prod", "app", SKIP_DELETE_HOOKS, "yes")
            else:
                await world.change("prod", "app", {"settingsVersion": 7})
        await ground.client.delete(ObjectKey(APPLICATION, "prod", "app"))
        with caplog.at_level(logging.WARNING):
            async with ground.open_world() as world:
                await world.until_gone("prod", "app")
        assert not note.exists()
        assert "the removal continues without the package's hooks" in caplog.text
        with pytest.raises(NotFoundError):
            await ground.client.get(ObjectKey(CONFIG_MAP, "prod", "out"))


# --- secrets -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_values_converted_from_secrets_are_hidden(tmp_path: Path) -> None:
    schema = "x-config-version: 2\ntype: object\nproperties:\n" + "".join(
        f"  {name}: {{type: string}}\n" for name in ("who", "opens", "pin", "mode")
    )
    taking_apart = (
        '{version: 2, conversions: [\'.who = (.login|split(":")[0]) | .opens = (.login|split(":")[1]) '
        "| .pin = .code | del(.login, .code)']}"
    )
    hook = bash("{configVersion: v1, beforeHelm: 1}", 'jq -r .hooked.opens "$VALUES_PATH"; exit 1')
    files = {"openapi/settings.yaml": schema, "openapi/conversions/v2.yaml": taking_apart}
    sources: list[JsonValue] = [
        {"kind": "Secret", "name": "s", "key": name, "path": name} for name in ("login", "code")
    ]
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.secret("s", login="alice:hunter2hunter2", code="73")
        await push(world, "1.0.0", files, {"a.sh": hook})
        await world.create(
            "prod", "app", package="hooked", settings={"mode": "fast"}, more={**OF_1, "settingsFrom": sources}
        )
        await world.until("prod", "app", has_reason("PackageHookFailed"))
        snapshot = world.runtime.dump_by_name("prod.app")
        assert snapshot is not None
        shown = (snapshot.settings, snapshot.values, snapshot.conditions, snapshot.hooks)
        assert not [text for text in ("hunter2hunter2", "alice", "'73'") if text in str(shown)]
        assert "fast" in str(snapshot.values)
        instance = world.runtime.instances["prod.app"]
        assert "hunter2" not in instance.masked("spec.settings: who: cannot be hunter2hunter2")
