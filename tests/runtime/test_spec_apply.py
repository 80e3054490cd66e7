"""The reported state of a release, and its revisions: the cases of spec/runtime §8 except those about drift and health."""

from pathlib import Path

import pytest

from tests.runtime.core.test_operations import MAINTENANCE, data_of
from tests.runtime.support.world import World, open_ground, open_world
from wharfinger.cluster.api.endpoints import ENDPOINT
from wharfinger.cluster.objects.ownership import RELEASE_LABEL
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_object, find_str
from wharfinger.runtime.resources.manifests import UNMANAGED_LABEL

pytestmark = pytest.mark.unmeasured

INGRESS = (
    f"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: shop, annotations: {{{ENDPOINT}: for customers}}}}\n"
    "spec:\n  tls: [{hosts: [shop.example]}]\n"
    "  rules: [{host: shop.example, http: {paths: [{path: /cart, pathType: Prefix,"
    " backend: {service: {name: shop, port: {number: 80}}}}]}}]\n"
)
URLS: JsonValue = [{"url": "https://shop.example/cart", "description": "for customers"}]
NAMED = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "named-{{ .Values.text }}"}\n'


async def revision_of(world: World) -> int:
    """Wait until the package is ready, and return the revision of the release."""
    return find_int(await world.until_state("prod", "shop", "Ready"), "status", "release", "revision")


@pytest.mark.slow
async def test_endpoints_are_reported_even_if_nothing_is_applied(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0", {"templates/ingress.yaml": INGRESS})
            await world.push("web", "1.1.0")
            await world.repository()
            await world.create("prod", "shop")
            assert find(await world.until_state("prod", "shop", "Ready"), "status", "urls") == URLS
            await world.request("prod", "shop")
            assert find(await world.until_state("prod", "shop", "Ready"), "status", "urls") == URLS
            await world.change("prod", "shop", MAINTENANCE)
            assert find(await world.until_state("prod", "shop", "Ready"), "status", "urls") == URLS
        async with ground.open_world() as world:
            await world.change("prod", "shop", {"settings": {"text": "left to people"}})
            assert find(await world.until_state("prod", "shop", "Ready"), "status", "urls") == URLS
            await world.change("prod", "shop", {"maintenance": None, "packageVersion": "1.1.0"})
            assert "urls" not in find_object(await world.until_state("prod", "shop", "Ready"), "status")


@pytest.mark.slow
async def test_start_and_end_of_maintenance_make_one_revision_each(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        revisions = [await revision_of(world)]
        ended: JsonObject = {"maintenance": None}
        for change in (MAINTENANCE, None, ended, None):
            if change is None:
                await world.request("prod", "shop")
            else:
                await world.change("prod", "shop", change)
            revisions.append(await revision_of(world))
    assert revisions == [1, 2, 2, 3, 3]


@pytest.mark.slow
async def test_an_incomplete_release_is_applied_even_under_maintenance(tmp_path: Path) -> None:
    """During maintenance, a release that is not complete is still applied until it is deployed and its objects have the label
    of maintenance. After that, changes are not applied any more.
    """
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/named.yaml": NAMED})
        await world.repository()
        await world.create("prod", "shop", settings={"text": "NOT_A_NAME"}, more=MAINTENANCE)
        failed = await world.until_state("prod", "shop", "Failed")
        assert find_str(World.condition(failed, "Stalled") or {}, "status") == "True"
        await world.change("prod", "shop", {"settings": {"text": "a"}})
        await world.until_state("prod", "shop", "Ready")
        assert find(await data_of(world, "named-a"), "metadata", "labels", UNMANAGED_LABEL) == ""
        await world.change("prod", "shop", {"settings": {"text": "b"}})
        await world.until_state("prod", "shop", "Ready")
        assert await world.config_map("prod", "named-b") is None


async def test_objects_and_records_name_their_release(tmp_path: Path) -> None:
    """The labels and annotations of objects, and the records, have the release's name and namespace, which are those of the
    package.
    """
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        assert await revision_of(world) == 1
        metadata = find_object(await data_of(world, "shop"), "metadata")
        assert find_str(metadata, "labels", "app.kubernetes.io/managed-by") == "Helm"
        assert find_str(metadata, "labels", RELEASE_LABEL) == "shop"
        assert find_str(metadata, "annotations", "meta.helm.sh/release-name") == "shop"
        assert find_str(metadata, "annotations", "meta.helm.sh/release-namespace") == "prod"
        releases = await world.runtime.tools.releases.history("shop", "prod")
        assert [(release.name, release.namespace) for release in releases] == [("shop", "prod")]
