"""Cases of the application controller of the public peer that spec/runtime describes. They are run with a real registry, helm and
control plane. No other test covers these cases.
"""

import os
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.core.test_runtime import SLOW_CONFIG
from tests.runtime.support.killing import held, held_hook, watched
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import COUNTING, PACKAGE, config_map, hooked, until_data
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.manifest import OCI_MANIFEST, PACKAGE_CONFIG, write_manifest
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.repositories.repository_controller import SCAN_REQUESTED
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION, PACKAGE_INDEX, PACKAGE_REPOSITORY

pytestmark = pytest.mark.unmeasured

DEFAULT = ObjectKey(PACKAGE_REPOSITORY, "", "default")


async def until_version(world: World, name: str, version: str) -> JsonObject:
    """Wait until the package is Ready, and check that it has this version."""
    obj = await world.until_state("prod", name, "Ready")
    assert find_str(obj, "status", "currentVersion", "version") == version
    return obj


@pytest.mark.slow
async def test_a_missing_package_is_reported_and_can_be_replaced_by_another(tmp_path: Path) -> None:
    """These are the cases package-not-found and package-switch. Objects of the former package are deleted."""
    async with open_world(tmp_path) as world:
        await world.push(
            "web", "1.0.0", {"templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"}
        )
        await world.push("other", "5.0.0")
        await world.repository()
        await world.create("prod", "shop", package="nobody")
        failed = await world.until_state("prod", "shop", "Failed")
        assert "nobody" in find_str(failed, "status", "summary", "message")
        await world.change("prod", "shop", {"packageName": "web"})
        await until_version(world, "shop", "1.0.0")
        assert await world.config_map("prod", "more") is not None
        await world.change("prod", "shop", {"packageName": "other", "packageVersion": "5.0.0"})
        await until_version(world, "shop", "5.0.0")
        assert await world.config_map("prod", "more") is None


@pytest.mark.slow
async def test_versions_are_switched_up_and_down(tmp_path: Path) -> None:
    """These are the cases version-switch and version-update. After each switch, exactly the objects of the desired version
    exist.
    """
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push(
            "web", "2.0.0", {"templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"}
        )
        await world.repository()
        await world.create("prod", "shop")
        await until_version(world, "shop", "1.0.0")
        for version in ("2.0.0", "1.0.0", "2.0.0"):
            await world.change("prod", "shop", {"packageVersion": version})
            await until_version(world, "shop", version)
            assert (await world.config_map("prod", "more") is not None) is (version == "2.0.0")


async def test_correcting_a_repository_retries_its_failed_packages(tmp_path: Path) -> None:
    """This is the case registry-spec-changed. The address in the PackageRepository is corrected, and the package is Ready."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        key = ObjectKey(PACKAGE_REPOSITORY, "", "default")
        await world.client.merge_patch(key, {"spec": {"registry": {"repo": f"{world.address}/elsewhere"}}})
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Failed")
        await world.client.merge_patch(key, {"spec": {"registry": {"repo": f"{world.address}/packages"}}})
        await until_version(world, "shop", "1.0.0")


async def push_draft(world: World, version: str) -> None:
    """Push an artifact that is no package, under the tag of this version."""
    async with open_registry(world.address, scheme="http") as registry:
        config = await registry.push_blob("packages/web", PACKAGE_CONFIG, b"{}")
        layer = await registry.push_blob("packages/web", "text/plain", b"notes")
        await registry.push_manifest("packages/web", version, write_manifest(config, (layer,), {}), OCI_MANIFEST)


@pytest.mark.slow
async def test_a_version_without_readable_metadata_is_skipped_in_a_range(tmp_path: Path) -> None:
    """This is the case version-is-draft. The newest version in the range is skipped. It is installed once a package is pushed
    under its tag.
    """
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await push_draft(world, "2.0.0")
        await world.repository()
        await world.create("prod", "shop", more={"packageVersion": None, "versionRange": ">=1"})
        obj = await until_version(world, "shop", "1.0.0")
        assert "cannot be used now: it is not a package" in find_str(obj, "status", "update", "message")
        await world.push("web", "2.0.0")
        await world.client.merge_patch(DEFAULT, {"metadata": {"annotations": {SCAN_REQUESTED: "1"}}})
        await world.until(
            "prod", "shop", lambda found: find_str(found, "status", "currentVersion", "version") == "2.0.0"
        )


@pytest.mark.slow
async def test_an_exact_version_without_readable_metadata_is_refused(tmp_path: Path) -> None:
    """This is the case version-is-draft. The old version stays installed until a package is pushed under the tag."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await push_draft(world, "2.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await until_version(world, "shop", "1.0.0")
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        obj = await world.until("prod", "shop", has_reason("ArtifactInvalid"))
        assert find_str(obj, "status", "currentVersion", "version") == "1.0.0"
        assert await world.config_map("prod", "shop") is not None
        await world.push("web", "2.0.0")
        await world.request("prod", "shop")
        await until_version(world, "shop", "2.0.0")


