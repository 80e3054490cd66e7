"""Releases after their installation: the engine corrects and watches them, and restores them after a restart."""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.release_bench import WIDGET, Bench, bench, cluster, open_engine
from tests.cluster.support.release_requests import CHART, config_map, deployment, objects_of, request
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health, HealthState
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import ReleaseStatus, new_release
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.request import Outcome
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.kube.resource import ObjectKey

OWNER = Owner("web", "default")


class Told:
    """A listener that records its notifications."""

    def __init__(self, engine: ReleaseEngine) -> None:
        self.drift: list[str] = []
        self.health: list[HealthState] = []
        self.foreign: list[tuple[str, int, str]] = []
        engine.listen(self)

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Record the drift."""
        self.drift.append("; ".join(map(str, drifts)))

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Record the state of the release's health."""
        self.health.append(health.state)

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Ignore the report about pruned objects."""

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Ignore the report about troubles of a release."""

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Record the report about a revision that another program has written."""
        self.foreign.append((str(owner), release_revision, by))


def edited(**data: str) -> JsonObject:
    """Return an object as another manager applies it."""
    metadata: JsonObject = {"name": "a", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}


async def persons_revision(at: Bench, revision: int) -> None:
    """Create the record that a user's helm would write."""
    release = new_release(
        name="web",
        namespace="default",
        revision=revision,
        status=ReleaseStatus.DEPLOYED,
        description="by hand",
        chart=CHART,
        values={},
        manifest=config_map("a", v="hand"),
        hooks=[],
        now=at.clock(),
    )
    await ReleaseStore(at.client, at.clock).create(release)


# -- drift


async def test_fields_changed_by_others_are_corrected_and_reported(autojump_clock: MockClock) -> None:
    async with bench() as at:
        told = Told(at.engine)
        wanted = request(config_map("a", v="1"))
        await at.engine.upgrade(wanted)
        await at.client.apply(edited(v="9"), field_manager="ann", force=True)
        await trio.sleep(2)
        assert (await at.client.get(key("a")))["data"] == {"v": "1"}
        assert told.drift == ["ConfigMap default/a: /data/v by ann", ""]
        assert at.engine.unchanged(wanted) is not None


async def test_a_release_with_drift_is_not_unchanged(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("a", v="1"))
        await at.engine.upgrade(wanted)
        await at.client.apply(edited(v="9"), field_manager="ann", force=True)
        at.transport.fault = lambda asked: trio.Event() if asked.method == "PATCH" else None
        await trio.sleep(2)
        assert [str(drift) for drift in at.engine.drifts(OWNER)] == ["ConfigMap default/a: /data/v by ann"]
        assert at.engine.unchanged(wanted) is None


# -- revisions of users


async def test_a_users_revision_is_reported_and_its_objects_are_not_corrected(autojump_clock: MockClock) -> None:
    async with bench() as at:
        told = Told(at.engine)
        wanted = request(config_map("a", v="1"))
        await at.engine.upgrade(wanted)
        await persons_revision(at, 2)
        await trio.sleep(1)
        await at.client.apply(edited(v="hand"), field_manager="helm", force=True)
        await trio.sleep(3600)
        assert (await at.client.get(key("a")))["data"] == {"v": "hand"}
        ((owner, revision, by),) = told.foreign
        assert (owner, revision) == ("default/web", 2)
        assert "helm command" in by
        assert at.engine.unchanged(wanted) is None
        assert (await at.engine.upgrade(wanted)).revision == 3
        await at.client.apply(edited(v="9"), field_manager="ann", force=True)
        await trio.sleep(5)
        assert (await at.client.get(key("a")))["data"] == {"v": "1"}


