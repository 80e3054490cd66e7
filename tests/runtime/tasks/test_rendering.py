"""The rendered objects of a package, with the overrides in its resource, and with the label that marks maintenance."""

from dataclasses import replace
from pathlib import Path

from tests.runtime.support.world import open_world
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.cluster.watch.readiness import InProgress
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.packages.rendering.resource_overrides import WorkloadOverride
from wharfinger.runtime.resources.manifests import UNMANAGED_LABEL
from wharfinger.runtime.resources.release_policy import read_release_policy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.tasks.rendering import SHOWN_LAGGARDS, Wanted, rendered, waiting_for

DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)
FRONT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: front}\nspec:\n  replicas: 1\n"
    "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
    "    spec: {containers: [{name: main, image: example/a}]}\n"
)


async def test_the_manifest_contains_the_applied_objects(tmp_path: Path) -> None:
    """The stored manifest has the overrides of the spec and the label for maintenance, as the applied objects do."""
    more: JsonObject = {
        "maintenance": "NoResourceReconciliation",
        "resourceRequests": [{"kind": "Deployment", "name": "front", "replicas": 2}],
    }
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/front.yaml": FRONT})
        await world.repository()
        await world.create("prod", "shop", more=more)
        await world.until_state("prod", "shop", "Ready")
        instance = world.runtime.instances["prod.shop"]
        found = await rendered(instance, world.runtime.tools, world.runtime.packages)
        documents = [document for document in read_yaml_all(found.manifest, what="manifest") if document]
        assert documents == list(found.objects)
        front = next(obj for obj in found.objects if obj["kind"] == "Deployment")
        assert find_int(front, "spec", "replicas") == 2
        assert all(
            find_str(obj, "metadata", "labels", UNMANAGED_LABEL, default="missing") == "" for obj in found.objects
        )


async def test_rendering_on_request_does_not_change_the_release(tmp_path: Path) -> None:
    """The render has the objects that the next apply would write. The applied objects and the release's records do not change."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop", settings={"text": "one"})
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"maintenance": "NoResourceReconciliation"})
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"settings": {"text": "two"}})
        await world.until_state("prod", "shop", "Ready")
        tools, instance = world.runtime.tools, world.runtime.instances["prod.shop"]
        applied, before = await world.config_map("prod", "shop"), await tools.releases.history("shop", "prod")
        found = await rendered(instance, tools, world.runtime.packages)
        assert [find_str(obj, "data", "text") for obj in found.objects] == ["two"]
        assert applied is not None
        assert find_str(applied, "data", "text") == "one"
        assert await world.config_map("prod", "shop") == applied
        assert await tools.releases.history("shop", "prod") == before


def test_overrides_and_policies_distinguish_desired_states() -> None:
    request = RenderRequest(Path("chart"), "sha256:1", "web", "prod", {}, "v1.36.0", ("v1",), is_upgrade=False)
    wanted = Wanted(request, "a" * 30, Directives(), ChartUse(), Layout.CHART)
    over = Directives(overrides=(WorkloadOverride("Deployment", "web", 2),))
    held = Directives(maintenance="NoResourceReconciliation")
    warned = Directives(release_policy=read_release_policy({"drift": {"mode": "warn"}}))
    brought = {replace(wanted, directives=one).brought_by for one in (Directives(), over, held, warned)}
    assert len(brought) == 4
    assert replace(wanted, inputs="").brought_by == ""


def test_waiting_objects_are_listed_in_order_and_limited() -> None:
    laggards: Laggards = {
        ObjectKey(DEPLOYMENT, "prod", f"d{number}"): InProgress("0 of 1 available")
        for number in reversed(range(SHOWN_LAGGARDS + 2))
    }
    said = waiting_for(laggards)
    assert said.startswith("Deployment.apps prod/d0: 0 of 1 available; Deployment.apps prod/d1")
    assert said.endswith("; and 2 more")