@pytest.mark.slow
async def test_stale_owner_references_are_neither_followed_nor_changed(tmp_path: Path) -> None:
    """This is the case stale-owner-references. Only the spec says which repository and version a package uses.

    The peer (see spec/runtime) makes the package and its version owners of the Application, and replaces stale owners. Here
    nothing owns an Application, so an owner reference was set by a user.
    """
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "2.0.0")
        await world.repository("old")
        await world.repository()
        await world.create("prod", "follower", repository="old", more={"packageVersion": None, "versionRange": "^1"})
        await until_version(world, "follower", "1.0.0")
        index = await world.client.get(ObjectKey(PACKAGE_INDEX, "", "old.web"))
        owners: list[JsonValue] = [
            {
                "apiVersion": find_str(index, "apiVersion"),
                "kind": "PackageIndex",
                "name": "old.web",
                "uid": find_str(index, "metadata", "uid"),
            }
        ]
        await world.create("prod", "shop", repository="old")
        await until_version(world, "shop", "1.0.0")
        key = ObjectKey(APPLICATION, "prod", "shop")
        await world.client.merge_patch(key, {"metadata": {"ownerReferences": owners}})
        await world.change("prod", "shop", {"packageRepositoryName": "default", "packageVersion": "2.0.0"})
        obj = await until_version(world, "shop", "2.0.0")
        assert find(obj, "metadata", "ownerReferences") == owners
        old = ObjectKey(PACKAGE_REPOSITORY, "", "old")
        await world.client.delete(old)
        kept = await world.until_object(
            old, lambda found: find_str(World.condition(found, "Ready"), "reason") == "InUse"
        )
        message = find_str(World.condition(kept, "Ready"), "message")
        assert message.startswith("its deletion waits for Application prod/follower; ")


@pytest.mark.slow
async def test_a_deletion_right_after_a_version_change_leaves_nothing(tmp_path: Path) -> None:
    """This is the case delete-after-version-edit, once with a new version that hangs, and once with one that does not exist."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "2.0.0", {"templates/slow.yaml": SLOW_CONFIG})
        await world.repository()
        for name, version in (("hangs", "2.0.0"), ("missing", "9.9.9")):
            await world.create("prod", name)
            await until_version(world, name, "1.0.0")
            await world.change("prod", name, {"packageVersion": version})
            await world.delete("prod", name)
            await world.until_gone("prod", name)
            assert await world.config_map("prod", name) is None
        assert world.runtime.lifecycle == LifecycleStore()
        assert world.runtime.instances == {}


@pytest.mark.slow
async def test_late_events_after_a_disable_or_removal_create_no_queue(tmp_path: Path) -> None:
    """In the peer that spec/runtime describes, an event after a removal created a queue that was never removed. Here such an
    event creates no queue.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        folder = hooked(tmp_path / "mod", {"count.sh": COUNTING}, name="hooked")
        write(folder, {"package.yaml": PACKAGE.format(name="hooked").replace("Application", "Module")})
        await world.push_folder(folder, "hooked", "1.0.0")
        await world.create_module("hooked")
        await world.until_state("", "hooked", "Ready")
        await world.client.create(config_map("seen", {"watch": "me"}))
        await until_data(world, "out", "seen", "1", SYSTEM_NAMESPACE)
        (kept,) = world.runtime.tools.hook_services.with_schedules()
        inbox = kept.inbox(kept.hooks[0], "main")
        await world.change("", "hooked", {"enabled": False})
        await world.until_state("", "hooked", "Disabled")
        await world.runtime.queues.wait_idle("hooked")
        await world.client.create(config_map("late", {"watch": "me"}))
        assert not world.runtime.tools.hook_services.started()
        assert world.runtime.build_kube_tasks(kept, inbox) == ()  # this is what a running task would call
        assert world.runtime.queues.dump_one("hooked").tasks == ()
        await world.delete("", "hooked")
        await world.until_gone("", "hooked")
        await world.client.create(config_map("later", {"watch": "me"}))
        assert world.runtime.build_kube_tasks(kept, inbox) == ()
        assert world.runtime.queues.names() == ()


async def test_a_hanging_synchronisation_is_superseded_at_once(tmp_path: Path) -> None:
    """In the peer that spec/runtime describes, the wait for a Synchronization cannot be cancelled. Here it ends as soon as its
    operation is superseded.
    """
    os.mkfifo(tmp_path / "held")
    watching = "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {a: b}}, queue: slow}]"
    folder = hooked(tmp_path / "hooked", {"a.sh": held_hook(tmp_path, watching, "sync")})
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(folder, "hooked", "1.0.0")
        (folder / "package.yaml").write_text((folder / "package.yaml").read_text().replace("1.0.0", "2.0.0"))
        (folder / "hooks" / "a.sh").unlink()
        await world.push_folder(folder, "hooked", "2.0.0")
        await world.create("prod", "app", package="hooked")
        hook, child = await trio.to_thread.run_sync(held, tmp_path)
        with watched(hook) as first, watched(child) as below:
            await world.change("prod", "app", {"packageVersion": "2.0.0"})
            await until_version(world, "app", "2.0.0")
            assert first.ended()
            assert below.ended()