async def test_a_release_last_upgraded_by_a_user_is_not_restored(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await persons_revision(at, 1)
        await trio.sleep(1)
        told = Told(at.engine)
        await at.engine.restore("web", "default")
        ((owner, revision, by),) = told.foreign
        assert (owner, revision, by) == ("default/web", 1, "a helm command")
        assert at.engine.statistics().table.rows == 0


async def test_the_fingerprint_alone_identifies_an_applied_request(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("a", v="1"))
        assert at.engine.as_applied(OWNER, wanted.fingerprint) is None
        await at.engine.upgrade(wanted)
        await trio.sleep(1)
        assert at.engine.as_applied(OWNER, wanted.fingerprint) == at.engine.unchanged(wanted) is not None
        assert at.engine.as_applied(OWNER, "another") is None


# -- after a restart


async def test_a_restored_release_is_corrected_as_before(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(request(config_map("a", v="1"), config_map("b")))
        await client.apply(edited(v="9"), field_manager="ann", force=True)
        await client.delete(key("b"))
        async with open_engine(client) as engine:
            engine.expect([OWNER, OWNER])
            told = Told(engine)
            transport.requests.clear()
            await engine.restore("web", "default")
            assert transport.writes == []
            await trio.sleep(30)
            assert (await client.get(key("a")))["data"] == {"v": "1"}
            await client.get(key("b"))
            assert any("/data/v by ann" in drift for drift in told.drift)
            transport.requests.clear()
            assert (await engine.upgrade(request(config_map("a", v="1"), config_map("b")))).outcome is Outcome.UNCHANGED
            assert transport.writes == []


async def test_a_release_whose_last_operation_failed_is_not_restored(autojump_clock: MockClock) -> None:
    async with cluster() as (client, _):
        async with open_engine(client) as engine:
            with pytest.raises(Exception, match="Not_A_Name"):
                await engine.upgrade(request(config_map("a"), deployment("Not_A_Name")))
        async with open_engine(client) as engine:
            await engine.restore("web", "default")
            await engine.restore("never", "default")
            assert engine.statistics().table.rows == 0
            assert await engine.objects("never", "default") == ()
            assert [str(one) for one in await engine.objects("web", "default")] == [
                "ConfigMap default/a",
                "Deployment.apps default/Not_A_Name",
            ]


async def test_nothing_is_pruned_before_all_expected_releases_are_known(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.engine.expect([Owner("one", "default"), Owner("two", "default"), OWNER])
        assert len(at.engine.statistics().table.pending_initializers) == 3
        await at.engine.upgrade(request(config_map("a"), name="one"))
        await at.engine.uninstall("two", "default")
        assert at.engine.statistics().table.pending_initializers == ("release default/web",)
        await at.engine.restore("web", "default")
        assert at.engine.statistics().table.pending_initializers == ()


# -- health


async def test_health_is_waited_for_and_reported(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        told = Told(at.engine)
        laggards: list[Laggards] = []
        slow = 'name: web\n  annotations: {wharfinger.dev/ready-after: "30"}'
        await at.engine.upgrade(request(config_map("a"), deployment("web").replace("name: web", slow, 1)))
        with trio.fail_after(600):
            report = await at.engine.wait_ready("web", "default", progress=laggards.append)
        assert report.done
        assert [str(one) for one in laggards[0]] == ["Deployment.apps default/web"]
        await trio.sleep(5)
        assert told.health[-1] is HealthState.CURRENT
        assert at.engine.health(OWNER).state is HealthState.CURRENT
        await at.engine.uninstall("web", "default")
        assert at.engine.health(OWNER).state is HealthState.UNKNOWN


# -- definitions applied before their release


async def test_definitions_may_be_applied_before_the_release(autojump_clock: MockClock) -> None:
    async with bench() as at:
        (crd,) = await at.engine.ensure_crds("web", "default", [widget_crd()])
        assert crd.name == "widgets.example.test"
        at.transport.requests.clear()
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        assert at.transport.writes == []
        await at.engine.upgrade(request(WIDGET, crds=(widget_crd(),)))
        assert [str(one) for one in await at.engine.objects("web", "default")] == ["Widget.example.test default/one"]


# -- objects in an unknown state


async def test_an_identical_release_of_helm_is_applied_nevertheless(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("a", v="hand"))
        await persons_revision(at, 1)
        annotations: JsonObject = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "default"}
        metadata: JsonObject = {"name": "a", "namespace": "default", "annotations": annotations}
        await at.client.apply({**edited(v="hand"), "metadata": metadata}, field_manager="helm")
        await trio.sleep(1)
        await at.engine.upgrade(wanted)
        live = await at.client.get(key("a"))
        assert find(live, "metadata", "labels", "wharfinger.dev/release") == "web"
        assert [find_str(one, "manager") for one in find_list(live, "metadata", "managedFields")] == ["wharfinger"]


async def test_objects_read_before_hooks_are_read_again(autojump_clock: MockClock) -> None:
    annotations = "annotations: {helm.sh/hook: pre-upgrade}"
    unwatched = DriftPolicy(DriftMode.OFF)
    async with bench() as at:
        await at.engine.upgrade(replace(request(config_map("a", v="1")), drift=unwatched))
        held = trio.Event()
        at.transport.fault = lambda asked: held if asked.url.path.endswith("/configmaps") else None
        (hook,) = objects_of(config_map("hook", annotations))
        async with trio.open_nursery() as nursery:
            wanted = replace(request(config_map("a", v="1"), config_map("b")), hooks=(hook,), drift=unwatched)
            nursery.start_soon(at.engine.upgrade, wanted)
            await wait_all_tasks_blocked()
            await at.client.apply(edited(v="9"), field_manager="ann", force=True)
            held.set()
        # Drift is not corrected, so the changed field stays as it is. However, the object was compared again.
        assert "GET a" in at.transport.requests[at.transport.requests.index("POST configmaps") :]
