"""The start of a package: hooks that run once, hooks that run at each start, and hooks that are repeated after a failure."""

import os
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked, until_data
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import SECRET
from wharfinger.runtime.tasks.event_tasks import lane_of


def noting(folder: Path, config: str, word: str) -> str:
    """Return a hook that writes a word into a file. It fails as long as a file ``fail-<word>`` exists."""
    return bash(config, f'echo {word} >>"{folder}/notes"; [ ! -e "{folder}/fail-{word}" ]')


def notes(folder: Path) -> list[str]:
    path = folder / "notes"
    return path.read_text().split() if path.exists() else []


async def again(world: World, name: str, namespace: str = "prod") -> None:
    """Request a reconciliation, and wait until it is done."""
    await world.request(namespace, name)
    await world.until_state(namespace, name, "Ready")


@pytest.mark.slow
async def test_onstartup_hooks_run_in_order_and_once_for_each_version(tmp_path: Path) -> None:
    hooks = {
        "a-last.sh": noting(tmp_path, "{configVersion: v1, onStartup: 20}", "last"),
        "b-first.sh": noting(tmp_path, "{configVersion: v1, onStartup: 10}", "first"),
    }
    folder = hooked(tmp_path / "hooked", hooks)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        assert notes(tmp_path) == ["first", "last"]
        await again(world, "app")
        assert notes(tmp_path) == ["first", "last"]
        (folder / "package.yaml").write_text((folder / "package.yaml").read_text().replace("1.0.0", "1.1.0"))
        await world.push_folder(folder, "hooked", "1.1.0")
        await world.change("prod", "app", {"packageVersion": "1.1.0"})
        await world.until_state("prod", "app", "Ready")
        assert notes(tmp_path) == ["first", "last", "first", "last"]


async def test_modules_of_addon_operator_run_onstartup_first_at_every_start(tmp_path: Path) -> None:
    """The order is that of addon-operator: onStartup, then the Synchronization of each binding, then the hooks around Helm."""
    watching = "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}}]\n"
    hooks = {
        "start.sh": noting(tmp_path, "{configVersion: v1, onStartup: 1}", "start"),
        "sync.sh": noting(tmp_path, watching, "sync"),
        "before.sh": noting(tmp_path, "{configVersion: v1, beforeHelm: 1}", "before"),
        "after.sh": noting(tmp_path, "{configVersion: v1, afterHelm: 1}", "after"),
    }
    folder = hooked(tmp_path / "module", hooks)
    (folder / "package.yaml").unlink()
    (folder / "openapi" / "settings.yaml").rename(folder / "openapi" / "config-values.yaml")
    write(folder, {"Chart.yaml": "apiVersion: v2\nname: module\nversion: 1.0.0\n"})
    write(folder, {"templates/out.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\n"})
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "module", "1.0.0")
        await world.create_module("module")
        await world.until_state("", "module", "Ready")
        assert notes(tmp_path) == ["start", "sync", "before", "after"]
        await world.request("", "module")
        await world.until_state("", "module", "Ready")
        assert notes(tmp_path) == ["start", "sync", "before", "after"] * 2


async def test_a_retry_of_startup_hooks_repeats_only_failed_hooks(tmp_path: Path) -> None:
    hooks = {
        "a.sh": noting(tmp_path, "{configVersion: v1, onStartup: 1}", "one"),
        "b.sh": noting(tmp_path, "{configVersion: v1, onStartup: 2}", "two"),
    }
    (tmp_path / "fail-two").touch()
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until_state("prod", "app", "Failed")
        assert "hooks/b.sh" in find_str(failed, "status", "summary", "message")
        assert notes(tmp_path) == ["one", "two"]
        (tmp_path / "fail-two").unlink()
        await again(world, "app")
        assert notes(tmp_path) == ["one", "two", "two"]
        state = await world.client.get(ObjectKey(SECRET, "prod", "wharfinger.app.app"))
        assert find_str(state, "type") == "wharfinger.dev/package-state"


