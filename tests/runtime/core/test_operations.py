"""Operations that users request: suspending and resuming, maintenance, force and reset."""

import dataclasses
import os
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.core.test_runtime import SLOW_CONFIG
from tests.runtime.support.killing import held, held_hook
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_crd_tasks import module
from tests.runtime.tasks.test_hook_runs import bash, hooked
from tests.runtime.tasks.test_start_tasks import notes
from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.lifecycle.journal import Journal, JournalError
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.manifests import UNMANAGED_LABEL
from wharfinger.runtime.resources.resources import CONFIG_MAP

MAINTENANCE: JsonObject = {"maintenance": "NoResourceReconciliation"}


async def data_of(world: World, name: str) -> JsonObject:
    found = await world.config_map("prod", name)
    assert found is not None
    return found


@pytest.mark.slow
async def test_a_suspended_package_is_not_changed_until_it_is_resumed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "1.1.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"suspend": True})
        suspended = await world.until_state("prod", "shop", "Suspended")
        assert "spec.suspend" in find_str(suspended, "status", "summary", "message")
        assert find_str(world.condition(suspended, "Ready"), "status") == "True"
        assert find_str(world.condition(suspended, "Reconciling"), "status") == "False"
        downloads = len(world.downloads)
        await world.change("prod", "shop", {"packageVersion": "1.1.0"})
        await world.until_state("prod", "shop", "Suspended")
        await world.runtime.queues.wait_idle("prod.shop")
        assert (len(world.downloads), await world.config_map("prod", "shop") is not None) == (downloads, True)
        await world.change("prod", "shop", {"suspend": False})
        ready = await world.until_state("prod", "shop", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.1.0"


@pytest.mark.slow
async def test_a_package_created_suspended_is_not_installed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", more={"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        assert world.downloads == []
        await world.change("prod", "shop", {"suspend": None})
        await world.until_state("prod", "shop", "Ready")


async def test_suspending_interrupts_a_wait_and_stops_the_hooks(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        hook = bash("{configVersion: v1, schedule: [{name: never, crontab: '0 0 1 1 *'}]}", ":")
        slow = hooked(tmp_path / "hooked", {"a.sh": hook}, files={"templates/slow.yaml": SLOW_CONFIG})
        await world.push_folder(slow, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until("prod", "app", lambda obj: "0 of 1" in find_str(obj, "status", "summary", "message"))
        assert "prod.app" in world.runtime.tools.hook_services.started()
        await world.change("prod", "app", {"suspend": True})
        await world.until_state("prod", "app", "Suspended")
        await world.runtime.queues.wait_idle("prod.app")
        assert "prod.app" not in world.runtime.tools.hook_services.started()
        assert world.runtime.queues.dump_one("prod.app").tasks == ()
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")


@pytest.mark.slow
async def test_a_disable_during_a_suspension_takes_effect_on_resumption(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        await world.until_state("", "web", "Ready")
        await world.change("", "web", {"suspend": True})
        await world.until_state("", "web", "Suspended")
        await world.change("", "web", {"enabled": False})
        await world.runtime.queues.wait_idle("web")
        assert await world.config_map("wharfinger-system", "web") is not None
        await world.change("", "web", {"suspend": False})
        await world.until_state("", "web", "Disabled")
        assert await world.config_map("wharfinger-system", "web") is None


async def test_an_uninstall_interrupted_by_a_suspension_continues_on_resumption(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    hooks = {"a.sh": held_hook(tmp_path, "{configVersion: v1, beforeDeleteHelm: 1}", "before")}
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {}, hooks), "harbour", "1.0.0")
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Ready")
        await world.change("", "harbour", {"enabled": False})
        await trio.to_thread.run_sync(held, tmp_path)
        await world.change("", "harbour", {"suspend": True})
        await world.until_state("", "harbour", "Suspended")
        await world.runtime.queues.wait_idle("harbour")
        assert await world.config_map(SYSTEM_NAMESPACE, "out") is not None
        (tmp_path / "go").touch()
        await world.change("", "harbour", {"suspend": False})
        await world.until_no_object(ObjectKey(CONFIG_MAP, SYSTEM_NAMESPACE, "out"))
        await world.until_state("", "harbour", "Disabled")
        assert notes(tmp_path) == ["before", "before"]


@pytest.mark.slow
async def test_a_suspended_module_delays_no_other_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        early = write(
            hooked(tmp_path / "early", {}, name="early"),
            {"package.yaml": "apiVersion: v1\ntype: Module\nname: early\nversion: 1.0.0\nweight: 1\ncritical: true\n"},
        )
        await world.push_folder(early, "early", "1.0.0")
        await world.create_module("early")
        await world.until_state("", "early", "Ready")
        await world.change("", "early", {"suspend": True})
        await world.until_state("", "early", "Suspended")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_dependents_of_a_suspended_module_run_even_after_a_restart(tmp_path: Path) -> None:
    """The module itself does not run, but it counts as installed because of its release."""
    needs = "requirements: {modules: {mandatory: [{name: web, constraint: '>=1.0'}]}}\n"
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            needy = hooked(tmp_path / "needy", {}, name="needy")
            (needy / "package.yaml").write_text((needy / "package.yaml").read_text() + needs)
            await world.push_folder(needy, "needy", "1.0.0")
            await world.create_module("web")
            await world.create("prod", "app", package="needy")
            await world.until_state("prod", "app", "Ready")
            await world.change("", "web", {"suspend": True})
            await world.until_state("", "web", "Suspended")
            await world.change("prod", "app", {"settings": {"mode": "fast"}})
            await world.until_state("prod", "app", "Ready")
            downloads = len(world.downloads)
        async with ground.open_world() as world:
            # Only this process can have written a status for this generation.
            await world.change("prod", "app", {"settings": {"mode": "slow"}})
            await world.until_state("prod", "app", "Ready")
            await world.until_state("", "web", "Suspended")
            assert len(world.downloads) == downloads


@pytest.mark.slow
async def test_changes_by_users_stay_under_maintenance(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", settings={"text": "one"})
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", MAINTENANCE)
        marked = await world.until_state("prod", "shop", "Ready")
        assert find(await data_of(world, "shop"), "metadata", "labels", UNMANAGED_LABEL) == ""
        revision = find_int(marked, "status", "release", "revision")
        await world.change("prod", "shop", {"settings": {"text": "two"}})
        kept = await world.until_state("prod", "shop", "Ready")
        assert find_str(await data_of(world, "shop"), "data", "text") == "one"
        assert find_int(kept, "status", "release", "revision") == revision
        assert "nothing is applied" in str(find(kept, "status", "warnings"))
        await world.change("prod", "shop", {"maintenance": None})
        await world.until_state("prod", "shop", "Ready")
        after = await data_of(world, "shop")
        assert find_str(after, "data", "text") == "two"
        assert "nothing is applied" not in str(world.runtime.instances["prod.shop"].warnings)
        assert UNMANAGED_LABEL not in find_object(after, "metadata", "labels")


@pytest.mark.slow
async def test_the_installed_version_is_reported_under_maintenance(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "1.1.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", MAINTENANCE)
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"packageVersion": "1.1.0"})
        kept = await world.until_state("prod", "shop", "Ready")
        assert find_str(kept, "status", "currentVersion", "version") == "1.0.0"
        await world.change("prod", "shop", {"maintenance": None})
        after = await world.until_state("prod", "shop", "Ready")
        assert find_str(after, "status", "currentVersion", "version") == "1.1.0"


@pytest.mark.slow
async def test_a_forced_package_is_downloaded_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        before = await world.until_state("prod", "shop", "Ready")
        (tmp_path / "web-1.0.0").rename(tmp_path / "before")
        await world.push("web", "1.0.0", {"templates/more.yaml": "# more\n"})
        await world.annotate("prod", "shop", "wharfinger.dev/force-requested-at", "now")
        digest = find_str(before, "status", "currentVersion", "digest")
        await world.until(
            "prod",
            "shop",
            lambda obj: (
                find_str(obj, "status", "currentVersion", "digest") != digest
                and find_str(obj, "status", "summary", "state") == "Ready"
            ),
        )


@pytest.mark.slow
async def test_a_reset_runs_startup_hooks_again_without_patched_values(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    hook = bash(
        "{configVersion: v1, onStartup: 1}",
        f'echo ran >>"{notes}"\n'
        'seen=$(jq .hooked.seen "$VALUES_PATH")\n'
        'echo "{\\"op\\":\\"add\\",\\"path\\":\\"/hooked/seen\\",\\"value\\":$((seen + 1))}" >"$VALUES_JSON_PATCH_PATH"',
    )
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.request("prod", "app")
        await world.until_state("prod", "app", "Ready")
        assert notes.read_text() == "ran\n"
        await world.annotate("prod", "app", "wharfinger.dev/reset-requested-at", "now")
        with trio.fail_after(300):
            while notes.read_text() != "ran\nran\n":
                await world.runtime.queues.wait_idle("prod.app")
                await trio.lowlevel.checkpoint()
        await world.until_state("prod", "app", "Ready")
        assert find_str(await data_of(world, "out"), "data", "seen") == "1"


async def test_replicas_and_resources_can_be_overridden(tmp_path: Path) -> None:
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: front}\nspec:\n  replicas: 1\n"
        "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
        "    spec: {containers: [{name: main, image: example/a}]}\n"
    )
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/front.yaml": deployment})
        await world.repository()
        overrides: JsonObject = {
            "resourceRequests": [
                {
                    "kind": "Deployment",
                    "name": "front",
                    "replicas": 3,
                    "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}],
                },
                {"kind": "Deployment", "name": "elsewhere", "replicas": 2},
            ]
        }
        await world.create("prod", "shop", more=overrides)
        ready = await world.until_state("prod", "shop", "Ready")
        resource = await world.client.resource_type("apps/v1", "Deployment")
        live = await world.client.get(ObjectKey(resource, "prod", "front"))
        assert find_int(live, "spec", "replicas") == 3
        assert find_str(live, "spec", "template", "spec", "containers", 0, "resources", "requests", "cpu") == "100m"
        assert "Deployment elsewhere is not in the chart" in str(find(ready, "status", "warnings"))
        await world.change("prod", "shop", {"resourceRequests": None})
        plain = await world.until_state("prod", "shop", "Ready")
        assert find_int(await world.client.get(ObjectKey(resource, "prod", "front")), "spec", "replicas") == 1
        assert find(plain, "status", "warnings") is None


async def test_a_removal_during_a_suspension_deletes_everything(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        await world.until_no_object(ObjectKey(CONFIG_MAP, "prod", "shop"))


def voting(folder: Path) -> Path:
    """Write a module with an enabled script. While its setting ``slow`` is true, the module never becomes ready."""
    files = {
        "module.yaml": "name: voting\nversion: 1.0.0\n",
        "Chart.yaml": "apiVersion: v2\nname: voting\nversion: 1.0.0\n",
        "enabled": '#!/usr/bin/env bash\necho true >"$MODULE_ENABLED_RESULT"\n',
        "openapi/config-values.yaml": "type: object\nproperties: {slow: {type: boolean, default: true}}\n",
        "openapi/values.yaml": "x-extend: {schema: config-values.yaml}\ntype: object\n",
        "templates/fast.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fast}\n",
        "templates/slow.yaml": "{{ if .Values.voting.slow }}\n" + SLOW_CONFIG + "{{ end }}\n",
    }
    write(folder, files)
    (folder / "enabled").chmod(0o755)
    return folder


@pytest.mark.slow
async def test_a_vote_does_not_wait_for_a_superseded_run(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(voting(tmp_path / "voting"), "voting", "1.0.0")
        await world.create_module("voting")
        await world.until("", "voting", lambda obj: "0 of 1" in find_str(obj, "status", "summary", "message"))
        await world.change("", "voting", {"settings": {"slow": False}})
        await world.until_state("", "voting", "Ready")


@pytest.mark.slow
async def test_a_vote_does_not_wait_for_invalid_settings(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(voting(tmp_path / "voting"), "voting", "1.0.0")
        await world.create_module("voting", spec={"settings": {"slow": "nonsense"}})
        await world.until_state("", "voting", "Failed")
        await world.change("", "voting", {"settings": {"slow": False}})
        await world.until_state("", "voting", "Ready")


class Unforgetting(Journal):
    """A journal whose disk is full whenever entries are to be deleted."""

    def forget(self, package: str) -> None:
        raise JournalError(f"{package}: database or disk is full")


async def test_a_removal_completes_although_its_steps_cannot_be_deleted(tmp_path: Path) -> None:
    async with (
        open_ground(tmp_path) as ground,
        dataclasses.replace(ground, journal=Unforgetting(None)).open_world() as world,
    ):
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
