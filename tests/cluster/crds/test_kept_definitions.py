"""CRDs from ``crds/`` that somebody deletes: this is reported, and the CRDs and their custom resources are restored."""

import logging
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import widget_crd
from tests.cluster.support.release_bench import WIDGET, Bench, bench
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.crds.kept_definitions import FIRST_PAUSE_S, LAST_PAUSE_S, pause_before
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.fields.owners import own_entry
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

WEB = Owner("web", "default")
CRDS = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
WIDGETS = ObjectKey(CRDS, "", "widgets.example.test")
ONE = ObjectKey(ResourceType("example.test", "v1", "Widget", "widgets", namespaced=True), "default", "one")
GONE = "CustomResourceDefinition.apiextensions.k8s.io widgets.example.test: gone"


class Told:
    """A listener that records the reported drift of the release."""

    def __init__(self, at: Bench) -> None:
        self.drifts: list[list[str]] = []
        at.engine.listen(self)

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        assert owner == WEB
        self.drifts.append([str(drift) for drift in drifts])

    def health_changed(self, owner: Owner, health: Health) -> None:
        pass

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        raise AssertionError(f"{owner}: {by}")

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        pass

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        pass


async def live(at: Bench, which: ObjectKey) -> JsonObject | None:
    try:
        return await at.client.get(which)
    except NotFoundError:
        return None


async def is_there(at: Bench, which: ObjectKey) -> bool:
    return await live(at, which) is not None


