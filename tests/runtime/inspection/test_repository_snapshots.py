"""Snapshots of repositories: they show the versions that were found in a real registry."""

from pathlib import Path

from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_world
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.sources.source import open_source
from wharfinger.runtime.inspection.repository_snapshots import repository_snapshots
from wharfinger.runtime.repositories.repository_controller import open_repositories
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY


async def test_scanned_versions_are_shown(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for version in ("1.0.0", "1.1.0"):
            await world.push("web", version)
        await world.client.create(repository("", name="broken", scheme="HTTPS") | {"spec": {}})
        await world.repository()
        follow: JsonObject = {"packageVersion": None, "versionRange": ">=1"}
        await world.create("prod", "shop", more=follow)
        key = ObjectKey(PACKAGE_REPOSITORY, "", "default")
        await world.until_object(key, lambda obj: find(obj, "status", "packagesCount") == 1)
        async with open_informer(world.client, PACKAGE_REPOSITORY) as informer:
            await informer.wait_synced()
            async with open_repositories(
                world.client, informer, (world.applications,), open_source, world.runtime.now, lambda _: None
            ) as repositories:
                broken, default = repository_snapshots(repositories)
        assert (broken.name, broken.source, broken.users, broken.packages) == ("broken", "", 0, ())
        assert (default.ready, default.reason, default.users) == ("True", "Scanned", 1)
        assert default.source == f"http://{world.address}/packages"
        assert default.scanned is not None
        (web,) = default.packages
        assert web.versions == ("1.1.0", "1.0.0")
        assert [each.version for each in web.detailed] == ["1.1.0", "1.0.0"]
        assert web.detailed[0].digest.startswith("sha256:")
