"""The takeover of an earlier process's releases: they are reconciled, and the start does not wait for a blocked package."""

import shutil
from pathlib import Path

import pytest
import trio

from tests.runtime.core.test_release_events import OWNER, SHOP, set_text, text_of, until, warnings_of
from tests.runtime.support.world import Ground, World, lose_repository, open_ground
from wharfinger.cluster.api.errors import ClusterError, NotFoundError, UnreachableError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers import takeover
from wharfinger.runtime.controllers.takeover import Takeover
from wharfinger.runtime.resources.resources import APPLICATION, PACKAGE_REPOSITORY, SECRET


async def installed(ground: Ground, more: JsonObject | None = None) -> None:
    """Run a daemon that installs two packages and then stops."""
    async with ground.open_world() as world:
        await world.push("web", "1.0.0")
        await world.repository()
        for name, spec in (("shop", more), ("other", None)):
            await world.create("prod", name, more=spec)
            await world.until_state("prod", name, "Ready")


def waited_for(world: World) -> tuple[str, ...]:
    """Return the releases that the release engine waits for, because their packages are not known yet."""
    return world.runtime.tools.releases.statistics().table.pending_initializers


@pytest.mark.slow
async def test_all_packages_are_known_soon_after_the_start(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        async with ground.open_world() as world:
            await until(lambda: not waited_for(world))
            await until(lambda: world.runtime.tools.releases.statistics().whole == 2)


@pytest.mark.slow
async def test_a_blocked_package_delays_no_start_and_its_drift_is_not_corrected(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        await lose_repository(ground.client)
        async with ground.open_world() as world:
            await world.until_state("prod", "shop", "Degraded")
            await until(lambda: not waited_for(world))
            await set_text(world, "changed")
            await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))
            assert await text_of(world) == "changed"
            await world.repository()
            await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
            await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_drift_is_corrected_even_if_the_package_cannot_be_downloaded(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        await ground.client.merge_patch(
            ObjectKey(PACKAGE_REPOSITORY, "", "default"), {"spec": {"registry": {"repo": "127.0.0.1:1/packages"}}}
        )
        for folder in (tmp_path / "state" / "store").iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
                folder.mkdir()
        async with ground.open_world() as world:
            await until(lambda: not waited_for(world))
            await set_text(world, "changed")
            await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")


@pytest.mark.slow
async def test_a_package_deleted_during_the_start_is_not_waited_for(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        async with ground.open_world() as world:
            await until(lambda: not waited_for(world))
            gone = Owner("gone", "prod")
            expecting = Takeover(world.runtime, {"prod.gone": gone, "prod.shop": Owner("else", "prod")})
            assert len(waited_for(world)) == 2
            async with trio.open_nursery() as nursery:
                nursery.start_soon(expecting.run)
                expecting.reconciled("prod.gone")  # the package is blocked, so it is not installed yet
                expecting.reconciled("prod.stranger", gone=True)
                await trio.testing.wait_all_tasks_blocked()
                assert len(waited_for(world)) == 2
                expecting.reconciled("prod.gone", gone=True)
                expecting.reconciled("prod.shop")  # the package now has another release
                await until(lambda: not waited_for(world))
                nursery.cancel_scope.cancel()
            await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_release_now_owned_by_another_package_is_retained(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        async with ground.open_world() as world:
            await until(lambda: not waited_for(world))
            rows = world.runtime.tools.releases.statistics().table.rows
            expecting = Takeover(world.runtime, {"prod.gone": OWNER})
            async with trio.open_nursery() as nursery:
                nursery.start_soon(expecting.run)
                expecting.reconciled("prod.gone", gone=True)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            assert world.runtime.tools.releases.statistics().table.rows == rows


@pytest.mark.slow
async def test_a_transient_failure_of_a_restore_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing: list[ClusterError] = [UnreachableError("the server is away")]
    restore = ReleaseEngine.restore

    async def once(self: ReleaseEngine, name: str, namespace: str, **how: object) -> None:
        if failing:
            raise failing.pop()
        await restore(self, name, namespace)

    monkeypatch.setattr(takeover, "RETRY_S", 0.01)
    monkeypatch.setattr(ReleaseEngine, "restore", once)
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        async with ground.open_world() as world:
            await until(lambda: not failing and not waited_for(world))


@pytest.mark.slow
async def test_an_unreadable_record_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = ObjectKey(SECRET, "prod", "sh.helm.release.v1.shop.v1")
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        await ground.client.merge_patch(record, {"data": {"release": "bm9uc2Vuc2U="}})
        async with ground.open_world() as world:
            await until(lambda: not waited_for(world))
            assert "is not watched until it is applied again" in caplog.text


@pytest.mark.slow
async def test_a_package_being_removed_does_not_delay_the_start(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await installed(ground)
        key = ObjectKey(APPLICATION, "prod", "shop")
        await ground.client.delete(key)
        async with ground.open_world() as world:
            await world.until_gone("prod", "shop")
            await until(lambda: not waited_for(world))
            with pytest.raises(NotFoundError):
                await world.client.get(SHOP)
            other = await world.until_state("prod", "other", "Ready")
            assert warnings_of(other) == "None"
