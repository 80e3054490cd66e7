"""Packages that follow a version range or a channel, end to end, with a real registry, a control plane and the controllers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.registry_server import PASSWORD, USER
from tests.runtime.support.objects import repository
from tests.runtime.support.world import World, open_ground, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.runtime.repositories.repository_controller import SCAN_REQUESTED
from wharfinger.runtime.resources.resources import PACKAGE_INDEX, PACKAGE_REPOSITORY
from wharfinger.runtime.versions.version_policy import APPROVED

pytestmark = pytest.mark.unmeasured

REPOSITORY = ObjectKey(PACKAGE_REPOSITORY, "", "default")


async def scan(world: World, value: str) -> None:
    """Request a scan of the repository."""
    await world.client.merge_patch(REPOSITORY, {"metadata": {"annotations": {SCAN_REQUESTED: value}}})


def has_version(version: str, state: str = "Ready") -> Callable[[JsonObject], bool]:
    def holds(obj: JsonObject) -> bool:
        found = find_str(obj, "status", "currentVersion", "version"), find_str(obj, "status", "summary", "state")
        return found == (version, state)

    return holds


def ready(obj: JsonObject) -> tuple[str, str]:
    """Return the reason and the message of a repository's condition Ready."""
    condition = World.condition(obj, "Ready")
    return find_str(condition, "reason"), find_str(condition, "message")


def said(obj: JsonObject) -> str:
    """Return the message of the summary."""
    return find_str(obj, "status", "summary", "message")


def digest_of(obj: JsonObject) -> str:
    return find_str(obj, "status", "currentVersion", "digest")


async def move_channel(world: World, channel: str, version: str) -> None:
    """Let a channel point at the content of a version."""
    folder = world.folder / f"web-{version}"
    async with open_registry(world.address, scheme="http") as registry:
        await push_package(await load_package(folder, "web"), registry, "packages/web", channel)


async def follow(world: World, spec: JsonObject, name: str = "shop") -> None:
    """Create an Application with a range or a channel instead of a version."""
    await world.create("prod", name, more={"packageVersion": None, **spec})


async def until_update(world: World, reason: str, name: str = "shop") -> JsonObject:
    """Wait until ``status.update`` has this reason, and return ``status.update``."""
    obj = await world.until("prod", name, lambda found: find(found, "status", "update", "reason") == reason)
    return find_object(obj, "status", "update")


@pytest.mark.slow
async def test_a_range_follows_a_new_tag_within_one_scan(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "2.0.0")
        await world.repository()
        await follow(world, {"versionRange": "^1"})
        obj = await world.until("prod", "shop", has_version("1.0.0"))
        assert find(obj, "status", "update", "follows") == "range ^1"
        await world.push("web", "1.1.0")
        await scan(world, "1")
        obj = await world.until("prod", "shop", has_version("1.1.0"))
        assert find_str(obj, "status", "update", "message").startswith("1.1.0 is the newest version in range ^1")
        shown = await world.client.get(ObjectKey(PACKAGE_INDEX, "", "default.web"))
        assert find(shown, "status", "versions") == ["2.0.0", "1.1.0", "1.0.0"]


