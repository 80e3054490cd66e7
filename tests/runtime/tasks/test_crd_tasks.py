"""The CRDs of packages. They are established before they are used, and a broken CRD blocks only its own package."""

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.packages.support.charts import write
from tests.runtime.support.task_log import TaskLog
from tests.runtime.support.world import PATIENCE_S, World, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.formats.json.value import JsonObject, find_int, find_list, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.rendering import template_search
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.status.summary import State, summarize
from wharfinger.runtime.tasks import crd_tasks

MODULE = "apiVersion: v1\ntype: Module\nname: {name}\nversion: 1.0.0\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {singular}}}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
BOAT = CRD.format(group="harbour.example.com", kind="Boat", plural="boats", singular="boat")
WEBHOOK_KIND = CRD.format(
    group="deckhouse.io", kind="ConversionWebhook", plural="conversionwebhooks", singular="conversionwebhook"
)
WEBHOOK = "apiVersion: deckhouse.io/v1\nkind: ConversionWebhook\nmetadata: {name: boats}\n"
CONVERSION_WEBHOOK = ResourceType("deckhouse.io", "v1", "ConversionWebhook", "conversionwebhooks", namespaced=True)
DEFINITION = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
BROKEN = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wrong}\nspec: {group: x}\n"
)


def module(folder: Path, name: str, files: dict[str, str], hooks: dict[str, str] | None = None) -> Path:
    """Write a Module that has a package.yaml."""
    return write(hooked(folder / name, hooks or {}, name=name), {"package.yaml": MODULE.format(name=name), **files})


@pytest.mark.slow
async def test_a_package_may_use_kinds_of_a_package_that_it_does_not_require(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
        boat = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: ketch}\n"
        await world.push("web", "1.0.0", {"templates/boat.yaml": boat})
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Ready")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        assert "harbour-crd" in find_list(world.runtime.packages.global_values(), "enabledModules")
        assert "harbour.example.com/v1/Boat" in find_list(
            world.runtime.packages.global_values(), "discovery", "customResources"
        )


async def test_a_broken_crd_fails_only_its_own_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push("web", "1.0.0")
        await world.push_folder(module(tmp_path, "broken", {"crds/wrong.yaml": BROKEN}), "broken", "1.0.0")
        await world.create_module("broken")
        failed = await world.until_state("", "broken", "Failed")
        assert find_str(world.condition(failed, "Ready"), "status") == "False"
        assert await world.config_map(SYSTEM_NAMESPACE, "out") is None
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        queue = world.runtime.queues.dump_one("broken")
        assert {task.lane for task in queue.tasks if task.name == "EnsureCRDs"} == {crd_tasks.CRD_LANE}
        await world.delete("", "broken")
        await world.until_gone("", "broken")


async def test_a_crd_that_is_never_established_is_reported_and_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crd_tasks, "ESTABLISHED_S", 0.0)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
        await world.create_module("harbour")
        failed = await world.until_state("", "harbour", "Failed")
        assert "definitions are not established after" in find_str(failed, "status", "summary", "message")
        assert world.runtime.tools.crd_phase.trying() == ()


async def test_conversion_webhooks_exist_before_the_release_and_belong_to_it(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        harbour = module(tmp_path, "harbour", {"crds/webhook.yaml": WEBHOOK_KIND, "templates/webhook.yaml": WEBHOOK})
        await world.push_folder(harbour, "harbour", "1.0.0")
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Ready")
        live = await world.client.get(ObjectKey(CONVERSION_WEBHOOK, SYSTEM_NAMESPACE, "boats"))
        assert find_str(live, "metadata", "annotations", "meta.helm.sh/release-name") == "harbour"
        await world.delete("", "harbour")
        await world.until_gone("", "harbour")
        await world.until_no_object(ObjectKey(CONVERSION_WEBHOOK, SYSTEM_NAMESPACE, "boats"))


async def test_the_templates_of_one_content_are_searched_once_for_all_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[Path] = []

    def counted(tree: Path, words: str) -> bool:
        searched.append(tree)
        return template_search.templates_mention(tree, words)

    monkeypatch.setattr(crd_tasks, "templates_mention", counted)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push("web", "1.0.0")
        await world.push("other", "1.0.0")
        for name, package in (("first", "web"), ("second", "web"), ("third", "other")):
            await world.create("prod", name, package=package)
            await world.until_state("prod", name, "Ready")
    assert len(searched) == 2, "once for each content, and not once for each package"


@pytest.mark.slow
async def test_after_a_restart_charts_see_all_enabled_modules(tmp_path: Path) -> None:
    """The chart sees the same modules before and after the restart, so its release does not change."""
    asks = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: asks}\n"
        'data: {modules: {{ join "," .Values.global.enabledModules | quote }}}\n'
    )
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
            asking = hooked(tmp_path / "asking", {}, name="asking", files={"templates/asks.yaml": asks})
            await world.push_folder(asking, "asking", "1.0.0")
            await world.create_module("harbour")
            await world.until_state("", "harbour", "Ready")
            await world.create("prod", "a-first", package="asking")
            ready = await world.until_state("prod", "a-first", "Ready")
            assert find_str(await world.config_map("prod", "asks"), "data", "modules") == "harbour,harbour-crd"
            assert find_int(ready, "status", "release", "revision") == 1
        async with ground.open_world() as world:
            await world.until("prod", "a-first", lambda _obj: is_ready(world, "prod.a-first"))
            await world.until("", "harbour", lambda _obj: is_ready(world, "harbour"))
            status = world.runtime.status("prod.a-first")
            assert status is not None
            assert status.revision == 1
            assert find_str(await world.config_map("prod", "asks"), "data", "modules") == "harbour,harbour-crd"


