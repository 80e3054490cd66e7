"""Objects that remain after failed operations, and suspended releases. The engine changes neither without a request."""

import json

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map as live_map
from tests.cluster.support.client_contract import key
from tests.cluster.support.release_bench import Bench, bench, cluster, open_engine
from tests.cluster.support.release_requests import CHART, config_map, deployment, objects_of, request
from wharfinger.cluster.api.errors import ApiError, ClusterError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.records.release import ReleaseStatus, new_release
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.cluster.releases.options import utc_now
from wharfinger.formats.json.value import JsonObject

OWNER = Owner("web", "default")


def answer(code: int) -> httpx.Response:
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no"}
    return httpx.Response(code, content=json.dumps(said).encode(), headers={"content-type": "application/json"})


async def give_away(at: Bench, name: str) -> None:
    """Assign an object to another release, so that our operations on it fail permanently."""
    annotations: JsonObject = {"meta.helm.sh/release-name": "other"}
    obj = live_map(name)
    obj["metadata"] = {"name": name, "namespace": "default", "annotations": annotations}
    await at.client.apply(obj, field_manager="ann", force=True)
    await trio.sleep(5)
    assert at.engine.statistics().reconciler.keys.failing == 1


async def test_a_permanently_failing_object_does_not_end_a_wave_it_is_not_part_of(autojump_clock: MockClock) -> None:
    """The failing object is not in the chart any more. A wave (objects applied together) waits only for its own objects."""
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1"), config_map("b", v="1")))
        await give_away(at, "a")
        hangs = trio.Event()
        at.transport.fault = lambda asked: hangs if asked.method == "PATCH" and "/b?" in str(asked.url) else None
        with trio.move_on_after(60) as scope:
            await at.engine.upgrade(request(config_map("b", v="2"), deployment("later")))
        assert scope.cancelled_caught
        assert (await at.statuses())[-1].startswith("2 failed")
        hangs.set()
        result = await at.engine.upgrade(request(config_map("b", v="2"), deployment("later")))
        assert result.kept == {key("a"): "belongs to default/other"}