@pytest.mark.slow
async def test_a_manual_update_waits_for_its_approval_even_after_a_restart(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await follow(world, {"versionRange": ">=1", "update": {"mode": "manual"}})
            await world.until("prod", "shop", has_version("1.0.0"))
            await world.push("web", "1.1.0")
            await scan(world, "1")
            update = await until_update(world, "AwaitsApproval")
            assert (update["chosen"], update["pending"]) == ("1.0.0", "1.1.0")
        async with ground.open_world() as world:
            await world.until_state("prod", "shop", "Ready")
            await world.annotate("prod", "shop", APPROVED, "1.1.0")
            await world.until("prod", "shop", has_version("1.1.0"))


@pytest.mark.slow
async def test_an_update_waits_for_its_window(tmp_path: Path) -> None:
    """The test sets the wall clock to a time before the window, and later to a time inside the window."""
    clock = [datetime(2026, 11, 25, 12, 0, tzinfo=UTC)]
    async with (
        open_ground(tmp_path) as ground,
        replace(ground, now=lambda: clock[0]).open_world() as world,
    ):
        await world.push("web", "1.0.0")
        await world.repository()
        update: JsonObject = {
            "mode": "windows",
            "windows": [{"from": "22:00", "to": "23:00"}],
            "timeZone": "Europe/Berlin",
        }
        await follow(world, {"versionRange": ">=1", "update": update})
        await world.until("prod", "shop", has_version("1.0.0"))
        await world.push("web", "1.1.0")
        await scan(world, "1")
        waits = await until_update(world, "AwaitsWindow")
        assert "waits for the window that opens at 2026-11-25 21:00 UTC" in find_str(waits, "message")
        clock[0] += timedelta(hours=9)
        await world.annotate("prod", "shop", "example.com/look", "again")
        await world.until("prod", "shop", has_version("1.1.0"))


@pytest.mark.slow
async def test_a_channel_is_followed_and_a_downgrade_needs_approval(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for version in ("1.0.0", "1.1.0"):
            await world.push("web", version)
        await move_channel(world, "stable", "1.0.0")
        await world.repository()
        await follow(world, {"releaseChannel": "stable"})
        await world.until("prod", "shop", has_version("1.0.0"))
        await move_channel(world, "stable", "1.1.0")
        await scan(world, "1")
        await world.until("prod", "shop", has_version("1.1.0"))
        await move_channel(world, "stable", "1.0.0")
        await scan(world, "2")
        assert (await until_update(world, "DowngradeAwaitsApproval"))["pending"] == "1.0.0"
        await world.annotate("prod", "shop", APPROVED, "1.0.0")
        await world.until("prod", "shop", has_version("1.0.0"))


@pytest.mark.slow
async def test_a_missing_channel_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await move_channel(world, "stable", "1.0.0")
        await world.repository()
        await follow(world, {"releaseChannel": "beta"})
        obj = await world.until("prod", "shop", has_reason("NoVersion"))
        message = find_str(obj, "status", "summary", "message")
        assert message == "web has no channel beta in repository default; its channels: stable"
        await move_channel(world, "beta", "1.0.0")
        await scan(world, "1")
        await world.until("prod", "shop", has_version("1.0.0"))


MOVED = "metadata: {name: moved}"


@pytest.mark.sampled
@pytest.mark.parametrize("policy", ["report", "refuse", "follow"])
async def test_a_moved_tag_is_handled_by_the_policy(tmp_path: Path, policy: str) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await follow(world, {"versionRange": "^1", "update": {"movedTag": policy}})
        obj = await world.until("prod", "shop", has_version("1.0.0"))
        before = find_str(obj, "status", "currentVersion", "digest")
        await world.push("web", "1.0.0", {"templates/more.yaml": f"apiVersion: v1\nkind: ConfigMap\n{MOVED}\n"})
        await scan(world, "1")
        if policy == "follow":
            obj = await world.until("prod", "shop", lambda found: digest_of(found) not in ("", before))
            assert await world.config_map("prod", "moved") is not None
            return
        update = await until_update(world, "TagMoved")
        assert f"the tag of 1.0.0 has moved: {before} is installed" in find_str(update, "message")
        assert ("spec.update.movedTag refuses the new content" in find_str(update, "message")) is (policy == "refuse")
        await world.request("prod", "shop")
        await world.runtime.queues.wait_idle("prod.shop")
        followed = await world.config_map("prod", "moved") is not None
        assert followed is (policy == "report")


@pytest.mark.slow
async def test_a_pinned_digest_is_installed_whatever_its_tag_points_at(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "first")
        digest = digest_of(await world.until("prod", "first", has_version("1.0.0")))
        await world.push("web", "1.0.0", {"templates/more.yaml": f"apiVersion: v1\nkind: ConfigMap\n{MOVED}\n"})
        await world.create("prod", "pinned", more={"packageDigest": digest})
        assert digest_of(await world.until("prod", "pinned", has_version("1.0.0"))) == digest
        absent = "sha256:" + "0" * 64
        await world.change("prod", "pinned", {"packageDigest": absent})
        obj = await world.until("prod", "pinned", has_reason("ArtifactNotFound"))
        assert absent in find_str(obj, "status", "summary", "message")


@pytest.mark.slow
async def test_an_update_that_would_break_another_package_is_not_chosen(tmp_path: Path) -> None:
    """``status.update`` names the package that would break. Once that package allows newer versions, they are installed."""
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("shop", "1.0.0")
        await world.repository()
        await follow(world, {"versionRange": ">=1"}, "database")
        await world.until("prod", "database", has_version("1.0.0"))
        needs: JsonObject = {"dependsOn": [{"kind": "Application", "name": "database", "version": "<2"}]}
        await world.create("prod", "shop", package="shop", more=needs)
        await world.until_state("prod", "shop", "Ready")
        await world.push("web", "2.0.0")
        await scan(world, "1")
        update = await until_update(world, "NotPossible", "database")
        assert update["pending"] == "2.0.0"
        assert "it would break prod.shop" in find_str(update, "message")
        await world.change("prod", "shop", {"dependsOn": []})
        await world.until_state("prod", "shop", "Ready")
        await scan(world, "2")
        await world.push("web", "2.0.1")
        await scan(world, "3")
        await world.until("prod", "database", has_version("2.0.1"))


async def test_a_repository_in_use_is_not_deleted_and_names_its_users(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await follow(world, {"versionRange": ">=1"})
        await world.until("prod", "shop", has_version("1.0.0"))
        await world.client.delete(REPOSITORY)
        obj = await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "InUse")
        assert ready(obj)[1].startswith("its deletion waits for Application prod/shop; ")
        await world.delete("prod", "shop")
        await world.until_no_object(REPOSITORY)
        await world.until_no_object(ObjectKey(PACKAGE_INDEX, "", "default.web"))


async def test_a_repository_reports_its_own_problems(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        obj = await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "Scanned")
        assert "no Application or Module follows" in ready(obj)[1]
        registry: JsonObject = {"registry": {"repo": "127.0.0.1:1/packages", "scheme": "HTTP"}}
        await world.client.merge_patch(REPOSITORY, {"spec": registry})
        await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "RegistryFailed")
        await world.client.merge_patch(REPOSITORY, {"spec": {**registry, "scanInterval": "1s"}})
        obj = await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "RepositoryInvalid")
        assert "spec.scanInterval: expected at least 10s, found 1s" in ready(obj)[1]
        folder: JsonObject = {"registry": None, "scanInterval": None, "folder": {"path": str(tmp_path / "gone")}}
        await world.client.merge_patch(REPOSITORY, {"spec": folder})
        obj = await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "ArtifactNotFound")
        assert "there is no such folder" in ready(obj)[1]


