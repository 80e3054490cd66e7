"""The current objects of a package. They are also shown after a failure."""

from pathlib import Path

import pytest

from tests.runtime.support.world import open_world
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.inspection.resources import NOT_WATCHED, health_text, resource_snapshots
from wharfinger.runtime.resources.resources import CONFIG_MAP


@pytest.mark.parametrize(
    ("readiness", "text"),
    [
        (Current(), ("Current", "")),
        (InProgress("1 of 2"), ("InProgress", "1 of 2")),
        (InProgress("not there", absent=True), ("Absent", "not there")),
        (Failed("no"), ("Failed", "no")),
    ],
)
def test_each_readiness_has_its_text(readiness: Readiness, text: tuple[str, str]) -> None:
    assert health_text(readiness) == text


async def test_objects_of_a_package_are_shown(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        instance = world.runtime.instances["prod.shop"]
        found = resource_snapshots(world.runtime, instance)
        assert [(each.kind, each.namespace, each.health, each.apply) for each in found] == [
            ("ConfigMap", "prod", "Current", "Done")
        ]
        assert "wharfinger.dev/release=shop" in found[0].labels
        await world.runtime.tools.releases.forget(Owner("shop", "prod"))
        (unwatched,) = resource_snapshots(world.runtime, instance)
        assert (unwatched.name, unwatched.health, unwatched.message) == (found[0].name, "Unknown", NOT_WATCHED)
        assert await world.client.get(ObjectKey(CONFIG_MAP, "prod", found[0].name))
