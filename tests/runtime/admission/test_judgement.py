"""Resources that are refused before they are stored, resources that are admitted with a warning, and resources that are always
admitted.
"""

from pathlib import Path

import pytest

from tests.runtime.support.dependents import application as install_application
from tests.runtime.support.dependents import mandatory, modules
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import hooked
from tests.runtime.test_settings_checks import FILES
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.admission.judgement import ADMITTED, Judge, Judgement
from wharfinger.runtime.resources.resources import APPLICATION, IGNORE_DEPENDENTS, MODULE

LONG = "a" * 54


def application(name: str = "app", /, **spec: JsonValue) -> JsonObject:
    obj: JsonObject = {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "prod"},
        "spec": {"packageName": "hooked", "packageVersion": "1.0.0"},
    }
    find_object(obj, "spec").update(spec)
    return obj


def module(name: str = "m", /, **spec: JsonValue) -> JsonObject:
    return {**application(name, **spec), "kind": "Module", "metadata": {"name": name}}


async def judged(world: World, obj: JsonObject, old: JsonObject | None = None) -> Judgement:
    return await Judge(world.runtime, [world.folder]).judge(obj, old)


async def test_unreadable_or_misnamed_resources_are_refused(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:

        async def refusal(obj: JsonObject) -> str:
            return (await judged(world, obj)).refusal

        assert await judged(world, application()) == ADMITTED
        assert "expected a name of at most 53 characters" in await refusal(application(LONG))
        assert "expected a name without a dot" in await refusal(module("a.b"))
        assert "exactly one of packageVersion, versionRange" in await refusal(application(packageVersion=""))
        assert "spec.maintenance" in await refusal(application(maintenance="nap"))
        repository: JsonObject = {"kind": "PackageRepository", "metadata": {"name": "r"}, "spec": {}}
        assert "exactly one of registry, helm, git, archive, layout and folder" in await refusal(repository)
        local: JsonObject = {**repository, "spec": {"folder": {"path": str(tmp_path / "x")}}}
        assert await judged(world, local) == ADMITTED
        elsewhere: JsonObject = {**repository, "spec": {"folder": {"path": "/etc"}}}
        assert "/etc" in await refusal(elsewhere)


async def test_a_token_file_in_an_allowed_folder_is_admitted(tmp_path: Path) -> None:
    registry: JsonObject = {"repo": "registry.example/packages", "tokenFile": {"path": str(tmp_path / "token")}}
    repository: JsonObject = {
        "kind": "PackageRepository",
        "metadata": {"name": "r"},
        "spec": {"registry": registry},
    }
    async with open_world(tmp_path) as world:
        judge = Judge(world.runtime, [], token_folders=[tmp_path])
        assert await judge.judge(repository, None) == ADMITTED
        assert "--registry-tokens" in (await judged(world, repository)).refusal


async def test_unchanged_specs_and_deleted_resources_are_admitted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        wrong = application(packageVersion="")
        assert await judged(world, {**wrong, "status": {"x": 1}}, wrong) == ADMITTED
        deleting: JsonObject = {**find_object(wrong, "metadata"), "deletionTimestamp": "2026-01-01T00:00:00Z"}
        assert await judged(world, {**wrong, "metadata": deleting}) == ADMITTED
        assert (await judged(world, wrong, application())).refusal


@pytest.mark.slow
async def test_settings_are_validated_by_the_loaded_version(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {}, files=FILES), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked", settings={"mode": "fast", "place": "here"})
        await world.until_state("prod", "app", "Ready")
        old = application(settings={"mode": "fast", "place": "here"})

        async def answer(settings: JsonObject, **spec: JsonValue) -> Judgement:
            return await judged(world, application("app", **{"settings": settings, **spec}), old)

        assert (await answer({"mode": "slow", "place": "here"})) == ADMITTED
        wrong = await answer({"mode": 1, "place": "here"})
        assert wrong.refusal.startswith("version 1.0.0 of hooked refuses these settings: spec.settings.mode: ")
        assert "low is more than high" in (await answer({"place": "here", "low": 2, "high": 1})).refusal
        assert "spec.settings.place" in (await answer({"place": "there"})).refusal
        warned = await answer({"old": "x", "place": "here"})
        assert (warned.refusal, len(warned.warnings)) == ("", 1)
        assert warned.warnings == ("spec.settings.old: is deprecated",)
        # Another version may accept them, and settings from elsewhere may complete them.
        assert (await answer({"mode": 1}, packageVersion="2.0.0")) == ADMITTED
        secret: JsonObject = {"kind": "Secret", "name": "s"}
        assert (await answer({"mode": 1}, settingsFrom=[secret])) == ADMITTED
        unmet = await answer({"place": "here"}, dependsOn=[{"kind": "Application", "name": "other"}])
        assert (unmet.refusal, len(unmet.warnings)) == ("", 1), unmet
        assert "the package is paused for now" in unmet.warnings[0]


@pytest.mark.slow
async def test_a_taken_or_moved_release_is_refused(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {}, files=FILES), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        taken = await judged(world, module("app", namespace="prod"))
        assert "already has the release app in namespace prod" in taken.refusal
        placed: JsonObject = {**module("m", namespace="a"), "status": {"release": {"namespace": "a"}}}
        moved = await judged(world, module("m", namespace="b"), placed)
        assert "the release is in a and cannot be moved" in moved.refusal


@pytest.mark.slow
async def test_a_change_that_would_break_dependents_is_admitted_with_a_warning(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ceph="")
        await install_application(world, tmp_path, "shop", mandatory("ceph", "<2.0"))
        key = ObjectKey(MODULE, "", "ceph")
        now = await world.client.get(key)

        async def warning(**spec: JsonValue) -> str:
            found = await judged(world, {**now, "spec": {**find_object(now, "spec"), **spec}}, now)
            assert found.refusal == ""
            return "; ".join(found.warnings)

        assert "the change is held back: spec.enabled: false would break prod.shop" in await warning(enabled=False)
        assert "version 2.0.0 would break prod.shop" in await warning(packageVersion="2.0.0")
        assert await warning(packageVersion="1.5.0") == await warning(suspend=True) == ""
        judge = Judge(world.runtime)
        (said,) = judge.judge_removal(now).warnings
        assert "the removal would break prod.shop" in said
        assert "wharfinger.dev/ignore-dependents=true" in said
        ignoring: JsonObject = {**find_object(now, "metadata"), "annotations": {IGNORE_DEPENDENTS: "true"}}
        assert judge.judge_removal({**now, "metadata": ignoring}) == ADMITTED
        shop = await world.client.get(ObjectKey(APPLICATION, "prod", "shop"))
        assert judge.judge_removal(shop) == ADMITTED
        assert judge.judge_removal({"kind": "PackageRepository"}) == ADMITTED
        assert judge.judge_removal({"kind": "Module"}) == ADMITTED