async def test_objects_that_an_uninstall_failed_to_delete_are_not_deleted_later(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b")))
        at.transport.fault = lambda asked: answer(500) if asked.method == "DELETE" else None
        with pytest.raises(ApiError):
            await at.engine.uninstall("web", "default")
        at.transport.fault = lambda _: None
        await trio.sleep(3600)
        assert set(await at.config_maps()) == {"a", "b"}
        await at.engine.uninstall("web", "default", orphan=True)
        await trio.sleep(3600)
        assert set(await at.config_maps()) == {"a", "b"}
        assert at.engine.statistics().reconciler.keys.rows == 0


async def test_objects_that_an_upgrade_failed_to_delete_are_not_deleted_later(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b")))
        at.transport.fault = lambda asked: answer(500) if asked.method == "DELETE" else None
        with pytest.raises(ApiError):
            await at.engine.upgrade(request(config_map("b")))
        at.transport.fault = lambda _: None
        await trio.sleep(3600)
        assert set(await at.config_maps()) == {"a", "b"}
        assert (await at.engine.upgrade(request(config_map("b")))).pruned == (key("a"),)
        assert set(await at.config_maps()) == {"b"}


@pytest.mark.parametrize("uninstall", [False, True])
@pytest.mark.parametrize("judged", ["absent", "there"])
async def test_an_object_repaired_during_its_removal_is_deleted(
    judged: str, uninstall: bool, autojump_clock: MockClock
) -> None:
    """A user deletes an object that is about to be removed, and drift correction creates it again. It is still removed."""
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b"), config_map("c")))
        repair, looking = trio.Event(), trio.Event()

        def fault(asked: httpx.Request) -> trio.Event | None:
            """Hold the repair of ``c`` and the read of ``b``, which the decision about ``c`` waits for."""
            held = {("PATCH", "c"): repair, ("GET", "b"): looking}
            return held.get((asked.method, asked.url.path.rpartition("/")[2]))

        async def leave() -> None:
            if uninstall:
                assert key("c") in (await at.engine.uninstall("web", "default")).deleted
            else:
                assert key("c") in (await at.engine.upgrade(request(config_map("a")))).pruned

        async def delete_by_hand() -> None:
            await at.client.delete(key("c"))
            await trio.sleep(1)
            at.transport.requests.clear()

        at.transport.fault = fault
        async with trio.open_nursery() as nursery:
            if judged == "absent":
                await delete_by_hand()
            nursery.start_soon(leave)
            await trio.sleep(1)
            assert "GET c" in at.transport.requests
            if judged == "there":
                await delete_by_hand()
            repair.set()
            await trio.sleep(1)
            assert set(await at.config_maps()) == {"a", "b", "c"}
            looking.set()
        assert set(await at.config_maps()) == (set() if uninstall else {"a"})
        assert at.engine.statistics().reconciler.keys.rows == (0 if uninstall else 1)


async def test_an_object_recreated_by_another_writer_during_its_removal_stays(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b"), config_map("c")))
        at.engine.suspend(OWNER)  # otherwise the deletion of c would be repaired, and c would belong to us again
        looking = trio.Event()
        at.transport.fault = lambda asked: looking if asked.method == "GET" and asked.url.path.endswith("/b") else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, request(config_map("a")))
            await trio.sleep(1)
            await at.client.delete(key("c"))
            await at.client.create(owned(live_map("c"), OWNER))  # a user restores a saved copy with our annotations
            looking.set()
        await trio.sleep(3600)
        assert set(await at.config_maps()) == {"a", "c"}


async def test_a_suspended_release_is_neither_pruned_nor_corrected(autojump_clock: MockClock) -> None:
    """Corrections that failed before the suspension must not be retried either."""
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        at.transport.fault = lambda asked: answer(500) if "fieldManager=wharfinger" in str(asked.url) else None
        await at.client.apply(live_map("a", v="9"), field_manager="ann", force=True)
        await trio.sleep(5)
        at.engine.suspend(OWNER)
        at.transport.fault = lambda _: None
        await at.client.apply(owned(live_map("stray"), OWNER), field_manager="wharfinger")
        at.engine.prune()
        await trio.sleep(3600)
        assert set(await at.config_maps()) == {"a", "stray"}
        assert (await at.client.get(key("a")))["data"] == {"v": "9"}
        at.engine.resume(OWNER)
        at.engine.prune()
        await trio.sleep(3600)
        assert set(await at.config_maps()) == {"a"}
        assert (await at.client.get(key("a")))["data"] == {"v": "1"}


async def test_an_uninstalled_release_is_no_longer_suspended(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        at.engine.suspend(OWNER)
        await at.engine.uninstall("web", "default")
        await at.engine.upgrade(request(config_map("a", v="1")))
        await at.client.apply(live_map("a", v="9"), field_manager="ann", force=True)
        await trio.sleep(5)
        assert (await at.client.get(key("a")))["data"] == {"v": "1"}


async def test_a_release_that_cannot_be_restored_does_not_block_others(autojump_clock: MockClock) -> None:
    """If a release cannot be restored, the table of wanted objects still counts as complete. So the objects of other releases
    can be pruned.
    """
    async with bench() as at:
        at.engine.expect([OWNER])
        labels: JsonObject = {"owner": "helm", "name": "web", "version": "1", "status": "deployed"}
        metadata: JsonObject = {"name": "sh.helm.release.v1.web.v1", "namespace": "default", "labels": labels}
        broken: JsonObject = {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata}
        await at.client.create(broken | {"data": {"release": "YWJj"}})
        await trio.sleep(1)
        with pytest.raises(ClusterError):
            await at.engine.restore("web", "default")
        assert at.engine.statistics().table.pending_initializers == ()


async def test_a_pending_record_of_a_killed_daemon_is_settled_without_an_upgrade(
    autojump_clock: MockClock,
) -> None:
    """A suspended package, or one that does not render, is not upgraded.

    Its pending record is marked as failed, so that helm can change the release.
    """
    ours = Holder("wharfinger")
    async with cluster() as (client, _):
        release = new_release(
            name="web",
            namespace="default",
            revision=1,
            status=ReleaseStatus.PENDING_INSTALL,
            description="",
            chart=CHART,
            values={},
            manifest=config_map("a"),
            hooks=[],
            now=utc_now(),
            holder=ours,
        )
        await ReleaseStore(client, utc_now, holder=ours).create(release)
        async with open_engine(client) as engine:
            await engine.restore("web", "default")
            (record,) = await engine.history("web", "default")
            assert record.status is ReleaseStatus.FAILED
            assert engine.statistics().table.rows == 0


async def test_releases_of_others_are_not_cached(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await trio.sleep(1)
        for number in range(3):
            release = new_release(
                name=f"theirs-{number}",
                namespace="default",
                revision=1,
                status=ReleaseStatus.DEPLOYED,
                description="",
                chart=CHART,
                values={},
                manifest=config_map("a"),
                hooks=[],
                now=at.clock(),
            )
            await ReleaseStore(at.client, at.clock).create(release)
        await trio.sleep(1)
        assert at.engine.statistics().left_alone == 0


async def test_early_objects_follow_the_drift_policy_of_their_release(autojump_clock: MockClock) -> None:
    async with bench() as at:
        (early,) = objects_of(config_map("a", v="1"))
        for mode, kept in ((DriftMode.OFF, "9"), (DriftMode.CORRECT, "1")):
            policy = DriftPolicy(mode)
            await at.engine.apply_early("web", "default", [early], drift=policy)
            await at.client.apply(live_map("a", v="9"), field_manager="ann", force=True)
            await at.engine.apply_early("web", "default", [early], drift=policy)
            assert (await at.client.get(key("a")))["data"] == {"v": kept}


async def test_progress_of_very_many_objects_is_limited_in_rate(autojump_clock: MockClock) -> None:
    """Each report lists all unfinished objects. One report for each finished object would take quadratic time."""
    told: list[int] = []
    async with bench() as at:
        maps = [config_map(f"c{number}") for number in range(200)]
        await at.engine.upgrade(request(*maps), progress=lambda laggards: told.append(len(laggards)))
    assert max(told) == 200
    assert len(told) < 20
