"""Validation of settings by the loaded package or by the stored one, and the answer if neither is known yet."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.packages.support.charts import CONFIG_MAP, write
from tests.runtime.support.world import World, open_ground, open_world
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.validate import NOT_KNOWN, validate_settings
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.inspector import InvalidSettings, SettingsAnswer, UnknownSettings, ValidSettings
from wharfinger.runtime.lifecycle.package_state import STATE_KEY
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import SECRET
from wharfinger.runtime.status import transitions as statuses

FILES = {
    "package.yaml": "{name: shop, version: 1.0.0, type: Application}",
    "templates/config.yaml": CONFIG_MAP,
    "openapi/settings.yaml": """
x-config-version: 2
type: object
properties:
  text: {type: string}
  class: {type: string, x-deckhouse-immutable: true}
  old: {type: string, deprecated: true}
  count: {type: integer}
x-deckhouse-validations: [{expression: "!has(self.count) || self.count < 5", message: too many}]
""",
    "openapi/conversions/v2.yaml": "{version: 2, conversions: [.text = .message | del(.message)]}",
}


async def ask(world: World, settings: JsonObject, version: int = 0, name: str = "prod.app") -> SettingsAnswer | None:
    inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
    return await inspector.validate(name, settings, version)


async def install(world: World, settings: JsonObject | None = None) -> None:
    await world.push_folder(write(world.folder / "shop", FILES), "shop", "1.0.0")
    await world.repository()
    await world.create("prod", "app", package="shop", settings=settings)
    await world.until_state("prod", "app", "Ready")


@pytest.mark.slow
async def test_settings_are_validated_by_the_loaded_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await install(world, {"class": "a", "text": "x"})

        assert await ask(world, {"class": "a", "text": "y"}) == ValidSettings("1.0.0")
        assert await ask(world, {"class": "a", "message": "y"}, 1) == ValidSettings("1.0.0")
        warned = await ask(world, {"class": "a", "old": "y"})
        assert isinstance(warned, ValidSettings)
        assert [warning.path for warning in warned.warnings] == ["old"]
        wrong: list[tuple[JsonObject, int, str]] = [
            ({"class": "a", "text": 1}, 0, "text"),
            ({"class": "a", "message": "y"}, 0, "message"),
            ({"class": "a", "message": 1}, 1, "text"),
            ({"class": "b"}, 0, "class"),
            ({"class": "a", "count": 5}, 0, ""),
            ({"class": "a"}, 9, ""),
        ]
        for settings, version, path in wrong:
            answer = await ask(world, settings, version)
            assert isinstance(answer, InvalidSettings), settings
            assert [problem.path for problem in answer.problems] == [path], settings
        assert await ask(world, {}, name="prod.nobody") is None


@pytest.mark.slow
async def test_validation_changes_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await install(world, {"text": "x"})
        instance = world.runtime.instances["prod.app"]
        before = (
            instance.configuration.settings,
            instance.configuration.values,
            instance.configuration.configured,
            instance.record,
            instance.status,
        )

        await ask(world, {"text": "y", "class": "b"})
        await ask(world, {"count": 9})

        assert (
            instance.configuration.settings,
            instance.configuration.values,
            instance.configuration.configured,
            instance.record,
            instance.status,
        ) == before


async def test_settings_of_a_package_that_was_not_downloaded_cannot_be_validated(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.create("prod", "app", package="absent")
        await world.until_state("prod", "app", "Failed")
        assert await ask(world, {"any": "thing"}) == UnknownSettings(NOT_KNOWN)


@pytest.mark.slow
async def test_settings_are_validated_by_the_stored_package_if_none_is_loaded(tmp_path: Path) -> None:
    """After a restart, the package is not loaded yet, but the record and the files of the former daemon still exist. The
    settings are validated with these.
    """
    async with open_ground(tmp_path) as ground, ground.open_world() as world:
        await install(world, {"class": "a"})
        tools = world.runtime.tools
        fresh = Instance(Package(AppId("prod", "app"), statuses.fresh(1, datetime.now(UTC))))

        assert await validate_settings(fresh, tools, {"text": "y", "class": "a"}) == ValidSettings("1.0.0")
        wrong = await validate_settings(fresh, tools, {"text": 1, "class": "b"})
        assert isinstance(wrong, InvalidSettings)
        assert [problem.path for problem in wrong.problems] == ["class", "text"]
        assert (fresh.record, fresh.files.definition, fresh.files.tree) == (None, None, None)

        other = Instance(Package(AppId("prod", "other"), fresh.status))
        assert await validate_settings(other, tools, {}) == UnknownSettings(NOT_KNOWN)


async def test_settings_of_an_unreadable_package_cannot_be_validated(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await install(world)
        instance = world.runtime.instances["prod.app"]
        assert instance.files.tree is not None
        record = await instance.recorded(world.runtime.tools)
        fresh = Instance(Package(AppId("prod", "app"), instance.status))
        broken = replace(record.state, source="somewhere a-name-that-it-does-not-have")
        record.state, before = broken, record.state
        fresh.record = record
        answer = await validate_settings(fresh, world.runtime.tools, {})
        assert isinstance(answer, UnknownSettings)
        assert "the settings cannot be checked now: package.yaml: name: shop was published as" in answer.why

        record.state, fresh.record = before, None
        secret = ObjectKey(SECRET, "prod", record.key.name)
        await world.client.merge_patch(secret, {"data": {STATE_KEY: "bm9uc2Vuc2U="}})
        answer = await validate_settings(fresh, world.runtime.tools, {})
        assert isinstance(answer, UnknownSettings)
        assert "the recorded state of prod.app cannot be read" in answer.why