async def test_a_binding_without_waiting_is_synchronised_in_its_own_lane(tmp_path: Path) -> None:
    watching = (
        "configVersion: v1\n"
        "kubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, queue: slow, waitForSynchronization: false}]\n"
    )
    hooks = {"a.sh": noting(tmp_path, watching, "slow")}
    (tmp_path / "fail-slow").touch()
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        # The failed Synchronization blocks nothing, so the version is still applied.
        failed = await world.until(
            "prod",
            "app",
            lambda obj: (
                find_str(obj, "status", "summary", "state") == "Failed"
                and find_str(obj, "status", "currentVersion", "version") == "1.0.0"
            ),
        )
        assert "hooks/a.sh" in find_str(failed, "status", "summary", "message")
        tasks = world.runtime.queues.dump_one("prod.app").tasks
        assert {task.lane for task in tasks if "synchronization" in task.name} == {lane_of("slow")}


async def test_an_unknown_kind_is_waited_for(tmp_path: Path) -> None:
    """A hook watches a kind that does not exist. Once the CRD of the kind is created, the package is installed."""
    watching = "configVersion: v1\nkubernetes: [{kind: Crontab, apiVersion: example.com/v1}]\n"
    async with open_world(tmp_path) as world:
        await world.repository()
        hooks = {"a.sh": noting(tmp_path, watching, "x")}
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        failed = await world.until_state("prod", "app", "Failed")
        assert "Crontab" in find_str(failed, "status", "summary", "message")
        names: JsonObject = {"kind": "Crontab", "listKind": "CrontabList", "plural": "crontabs", "singular": "crontab"}
        schema: JsonObject = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        crd: JsonObject = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "crontabs.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": names,
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }
        await world.client.create(crd)
        await again(world, "app")


async def test_event_hooks_stop_with_the_package(tmp_path: Path) -> None:
    watching = "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}}]\n"
    async with open_world(tmp_path) as world:
        await world.repository()
        hooks = {"a.sh": noting(tmp_path, watching, "x")}
        await world.push_folder(hooked(tmp_path / "hooked", hooks), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        before = len(notes(tmp_path))
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        await world.client.create(config_map("late", {"a": "b"}))
        assert not world.runtime.tools.hook_services.started()
        assert len(notes(tmp_path)) == before


@pytest.mark.parametrize("queue", ["main", "slow"])
def test_queues_of_hooks_have_their_own_lanes(queue: str) -> None:
    assert lane_of(queue) == f"hooks/{queue}"


@pytest.mark.slow
async def test_values_of_a_late_synchronisation_are_applied_when_it_ends(tmp_path: Path) -> None:
    """The Synchronization ends long after a change of the settings has superseded its operation.

    The values that the hook sets then are still applied.
    """
    os.mkfifo(tmp_path / "go")
    config = (
        "configVersion: v1\nkubernetes:\n"
        "- {kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, queue: slow, waitForSynchronization: false}\n"
    )
    patch = '{"op":"add","path":"/hooked/seen","value":3}'
    hook = bash(config, f"read -r _ <{tmp_path}/go; echo '{patch}' >\"$VALUES_JSON_PATCH_PATH\"")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"slow.sh": hook}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"settings": {"mode": "fast"}})
        await world.until_state("prod", "app", "Ready")
        await trio.to_thread.run_sync((tmp_path / "go").write_text, "on\n")
        await until_data(world, "out", "seen", "3")


async def test_a_refused_setting_from_a_secret_is_not_named_a_field_of_the_resource(tmp_path: Path) -> None:
    folder = hooked(tmp_path / "hooked", {})
    (folder / "openapi").mkdir(exist_ok=True)
    (folder / "openapi" / "settings.yaml").write_text(
        "type: object\nproperties:\n  token: {type: string, minLength: 8}\n"
    )
    source: JsonObject = {"kind": "Secret", "name": "s", "key": "token", "path": "token"}
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.secret("s", token="short")
        await world.create("prod", "app", package="hooked", more={"settingsFrom": [source]})
        refused = await world.until("prod", "app", has_reason("SettingsInvalid"))
        assert find_str(refused, "status", "summary", "message").startswith("settings: token: ")