async def test_a_refused_login_is_reported_by_the_repository(tmp_path: Path) -> None:
    async with open_world(tmp_path, with_password=True) as world:
        await world.repository()
        await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "RegistryRefused")
        await world.secret("login", username=USER, password=PASSWORD)
        login: JsonObject = {"credentialsSecret": {"name": "login", "namespace": "prod"}}
        await world.client.merge_patch(REPOSITORY, {"spec": {"registry": login}})
        await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "Scanned")


@pytest.mark.slow
async def test_a_missing_package_is_reported_by_package_and_repository(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await follow(world, {"versionRange": ">=1"})
        obj = await world.until("prod", "shop", has_reason("NoVersion"))
        assert "not found" in find_str(obj, "status", "summary", "message")
        await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "ArtifactNotFound")
        await world.push("web", "1.0.0")
        await scan(world, "1")
        await world.until("prod", "shop", has_version("1.0.0"))


@pytest.mark.slow
async def test_a_restarted_daemon_uses_the_index_while_the_registry_is_unreachable(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await follow(world, {"versionRange": ">=1"})
            await world.until("prod", "shop", has_version("1.0.0"))
        away: JsonObject = {"registry": {"repo": "127.0.0.1:1/packages"}}
        await ground.client.merge_patch(REPOSITORY, {"spec": away})
        async with ground.open_world() as world:
            await world.until_object(REPOSITORY, lambda found: ready(found)[0] == "RegistryFailed")
            await world.until_runtime(lambda: world.runtime.instances["prod.shop"].desired.version == "1.0.0")
            index = await world.client.get(ObjectKey(PACKAGE_INDEX, "", "default.web"))
            assert find(index, "status", "count") == 1


async def test_a_package_waits_for_the_first_scan_of_its_repository(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        unreachable = repository("127.0.0.1:1/packages")
        await world.client.create(unreachable)
        await follow(world, {"versionRange": ">=1"})
        obj = await world.until("prod", "shop", lambda found: "failed; check the address" in said(found))
        assert find(obj, "status", "summary", "state") == "Pending"
        assert said(obj).startswith("the versions of web in repository default are not known yet: ")
        assert "127.0.0.1:1" in said(obj)
        registry: JsonObject = {"registry": {"repo": f"{world.address}/packages"}}
        await world.client.merge_patch(REPOSITORY, {"spec": registry})
        await world.until("prod", "shop", has_version("1.0.0"))
