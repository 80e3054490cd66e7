"""Secrets and ConfigMaps with a package's settings, and repositories with credentials. The controller reacts to their changes."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.registry_server import PASSWORD, USER
from tests.runtime.support.world import World, lose_repository, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked, until_data
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import CONFIG_MAP, PACKAGE_REPOSITORY, SECRET

FROM_SECRET: JsonObject = {"settingsFrom": [{"kind": "Secret", "name": "database", "key": "password", "path": "text"}]}
QUOTING = '{{ if contains "wrong" (default "" .Values.text) }}{{ fail (printf "cannot use %s" .Values.text) }}{{ end }}'
"""A template that fails and quotes a setting in its error."""


async def everything_said(world: World, name: str) -> str:
    """Return everything that the daemon shows about a package (status, snapshot, queues, scheduler), as one text."""
    inspector = RuntimeInspector(cluster="x", started=datetime.now(UTC), runtime=world.runtime)
    snapshot = await inspector.package(name)
    assert snapshot is not None
    shown = (snapshot.settings, snapshot.values, snapshot.conditions, snapshot.message, snapshot.queue, snapshot.hooks)
    obj = await world.until("prod", name.partition(".")[2], lambda _obj: True)
    rendered = await inspector.render(name)
    problem = rendered.problem if rendered is not None else ""
    return str((obj["status"], shown, await inspector.queues(), await inspector.scheduler(), problem))


@pytest.mark.slow
async def test_creating_and_changing_a_settings_secret_reconciles_the_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", more=FROM_SECRET)
        missing = await world.until("prod", "shop", has_reason("SettingsSourceMissing"))
        assert find_str(missing, "status", "summary", "state") == "Failed"
        assert "Secret prod/database does not exist" in find_str(missing, "status", "summary", "message")
        assert world.downloads == []
        await world.secret("database", password="hunter-one")
        await world.until_state("prod", "shop", "Ready")
        await until_data(world, "shop", "text", "hunter-one")
        downloads = len(world.downloads)
        await world.secret("database", password="hunter-two")
        await until_data(world, "shop", "text", "hunter-two")
        assert len(world.downloads) == downloads
        await world.until_state("prod", "shop", "Ready")
        said = await everything_said(world, "prod.shop")
        assert "hunter" not in said


@pytest.mark.slow
async def test_secret_settings_are_masked_even_if_a_chart_quotes_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="wharfinger")
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/quoting.yaml": QUOTING})
        await world.repository()
        await world.secret("database", password="wrong-hunter")
        await world.create("prod", "shop", more=FROM_SECRET)
        failed = await world.until("prod", "shop", has_reason("RenderFailed"))
        assert "cannot use" in find_str(failed, "status", "summary", "message")
        assert "wrong-hunter" not in await everything_said(world, "prod.shop")
        await world.secret("database", password="right-hunter")
        await world.until_state("prod", "shop", "Ready")
    assert "cannot use" in caplog.text
    assert "hunter" not in caplog.text


async def test_an_invalid_settings_config_map_is_reported_and_its_correction_noticed(tmp_path: Path) -> None:
    def defaults(text: str) -> JsonObject:
        metadata: JsonObject = {"name": "defaults", "namespace": "prod"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"settings.yaml": text}}

    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.client.create(defaults("text: ["))
        await world.create("prod", "shop", more={"settingsFrom": [{"kind": "ConfigMap", "name": "defaults"}]})
        failed = await world.until("prod", "shop", has_reason("SettingsSourceMissing"))
        assert "ConfigMap prod/defaults: settings.yaml" in find_str(failed, "status", "summary", "message")
        await world.client.merge_patch(
            ObjectKey(CONFIG_MAP, "prod", "defaults"), {"data": {"settings.yaml": "text: a"}}
        )
        await world.until_state("prod", "shop", "Ready")
        await until_data(world, "shop", "text", "a")


@pytest.mark.slow
async def test_a_package_stays_installed_if_its_settings_secret_is_deleted(tmp_path: Path) -> None:
    """The package stays installed even after a restart, and its status still reports the installed version."""
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await world.secret("database", password="hunter-one")
            await world.create("prod", "shop", more=FROM_SECRET)
            await world.until_state("prod", "shop", "Ready")
            await world.client.delete(ObjectKey(SECRET, "prod", "database"))
            await world.until("prod", "shop", has_reason("SettingsSourceMissing"))
        async with ground.open_world() as world:
            # The earlier process has written the same status. Only a new generation shows that this process has written it.
            await world.change("prod", "shop", {"suspend": False})
            blocked = await world.until_state("prod", "shop", "Degraded")
            assert find_str(blocked, "status", "currentVersion", "version") == "1.0.0"
            assert find_str(world.condition(blocked, "Installed"), "status") == "True"
            await world.secret("database", password="hunter-two")
            await world.until_state("prod", "shop", "Ready")
            await until_data(world, "shop", "text", "hunter-two")
            assert len(world.downloads) == 1


async def test_a_missing_or_wrong_registry_password_is_reported_until_corrected(tmp_path: Path) -> None:
    """A missing Secret and a wrong password are reported with different reasons. Once the Secret is correct, the package is
    Ready.
    """
    async with open_world(tmp_path, with_password=True) as world:
        await world.push("web", "1.0.0")
        await world.repository(credentials="login")
        await world.create("prod", "shop")
        missing = await world.until("prod", "shop", has_reason("RepositoryInvalid"))
        assert "Secret prod/login does not exist" in find_str(missing, "status", "summary", "message")
        await world.secret("login", username=USER, password="wrong-" + PASSWORD)
        refused = await world.until("prod", "shop", has_reason("RegistryRefused"))
        message = find_str(refused, "status", "summary", "message")
        assert str(world.address) in message
        assert "\n" not in message
        await world.secret("login", username=USER, password=PASSWORD)
        await world.until_state("prod", "shop", "Ready")
        assert PASSWORD not in await everything_said(world, "prod.shop")


async def test_a_new_registry_password_does_not_affect_installed_packages(tmp_path: Path) -> None:
    async with open_world(tmp_path, with_password=True) as world:
        await world.push("web", "1.0.0")
        await world.repository(credentials="login")
        await world.secret("login", username=USER, password=PASSWORD)
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        begun = world.runtime.instances["prod.shop"].desired.begun
        source = world.runtime.instances["prod.shop"].desired.source
        await world.secret("login", username=USER, password="rotated")
        with trio.fail_after(300):
            while world.runtime.instances["prod.shop"].desired.source == source:
                await trio.testing.wait_all_tasks_blocked(0.005)
        assert world.runtime.instances["prod.shop"].desired.begun == begun
        await world.until_state("prod", "shop", "Ready")


async def test_a_registry_secret_without_a_login_is_reported(tmp_path: Path) -> None:
    async with open_world(tmp_path, with_password=True) as world:
        await world.push("web", "1.0.0")
        await world.repository(credentials="login")
        await world.secret("login", token="x")
        await world.create("prod", "shop")
        refused = await world.until("prod", "shop", has_reason("RepositoryInvalid"))
        assert "has no login for 127.0.0.1" in find_str(refused, "status", "summary", "message")
        # A repository without ``credentialsSecret`` ignores the Secret, so the registry refuses the request.
        await world.client.merge_patch(
            ObjectKey(PACKAGE_REPOSITORY, "", "default"), {"spec": {"registry": {"credentialsSecret": None}}}
        )
        await world.until("prod", "shop", has_reason("RegistryRefused"))


STOPS: dict[str, JsonObject] = {
    "RepositoryNotFound": {},
    "SettingsSourceMissing": {"settingsFrom": [{"kind": "Secret", "name": "database", "key": "mode", "path": "mode"}]},
}
"""For each reason that prevents a reconciliation: the fields that the spec needs, so that `take_away` can cause this reason."""


async def take_away(world: World, reason: str) -> None:
    """Remove the repository from which the package was installed, or the Secret with its settings."""
    if reason == "RepositoryNotFound":
        await lose_repository(world.client)
    else:
        await world.client.delete(ObjectKey(SECRET, "prod", "database"))


@pytest.mark.sampled
@pytest.mark.parametrize("reason", STOPS)
async def test_a_package_is_suspended_even_if_its_spec_has_other_problems(tmp_path: Path, reason: str) -> None:
    hook = bash("{configVersion: v1, schedule: [{name: never, crontab: '0 0 1 1 *'}]}", ":")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
        await world.secret("database", mode="fast")
        await world.create("prod", "app", package="hooked", more=STOPS[reason])
        await world.until_state("prod", "app", "Ready")
        assert "prod.app" in world.runtime.tools.hook_services.started()
        await take_away(world, reason)
        await world.until("prod", "app", has_reason(reason))
        await world.change("prod", "app", {"suspend": True})
        await until_observed(world, "prod", "app")
        await world.runtime.queues.wait_idle("prod.app")
        assert "prod.app" not in world.runtime.tools.hook_services.started()
        assert await world.config_map("prod", "out") is not None


async def test_a_disabled_module_is_uninstalled_even_without_its_repository(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        await world.until_state("", "web", "Ready")
        await take_away(world, "RepositoryNotFound")
        await world.until("", "web", has_reason("RepositoryNotFound"))
        await world.change("", "web", {"enabled": False})
        await world.until_no_object(ObjectKey(CONFIG_MAP, SYSTEM_NAMESPACE, "web"))


async def until_observed(world: World, namespace: str, name: str) -> None:
    """Wait until the status belongs to the newest generation of the spec."""
    generation = world.generations[(namespace, name)]
    await world.until(namespace, name, lambda obj: find_int(obj, "status", "observedGeneration") >= generation)
