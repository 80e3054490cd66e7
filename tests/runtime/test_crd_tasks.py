"""Definitions come before what uses them, and a broken one holds up nobody but its own package."""

from pathlib import Path

import pytest

from tests.packages.charts import write
from tests.runtime.test_hook_runs import hooked
from tests.runtime.world import World, open_ground, open_world
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import find_int, find_list, find_str
from wharfinger.runtime import crd_tasks
from wharfinger.runtime.identity import SYSTEM_NAMESPACE

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
BROKEN = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wrong}\nspec: {group: x}\n"
)


def module(folder: Path, name: str, files: dict[str, str]) -> Path:
    """A package.yaml Module."""
    return write(hooked(folder / name, {}, name=name), {"package.yaml": MODULE.format(name=name), **files})


async def test_a_package_may_use_kinds_of_another_that_it_does_not_name(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
        boat = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: ketch}\n"
        await world.push("web", "1.0.0", {"templates/boat.yaml": boat})
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Ready")
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        assert "harbour-crd" in find_list(world.runtime.global_values(), "enabledModules")
        assert "harbour.example.com/v1/Boat" in find_list(world.runtime.global_values(), "discovery", "customResources")


async def test_a_broken_definition_stops_its_own_package_only_and_says_so(tmp_path: Path) -> None:
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


async def test_a_definition_that_is_never_established_is_said_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crd_tasks, "ESTABLISHED_S", 0.0)
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(module(tmp_path, "harbour", {"crds/boat.yaml": BOAT}), "harbour", "1.0.0")
        await world.create_module("harbour")
        failed = await world.until_state("", "harbour", "Failed")
        assert "not established after" in find_str(failed, "status", "summary", "message")
        assert world.runtime.tools.crd_phase.trying() == ()


async def test_conversion_webhooks_are_there_before_the_release_and_belong_to_it(tmp_path: Path) -> None:
    webhook = "apiVersion: deckhouse.io/v1\nkind: ConversionWebhook\nmetadata: {name: boats}\n"
    async with open_world(tmp_path) as world:
        await world.repository()
        harbour = module(tmp_path, "harbour", {"crds/webhook.yaml": WEBHOOK_KIND, "templates/webhook.yaml": webhook})
        await world.push_folder(harbour, "harbour", "1.0.0")
        await world.create_module("harbour")
        await world.until_state("", "harbour", "Ready")
        kind = ResourceType("deckhouse.io", "v1", "ConversionWebhook", "conversionwebhooks", namespaced=True)
        live = await world.client.get(ObjectKey(kind, SYSTEM_NAMESPACE, "boats"))
        assert find_str(live, "metadata", "annotations", "meta.helm.sh/release-name") == "harbour"
        await world.delete("", "harbour")
        await world.until_gone("", "harbour")
        await world.until_no_object(ObjectKey(kind, SYSTEM_NAMESPACE, "boats"))


async def test_after_a_restart_nobody_is_applied_without_the_modules_that_were_on(tmp_path: Path) -> None:
    """What a chart sees of the modules is the same before and after, and so is its release."""
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
    return instance is not None and instance.verified