async def test_a_deleted_definition_is_restored_with_its_objects(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(simulate=True) as at:
        told = Told(at)
        asked = request(WIDGET, config_map("a"), crds=(widget_crd(),))
        await at.engine.upgrade(asked)
        await trio.sleep(5)
        await at.client.delete(WIDGETS)
        with caplog.at_level(logging.WARNING):
            await trio.sleep(60)
        assert await is_there(at, WIDGETS)
        assert await is_there(at, ONE)
        assert any(GONE in drifts for drifts in told.drifts)
        assert told.drifts[-1] == []
        assert at.engine.drifts(WEB) == ()
        assert (
            "CustomResourceDefinition.apiextensions.k8s.io widgets.example.test was deleted by another writer"
            in caplog.text
        )
        assert at.engine.unchanged(asked) is not None


async def test_a_deleted_definition_applied_before_its_release_is_restored(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await trio.sleep(5)
        await at.client.delete(WIDGETS)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)


async def test_a_definition_deleted_before_the_watch_began_is_restored(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        held = trio.Event()
        at.transport.fault = lambda asked: held if "limit" in asked.url.params else None
        await at.client.delete(WIDGETS)
        held.set()
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)


async def test_the_request_is_not_unchanged_while_a_definition_is_missing(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        asked = replace(request(config_map("a"), crds=(widget_crd(),)), drift=DriftPolicy(DriftMode.WARN))
        await at.engine.upgrade(asked)
        await trio.sleep(5)
        assert at.engine.unchanged(asked) is not None
        told = Told(at)
        await at.client.delete(WIDGETS)
        await trio.sleep(600)
        assert not await is_there(at, WIDGETS)
        assert told.drifts == [[GONE]]
        assert [str(drift) for drift in at.engine.drifts(WEB)] == [GONE]
        assert at.engine.unchanged(asked) is None
        await at.engine.upgrade(asked)
        assert await is_there(at, WIDGETS)
        assert at.engine.drifts(WEB) == ()
        assert told.drifts[-1] == []


async def test_a_deleted_definition_is_not_reported_if_drift_is_off(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        told = Told(at)
        await at.engine.ensure_crds("web", "default", [widget_crd()], drift=DriftPolicy(DriftMode.OFF))
        await trio.sleep(5)
        await at.client.delete(WIDGETS)
        await trio.sleep(60)
        assert not await is_there(at, WIDGETS)
        assert at.engine.drifts(WEB) == ()
        assert [drifts for drifts in told.drifts if drifts] == []


async def test_a_suspended_release_reports_a_deleted_definition_and_restores_it_on_resume(
    autojump_clock: MockClock,
) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await trio.sleep(5)
        at.engine.suspend(WEB)
        await at.client.delete(WIDGETS)
        await trio.sleep(60)
        assert not await is_there(at, WIDGETS)
        assert len(at.engine.drifts(WEB)) == 1
        at.engine.resume(WEB)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)


@pytest.mark.parametrize("how", ["uninstalled", "forgotten", "another version"])
async def test_a_definition_that_no_release_retains_is_not_restored(how: str, autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await at.engine.upgrade(request(config_map("a"), crds=(widget_crd(),)))
        await trio.sleep(5)
        if how == "uninstalled":
            await at.engine.uninstall("web", "default")
        elif how == "forgotten":
            await at.engine.forget(WEB)
        else:
            await at.engine.ensure_crds("web", "default", [])
            await at.engine.upgrade(request(config_map("a", v="2")))
        await at.client.delete(WIDGETS)
        await trio.sleep(60)
        assert not await is_there(at, WIDGETS)


async def test_a_definition_of_two_releases_is_restored_for_the_remaining_one(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await at.engine.ensure_crds("db", "default", [widget_crd()])
        await trio.sleep(5)
        await at.engine.uninstall("db", "default")
        await at.client.delete(WIDGETS)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)


async def test_a_definition_recreated_by_another_process_is_not_overwritten(autojump_clock: MockClock) -> None:
    """The other process may have created a newer version of the CRD, so the engine does not revert it."""
    newer = widget_crd()
    newer["metadata"] = {"name": "widgets.example.test", "labels": {"version": "newer"}}
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await trio.sleep(5)
        at.engine.suspend(WEB)
        await at.client.delete(WIDGETS)
        await trio.sleep(5)
        await at.client.create(newer)
        at.engine.resume(WEB)
        await trio.sleep(60)
        found = await live(at, WIDGETS)
        assert found is not None
        assert find_str(found, "metadata", "labels", "version") == "newer"
        assert own_entry(found, "wharfinger") is None
        assert at.engine.drifts(WEB) == ()


async def test_a_failed_restoration_is_retried(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await trio.sleep(5)
        at.transport.fault = lambda asked: httpx.Response(403, content=b"{}") if asked.method == "PATCH" else None
        await at.client.delete(WIDGETS)
        with caplog.at_level(logging.WARNING):
            await trio.sleep(5)
        assert "cannot be restored yet" in caplog.text
        at.transport.fault = lambda _: None
        await trio.sleep(60)
        assert await is_there(at, WIDGETS)


async def test_a_definition_deleted_again_and_again_is_restored_ever_more_rarely(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        took: list[float] = []
        for _ in range(4):
            await trio.sleep(5)
            await at.client.delete(WIDGETS)
            start = trio.current_time()
            while not await is_there(at, WIDGETS):  # noqa: ASYNC110 - it is the API server that is asked
                await trio.sleep(1)
            took.append(trio.current_time() - start)
        assert [round(seconds) for seconds in took] == pytest.approx([0, 15, 30, 60], abs=2)


def test_the_pause_doubles_up_to_a_limit() -> None:
    assert [pause_before(times) for times in (0, 1, 2, 3, 100)] == [0, 15, 30, 60, LAST_PAUSE_S]


async def test_each_step_of_a_release_retains_the_definitions_it_applied(autojump_clock: MockClock) -> None:
    """One step applies the CRDs of a package, and a later step those of its subcharts. Both sets must be retained."""
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await at.engine.ensure_crds("web", "default", [], step="charts in the chart")
        await trio.sleep(5)
        await at.client.delete(WIDGETS)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)


def gadget_crd() -> JsonObject:
    names: JsonObject = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"}
    crd = widget_crd()
    return {
        **crd,
        "metadata": {"name": "gadgets.example.test"},
        "spec": {**find_object(crd, "spec"), "names": names},
    }


async def deleted_during_an_upgrade(at: Bench) -> ReleaseRequest:
    """Delete the CRD after an upgrade has applied it, but before the upgrade ends. Return the request of the upgrade."""
    asked = request(config_map("a"), config_map("b"), crds=(widget_crd(),))
    reached, gate = trio.Event(), trio.Event()

    def fault(sent: httpx.Request) -> trio.Event | None:
        if sent.method != "PATCH" or not sent.url.path.endswith("/configmaps/b"):
            return None
        reached.set()
        return gate

    at.transport.fault = fault
    async with trio.open_nursery() as nursery:
        nursery.start_soon(at.engine.upgrade, asked)
        await reached.wait()
        await at.client.delete(WIDGETS)
        await trio.sleep(1)
        at.transport.fault = lambda _sent: None
        gate.set()
    return asked


async def test_a_definition_deleted_during_the_first_install_is_restored(autojump_clock: MockClock) -> None:
    """Because of another release, the engine already watches CRDs, so it sees the deletion before the install ends."""
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("other", "default", [gadget_crd()])
        await trio.sleep(5)
        await deleted_during_an_upgrade(at)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)


async def test_a_definition_waiting_for_its_pause_is_still_missing_after_an_upgrade(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        await at.engine.upgrade(request(config_map("a"), crds=(widget_crd(),)))
        await trio.sleep(5)
        await at.client.delete(WIDGETS)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)
        asked = await deleted_during_an_upgrade(at)
        assert not await is_there(at, WIDGETS)
        assert [str(drift) for drift in at.engine.drifts(WEB)] == [GONE]
        assert at.engine.unchanged(asked) is None
        await trio.sleep(FIRST_PAUSE_S + 5)
        assert await is_there(at, WIDGETS)


@pytest.mark.parametrize("moment", ["looking", "applying"])
async def test_an_uninstall_during_a_restoration_affects_nothing_else(autojump_clock: MockClock, moment: str) -> None:
    """A user deletes the CRD and then uninstalls the package, while the engine is restoring the CRD."""
    async with bench(simulate=True) as at:
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await trio.sleep(5)
        reached, gate = trio.Event(), trio.Event()
        method = "GET" if moment == "looking" else "PATCH"

        def fault(sent: httpx.Request) -> trio.Event | None:
            if sent.method != method or not sent.url.path.endswith("/widgets.example.test"):
                return None
            reached.set()
            return gate

        at.transport.fault = fault
        await at.client.delete(WIDGETS)
        await reached.wait()
        at.transport.fault = lambda _sent: None
        await at.engine.uninstall("web", "default")
        gate.set()
        await trio.sleep(60)
        if moment == "looking":
            assert not await is_there(at, WIDGETS)
        # The engine still works.
        await at.engine.upgrade(request(config_map("a"), crds=(widget_crd(),)))
        assert await is_there(at, WIDGETS)


async def test_a_watch_that_ends_before_its_first_list_blocks_no_other(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        gate, held = trio.Event(), list[str]()

        def fault(sent: httpx.Request) -> trio.Event | None:
            if "limit" not in sent.url.params or not sent.url.path.endswith("/customresourcedefinitions"):
                return None
            held.append(str(sent.url))
            return gate if len(held) == 1 else None

        at.transport.fault = fault
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await trio.sleep(1)
        assert held
        await at.engine.forget(WEB)
        await trio.sleep(1)
        await at.engine.ensure_crds("web", "default", [widget_crd()])
        await at.client.delete(WIDGETS)
        at.transport.fault = lambda _sent: None
        gate.set()
        await trio.sleep(60)
        assert await is_there(at, WIDGETS)


@pytest.mark.parametrize("how", ["another version", "reinstalled"])
async def test_a_definition_no_longer_retained_is_not_reported_as_missing(how: str, autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        told, warn = Told(at), DriftPolicy(DriftMode.WARN)
        await at.engine.upgrade(replace(request(config_map("a"), crds=(widget_crd(),)), drift=warn))
        await trio.sleep(5)
        await at.client.delete(WIDGETS)
        await trio.sleep(5)
        assert told.drifts[-1] == [GONE]
        if how == "reinstalled":
            await at.engine.uninstall("web", "default")
        await at.engine.upgrade(replace(request(config_map("a", v="2")), drift=warn))
        await trio.sleep(5)
        assert told.drifts[-1] == []


async def test_a_release_confined_by_now_writes_no_definition(autojump_clock: MockClock) -> None:
    confined: set[Owner] = set()
    async with bench(simulate=True, options=EngineOptions(confined=confined.__contains__)) as at:
        asked = request(config_map("a"), crds=(widget_crd(),))
        await at.engine.upgrade(asked)
        await trio.sleep(5)
        confined.add(WEB)
        await at.client.delete(WIDGETS)
        await trio.sleep(60)
        assert not await is_there(at, WIDGETS)
        confined.clear()
        await at.engine.upgrade(asked)
        await trio.sleep(5)
        assert await is_there(at, WIDGETS)