def is_ready(world: World, name: str) -> bool:
    instance = world.runtime.instances.get(name)
    return instance is not None and instance.applied.verified


def state_of(world: World, name: str) -> str:
    status = world.runtime.status(name)
    assert status is not None
    return summarize(status).state


@pytest.mark.slow
async def test_a_module_enabled_and_upgraded_at_once_applies_only_the_new_crds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CRDs are applied once, from the new version, because this version replaces the old one before anything is applied."""
    log = TaskLog()
    log.watch(monkeypatch)
    async with open_world(tmp_path) as world:
        await world.repository()
        harbour = module(tmp_path, "harbour", {"crds/boat.yaml": BOAT})
        await world.push_folder(harbour, "harbour", "1.0.0")
        (harbour / "package.yaml").write_text((harbour / "package.yaml").read_text().replace("1.0.0", "1.1.0"))
        await world.push_folder(harbour, "harbour", "1.1.0")
        await world.create_module("harbour", spec={"enabled": False})
        await world.until_state("", "harbour", "Disabled")
        await world.change("", "harbour", {"enabled": True, "packageVersion": "1.1.0"})
        ready = await world.until_state("", "harbour", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.1.0"
        assert "harbour-crd" in find_list(world.runtime.packages.global_values(), "enabledModules")
        assert log.names("harbour").count("EnsureCRDs") == 1


@pytest.mark.slow
async def test_crds_of_a_suspended_module_are_applied_on_resume(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
        await world.create_module("harbour", spec={"enabled": False})
        await world.until_state("", "harbour", "Disabled")
        await world.change("", "harbour", {"suspend": True})
        await world.until_state("", "harbour", "Suspended")
        await world.change("", "harbour", {"enabled": True})
        await world.until_state("", "harbour", "Suspended")
        await world.runtime.queues.wait_idle("harbour")
        names = [find_str(obj, "metadata", "name") for obj in (await world.client.list(DEFINITION)).items]
        assert "boats.harbour.example.com" not in names
        await world.change("", "harbour", {"suspend": False})
        await world.until_state("", "harbour", "Ready")
        await world.client.get(ObjectKey(DEFINITION, "", "boats.harbour.example.com"))


async def test_broken_crds_are_still_a_failure_after_a_settings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TaskLog()
    log.watch(monkeypatch)

    def tried_and_awaited(times: int) -> bool:
        failures = [run for run in log.runs.get("broken", []) if (run.task, run.over) == ("EnsureCRDs", "failed")]
        return len(failures) >= times and log.names("broken").count("AwaitCRDs") >= times

    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "broken", {"crds/wrong.yaml": BROKEN}), "broken", "1.0.0")
        await world.create_module("broken")
        with trio.fail_after(PATIENCE_S):
            await log.until(lambda: tried_and_awaited(1))
        await trio.testing.wait_all_tasks_blocked()
        assert state_of(world, "broken") == State.FAILED
        await world.change("", "broken", {"settings": {"mode": "fast"}})
        with trio.fail_after(PATIENCE_S):
            await log.until(lambda: tried_and_awaited(2))
        await trio.testing.wait_all_tasks_blocked()
        assert state_of(world, "broken") == State.FAILED
        await world.until_state("", "broken", "Failed")


async def test_a_wait_for_failed_crds_does_not_clear_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CRDs are applied again in their own lane. Until that succeeds, the Module stays Failed, even if its settings change."""
    monkeypatch.setattr(crd_tasks, "ESTABLISHED_S", 0.0)
    log = TaskLog()
    log.watch(monkeypatch)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Failed")
        with trio.fail_after(PATIENCE_S):
            await log.until(lambda: "AwaitCRDs" in log.names("harbour"))
        awaited = log.names("harbour").count("AwaitCRDs")
        await world.change("", "harbour", {"settings": {"mode": "fast"}})
        with trio.fail_after(PATIENCE_S):
            await log.until(lambda: log.names("harbour").count("AwaitCRDs") > awaited)
        await trio.testing.wait_all_tasks_blocked()
        assert state_of(world, "harbour") == State.FAILED
        failed = await world.until_state("", "harbour", "Failed")
        assert "definitions are not established after" in find_str(failed, "status", "summary", "message")


@pytest.mark.slow
async def test_user_changes_of_crds_during_maintenance_survive_a_restart(tmp_path: Path) -> None:
    key = ObjectKey(DEFINITION, "", "boats.harbour.example.com")
    schema: JsonObject = {"type": "object", "description": "people", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
            await world.create_module("harbour")
            await world.until_state("", "harbour", "Ready")
            await world.change("", "harbour", {"maintenance": "NoResourceReconciliation"})
            await world.until_state("", "harbour", "Ready")
            await world.client.merge_patch(key, {"spec": {"versions": [version]}})
        async with ground.open_world() as world:
            # The generation is new, so only this process can have written a status for it.
            await world.change("", "harbour", {"settings": {"mode": "fast"}})
            await world.until_state("", "harbour", "Ready")
            live = await world.client.get(key)
            assert find_str(live, "spec", "versions", 0, "schema", "openAPIV3Schema", "description") == "people"
            assert "harbour-crd" in find_list(world.runtime.packages.global_values(), "enabledModules")


@pytest.mark.slow
async def test_conversion_webhooks_of_a_release_that_was_never_applied_are_removed(tmp_path: Path) -> None:
    hooks = {"a.sh": bash("{configVersion: v1, beforeHelm: 1}", "exit 1")}
    files = {"crds/webhook.yaml": WEBHOOK_KIND, "templates/webhook.yaml": WEBHOOK}
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", files, hooks), "harbour", "1.0.0")
        await world.create_module("harbour")
        await until_said(world, "harbour", "exit status 1")
        await world.client.get(ObjectKey(CONVERSION_WEBHOOK, SYSTEM_NAMESPACE, "boats"))
        await world.delete("", "harbour")
        await world.until_gone("", "harbour")
        await world.until_no_object(ObjectKey(CONVERSION_WEBHOOK, SYSTEM_NAMESPACE, "boats"))


async def until_said(world: World, name: str, text: str) -> None:
    """Wait until a Module's summary contains a text."""
    await world.until("", name, lambda obj: text in find_str(obj, "status", "summary", "message"))


WITH_AUTHORITY = WEBHOOK + 'spec: {ca: {{ required "no authority yet" .Values.ca }}}\n'
"""A conversion webhook that needs a value which only a hook can set."""
AUTHORITY = "x-extend: {schema: settings.yaml}\ntype: object\nproperties: {seen: {type: integer}, ca: {type: string}}\n"


def harbour_with_authority(folder: Path, binding: str, more: dict[str, str] | None = None) -> Path:
    patch = '{"op":"add","path":"/harbour/ca","value":"abc"}'
    hook = bash(f"{{configVersion: v1, {binding}: 1}}", f"echo '{patch}' >\"$VALUES_JSON_PATCH_PATH\"")
    files = {
        "crds/webhook.yaml": WEBHOOK_KIND,
        "templates/webhook.yaml": WITH_AUTHORITY,
        "openapi/values.yaml": AUTHORITY,
    }
    return module(folder, "harbour", files, {"a.sh": hook, **(more or {})})


@pytest.mark.slow
async def test_early_conversion_webhooks_use_values_of_startup_hooks(
    tmp_path: Path,
) -> None:
    failing = {"b.sh": bash("{configVersion: v1, beforeHelm: 1}", "exit 1")}
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(harbour_with_authority(tmp_path, "onStartup", failing), "harbour", "1.0.0")
        await world.create_module("harbour")
        await until_said(world, "harbour", "exit status 1")
        live = await world.client.get(ObjectKey(CONVERSION_WEBHOOK, SYSTEM_NAMESPACE, "boats"))
        assert find_str(live, "spec", "ca") == "abc"


@pytest.mark.slow
async def test_a_conversion_webhook_with_values_of_a_later_hook_comes_with_the_release(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(harbour_with_authority(tmp_path, "beforeHelm"), "harbour", "1.0.0")
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Ready")
        live = await world.client.get(ObjectKey(CONVERSION_WEBHOOK, SYSTEM_NAMESPACE, "boats"))
        assert find_str(live, "spec", "ca") == "abc"
